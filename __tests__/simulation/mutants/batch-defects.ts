import type { Defect } from "./defects.js";

const BATCHES = "lib/dynamodb/renewal-batches.js";

const OUTCOME = /this\.#settle\(member, outcomes\[index\]\)/g;

/**
 * Defects of renewals that travel together; renewal-batches.test.ts finds others, such as a stamp that two rows share.
 * What each breaks is a sentence of docs/protocol.md, or a rule in renewal-batches.ts.
 */
export const BATCH_DEFECTS: readonly Defect[] = [
  {
    name: "a renewal is judged by the outcome of another in its batch",
    patches: [{ file: BATCHES, find: OUTCOME, replace: "this.#settle(member, outcomes[0])" }],
  },
  {
    name: "the refusal of one renewal counts as the loss of its neighbours",
    patches: [
      {
        file: BATCHES,
        find: OUTCOME,
        replace: 'this.#settle(member, outcomes.find((one) => one.kind === "refused") ?? outcomes[index])',
      },
    ],
  },
  {
    name: "where batches cannot be used, those of the refused one count as renewed",
    patches: [
      {
        file: BATCHES,
        find: /member\.settle\(this\.#sender\.one\(member\.renewal, member\.signal\)\)/g,
        replace: 'member.settle({ kind: "applied", replaced: undefined, drawn: undefined })',
      },
    ],
  },
  {
    name: "those of a batch without an answer count as renewed",
    patches: [
      {
        file: BATCHES,
        find: /for \(const member of batch\)\s+this\.#settle\(member, error\)/g,
        replace:
          'for (const member of batch) this.#settle(member, { kind: "applied", replaced: undefined, drawn: undefined })',
      },
    ],
  },
];
