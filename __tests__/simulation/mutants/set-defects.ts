import type { Defect } from "./defects.js";

const LOCK_ALL = "lib/sets/lock-all.js";
const LOCK_SET = "lib/sets/lock-set.js";
const ROW_TAKE = "lib/taking/row-take.js";
/** What a transaction is here: DynamoDB applies all of its writes or none. */
const TABLE = "lib/testing/memory-table.js";

/** Defects of `lockAll`. What each breaks is a sentence of docs/several-locks.md. */
export const SET_DEFECTS: readonly Defect[] = [
  {
    name: "a set takes those of its locks that are free",
    patches: [
      {
        file: TABLE,
        find: /wouldBe\.some\(\(\{ kind \}\) => kind === "refused"\)/g,
        replace: "false",
      },
    ],
  },
  {
    name: "a set does not hear that one of its locks is lost",
    patches: [{ file: LOCK_SET, find: /lock\.signal\.addEventListener\(.*\);/g, replace: "void lock.signal;" }],
  },
  {
    name: "a set whose caller has gone gives back its first lock alone",
    patches: [
      { file: LOCK_ALL, find: /const \{ exit \} of leases\b/g, replace: "$&.slice(0, 1)" },
      { file: LOCK_ALL, find: /acquisitions\.slice\(0, 2\)/g, replace: "acquisitions.slice(0, 1)" },
      { file: LOCK_ALL, find: /acquisitions\.slice\(2\)/g, replace: "[]" },
    ],
  },
  {
    name: "an own set on the rows is not recognised",
    patches: [
      { file: LOCK_ALL, find: /new RowTake\(.*?\)/g, replace: "Object.assign($&, { isOfSet: true })" },
      { file: ROW_TAKE, find: /\bisOwn\(row\) \{/g, replace: "$& if (this.isOfSet) return false;" },
    ],
  },
  {
    name: "a set releases its first lock alone",
    patches: [
      { file: LOCK_SET, find: /this\.#all\.map\(\(lock\) => lock\.unlock\(\)\)/g, replace: "[this.#all[0].unlock()]" },
    ],
  },
];
