import type { Defect } from "./defects.js";

const ACQUISITION = "lib/taking/acquisition.js";

/** Defects of ticks that are run until they succeed. What each breaks is a sentence of docs/protocol.md. */
export const TICK_DEFECTS: readonly Defect[] = [
  {
    name: "the attempt that was seen is not compared",
    patches: [
      { file: "lib/protocol/rules.js", find: /, equal\("attempt", \{ value: "seenAttempt" \}\)/g, replace: "" },
    ],
  },
  {
    name: "a success counts as recorded without an answer",
    patches: [
      { file: ACQUISITION, find: /cause = error;\n(\s+)\}\n(\s+const message = `Lock)/g, replace: "return;\n$1}\n$2" },
    ],
  },
  {
    name: "a row without a holder proves that a success was recorded",
    patches: [
      {
        file: "lib/protocol/was-applied.js",
        find: /refusedBy\.due !== write\.tick && (refusedBy\.attempt === write\.attempt)/g,
        replace: "refusedBy.uuid === undefined && $1",
      },
    ],
  },
  {
    name: "a lease whose section has an outcome to record is passed on",
    patches: [{ file: "lib/queues/call.js", find: /lease\.row\.attempt !== undefined/g, replace: "false" }],
  },
  {
    name: "an attempt that has begun is set back",
    patches: [
      {
        file: ACQUISITION,
        find: /this\.attempt === undefined \|\| this\.hasBegun/g,
        replace: "this.attempt === undefined",
      },
    ],
  },
  {
    name: "a run begins after the last one",
    patches: [
      {
        file: "lib/taking/row-take.js",
        find: /next\.attempt > maxAttempts \? \{ attempt: 1 \} : next/g,
        replace: "next",
      },
    ],
  },
];
