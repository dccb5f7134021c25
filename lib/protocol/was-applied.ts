import { holds } from "./conditions.js";
import { FORMAT, type Row } from "./row.js";
import { askedBy, memoryOf } from "./rules.js";
import type { Take, Transfer, Vacate, Write } from "./writes.js";

/**
 * Whether an earlier copy of a write was applied, which is why this one was refused. For a vacate it matters whether one
 * of them got no answer, the SDK's own retries among them: it may have been applied.
 *
 * | write   | yes                                            | maybe                                              |
 * |---------|------------------------------------------------|----------------------------------------------------|
 * | take    | its uuid is on the row                         |                                                    |
 * | renew   | its uuid is on the row, with exactly its stamp |                                                    |
 * | reissue | its new uuid is on the row                     |                                                    |
 * | transfer| its new uuid is on the row                     | an unanswered copy, and neither uuid is on the     |
 * |         |                                                | row: its lease ended since, or somebody took it    |
 * | vacate  | an unanswered copy, and the row is as it would | an unanswered copy, and its uuid is not on the     |
 * |         | have left it                                   | row: that copy did it, or somebody took it         |
 * | record  | the row shows its tick, not due any more, with | the row shows another tick, or there is none: its  |
 * |         | its own number of attempts                     | success may have been recorded before that         |
 *
 * Draws, marks and removals are never recognised: another draw costs a number, and another mark says the same.
 */
export function wasApplied(
  write: Write,
  refusedBy: Row | undefined,
  { earlierCopyUnanswered }: { readonly earlierCopyUnanswered: boolean } = { earlierCopyUnanswered: true },
): "yes" | "no" | "maybe" {
  switch (write.kind) {
    case "take":
    case "reissue":
      return isStillHeldBy(write.uuid, refusedBy) ? "yes" : "no";
    case "renew":
      return isStillHeldBy(write.uuid, refusedBy) && refusedBy?.expires === write.expires ? "yes" : "no";
    case "transfer":
      if (isStillHeldBy(write.uuid, refusedBy)) return "yes";
      return earlierCopyUnanswered && !isStillHeldBy(write.from, refusedBy) ? "maybe" : "no";
    case "vacate":
      if (!earlierCopyUnanswered || isStillHeldBy(write.uuid, refusedBy)) return "no";
      return isLeftBy(write, refusedBy) ? "yes" : "maybe";
    case "record":
      if (refusedBy?.tick !== write.tick) return earlierCopyUnanswered ? "maybe" : "no";
      return refusedBy.due !== write.tick && refusedBy.attempt === write.attempt ? "yes" : "no";
    case "remove":
    case "put-result":
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

/** Whether a row that refused a write still has the uuid of the writer. */
export function isStillHeldBy(uuid: string, row: Row | undefined): boolean {
  return row?.uuid === uuid;
}

/**
 * What to send after a delete that was refused by its own uuid, because the row remembers something that the writer did not
 * know of: the same release, as an update of a row that is kept. Undefined for every other refusal.
 *
 * The delete changed nothing, and no late copy of it can: what a row remembers, it remembers for ever.
 */
export function vacateKept(write: Write, refusedBy: Row | undefined): Vacate | undefined {
  if (write.kind !== "vacate" || write.remembers !== "nothing" || write.leaves.kind !== "free") return undefined;
  const remembers = memoryOf(refusedBy);
  return isStillHeldBy(write.uuid, refusedBy) && remembers !== "nothing" ? { ...write, remembers } : undefined;
}

/**
 * What to send after a write that draws a token and was refused by its form alone: the same write in its other form. The row's
 * token was not where it was last seen, or was seen nowhere.
 *
 * Both forms may be under way under one uuid: each asks that the row is as it is before the write, so once one is applied, the
 * other is refused for as long as the uuid is held. If a late copy of the first form comes after a release, it is a late copy of
 * the write like any other: it draws a later token, or is refused by it.
 */
export function inOtherForm(write: Write, refusedBy: Row | undefined): Take | Transfer | undefined {
  if (!("token" in write) || write.token === undefined || refusedBy === undefined) return undefined;
  const other = { ...write, token: { ...write.token, isBehind: !write.token.isBehind } };
  const { condition, values } = askedBy(other);
  return holds(condition, { ...refusedBy, format: FORMAT }, values) ? other : undefined;
}
