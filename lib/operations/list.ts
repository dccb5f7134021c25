import type { LockInfo } from "../lock-info.js";
import type { ListOptions } from "../options/calls.js";
import { infoOf } from "../protocol/row.js";
import type { Session } from "../session/session.js";
import type { Cursor } from "../store.js";
import { adminRequest } from "./admin-request.js";
import { infoOfBad, isTaken } from "./inspect.js";

/** The locks of a table, page by page: a page is read when the one before it has been used up. */
export async function* listLocks(
  session: Session,
  { prefix = "", kept = false, signal }: ListOptions,
): AsyncGenerator<LockInfo, void, undefined> {
  let after: Cursor | undefined;
  do {
    const from = after;
    const scan = (ends: AbortSignal) => session.store.scan(prefix, from, ends);
    const { rows, bad, next } = await adminRequest(session, scan, { signal });
    for (const row of rows) {
      signal?.throwIfAborted();
      if (kept || isTaken(row, session.clock.wall())) yield infoOf(row);
    }
    for (const row of bad) {
      signal?.throwIfAborted();
      yield infoOfBad(row);
    }
    after = next;
  } while (after !== undefined);
}
