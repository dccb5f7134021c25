import type { Row } from "./row.js";
import type { Vacate, Write } from "./writes.js";

/** What a refused write knows of its earlier copies. */
export interface EarlierCopies {
  /** Whether one of them got no answer, the SDK's own retries among them: it may have been applied. */
  readonly earlierCopyUnanswered: boolean;
}

/**
 * Whether an earlier copy of a write was applied, which is why this one was refused.
 *
 * | write   | yes                                            | maybe                                              |
 * |---------|------------------------------------------------|----------------------------------------------------|
 * | take    | its uuid is on the row                         |                                                    |
 * | renew   | its uuid is on the row, with exactly its stamp |                                                    |
 * | reissue | its new uuid is on the row                     |                                                    |
 * | vacate  | an unanswered copy, and the row is as it would | an unanswered copy, and its uuid is not on the     |
 * |         | have left it                                   | row: that copy did it, or somebody took it         |
 *
 * Draws and marks are never recognised: another draw costs a number, and another mark says the same.
 */
export function wasApplied(
  write: Write,
  refusedBy: Row | undefined,
  { earlierCopyUnanswered }: EarlierCopies,
): "yes" | "no" | "maybe" {
  switch (write.kind) {
    case "take":
    case "reissue":
      return refusedBy?.uuid === write.uuid ? "yes" : "no";
    case "renew":
      return refusedBy?.uuid === write.uuid && refusedBy.expires === write.expires ? "yes" : "no";
    case "vacate":
      if (!earlierCopyUnanswered || refusedBy?.uuid === write.uuid) return "no";
      return isLeftBy(write, refusedBy) ? "yes" : "maybe";
    case "want":
    case "draw":
    case "check":
      return "no";
    default:
      return write satisfies never;
  }
}

function isLeftBy({ leaves }: Vacate, row: Row | undefined): boolean {
  if (row === undefined || row.uuid !== undefined) return false;
  if (leaves.kind === "untilExpires") return true;
  return row.expires === (leaves.kind === "held" ? leaves.expires : 0);
}
