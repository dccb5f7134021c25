import { failures, tableSign } from "./files.js";
import type { Defects } from "./patch.js";

/** Defects of who is believed, and of what counts as certain. */
export const NETWORK_DEFECTS: Defects = {
  "somebody else's reply is an answer": [tableSign(/return !this\.#isSigned;/g, "return true;")],
  "any success proves a grant": [
    tableSign(/get isEnough\(\) \{\s*return this\.#isSigned;/g, "get isEnough() { return true;"),
  ],
  "a reply that cannot be read is final, and certain": [
    failures(/const isSilence = hasLeft === true && !answered;/g, "const isSilence = false;"),
  ],
};
