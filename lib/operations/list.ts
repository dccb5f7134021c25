import type { LockInfo } from "../lock-info.js";
import type { ListOptions } from "../options/operations.js";
import { infoOf, isTaken } from "../protocol/row.js";
import type { Host } from "../session/session.js";
import type { Cursor } from "../store.js";
import { ask } from "./admin-request.js";

/** The locks of a table, page by page: a page is read when the one before it has been used up. */
export async function* listLocks(
  host: Host,
  { prefix = "", kept = false, signal }: ListOptions,
): AsyncGenerator<LockInfo, void, undefined> {
  let after: Cursor | undefined;
  do {
    const from = after;
    const { rows, next } = await ask(host, (ends) => host.store.list(prefix, from, ends), signal);
    for (const row of rows) {
      signal?.throwIfAborted();
      if (kept || isTaken(row, host.clock.wall())) yield infoOf(row);
    }
    after = next;
  } while (after !== undefined);
}
