import type { Defects } from "./defect.js";

/** Defects of who is believed, and of what counts as certain. */
export const NETWORK_DEFECTS: Defects = {
  "somebody else's reply is an answer": {
    takesOut: ["trap 48", "protocol#requests-of-one-process: A reply without"],
    "dynamodb/table-sign.ts": { "return !this.#isSigned;": "return true;" },
  },
  "any success proves a grant": {
    takesOut: ["trap 48", "protocol#requests-of-one-process: A reply without"],
    "dynamodb/table-sign.ts": {
      "get isEnough(): boolean { return this.#isSigned;": "get isEnough(): boolean { return true;",
    },
  },
  "a reply that cannot be read is final, and certain": {
    takesOut: ["trap 50", "protocol#requests-of-one-process: A failure is certain"],
    "dynamodb/failures.ts": { "const isSilence = hasLeft === true && !answered;": "const isSilence = false;" },
  },
  "a reply is judged by its head alone": {
    takesOut: ["trap 48", "protocol#requests-of-one-process: A reply without"],
    "dynamodb/transport.ts": { "isSigned === false && !this.sign.admits(false)": "this.#isSeen === undefined" },
    test: "dynamodb/transport",
  },
  "a refused grant that shows its uuid teaches nothing": {
    takesOut: ["trap 48"],
    "dynamodb/row-store.ts": {
      "if (isStillHeldBy(uuid, row)) this.sign.prove();": "if (row === undefined) this.sign.prove();",
    },
    test: "dynamodb/row-store",
  },
  "what the table says to a read answers the grant before it": {
    takesOut: ["protocol#requests-of-one-process: A failure is certain"],
    "dynamodb/row-store.ts": { "throw stillInDoubt(error);": "throw error;" },
    test: "dynamodb/row-store",
  },
};
