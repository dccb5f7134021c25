import type { Defect } from "./defects.js";

const CLOSING = "lib/session/closing.js";
const LEASE = "lib/holding/lease.js";

/** Defects of `close()`. What each breaks is a sentence of docs/shutdown.md. */
export const CLOSE_DEFECTS: readonly Defect[] = [
  {
    name: "the row of a revoked section is deleted at once",
    patches: [{ file: LEASE, find: /return this\.end\("closed"\);/g, replace: "{ void this.row.release(); $& }" }],
  },
  {
    name: "the drain ignores the sections that run",
    patches: [{ file: CLOSING, find: /await this\.#pauseWhile\(\(\) => this\.#drainEnds - .*\);/g, replace: "" }],
  },
  {
    name: "a close waits for the last section, however long that takes",
    patches: [
      { file: CLOSING, find: /#pauseWhile\(\(\) => this\.remainingMs\)/g, replace: "#pauseWhile(() => 1_000)" },
    ],
  },
  {
    name: "a close does not revoke the sections that run on",
    patches: [{ file: CLOSING, find: /lease\.revoke\(\) \?\? \[\]/g, replace: "[]" }],
  },
];
