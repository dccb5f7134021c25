import type { Defect } from "./defects.js";

const ACQUISITION = "lib/taking/acquisition.js";
const BATCHES = "lib/dynamodb/renewal-batches.js";

const OUTCOME = /this\.#settle\(member, outcomes\[index\]\)/g;

/** Defects of renewals that travel together. What each breaks is a sentence of docs/protocol.md, or a rule in renewal-batches.ts. */
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
    name: "the renewals of a batch share a stamp",
    patches: [
      {
        file: BATCHES,
        find: /batch\.map\(\(\{ renewal \}\) => renewal\)/g,
        replace: "batch.map(({ renewal }) => ({ ...renewal, expires: batch[0].renewal.expires + 1 }))",
      },
    ],
  },
  {
    name: "a batch without an answer counts as sent when it is sent again",
    patches: [
      {
        file: ACQUISITION,
        find: /if \(sent === undefined\) \{/g,
        replace: "if (sent !== undefined) sent = { ...sent, at: clock.atMost() }; $&",
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
    name: "a statement without an answer counts as applied",
    patches: [
      {
        file: BATCHES,
        find: OUTCOME,
        replace:
          'this.#settle(member, outcomes[index] instanceof Error ? { kind: "applied", replaced: undefined, drawn: undefined } : outcomes[index])',
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
