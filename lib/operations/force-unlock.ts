import { publish } from "../diagnostics.js";
import { type ForceUnlockOptions, forceUnlockOptions } from "../options/calls.js";
import type { Address, SortRange } from "../protocol/addresses.js";
import { wasApplied } from "../protocol/was-applied.js";
import type { Vacate } from "../protocol/writes.js";
import { Copies } from "../session/requests.js";
import type { Session } from "../session/session.js";
import { adminRequest } from "./admin-request.js";
import { rowsIn } from "./inspect.js";

/**
 * Removes a holder's uuid from its row. Requests that the holder has in flight name that uuid and are refused, and so is a
 * late copy of this one. The row and what it remembers stay.
 *
 * @returns whether the uuid held the lock until now.
 * @throws {@link LockConfigError} for an argument that cannot work; the store's error.
 */
export async function forceUnlock(
  session: Session,
  { name, sort }: Address,
  uuid: string,
  options: ForceUnlockOptions,
): Promise<boolean> {
  const { now } = forceUnlockOptions(uuid, options);
  const copies = new Copies();
  const leaves = { kind: now ? "kept" : "untilExpires" } as const;
  const write: Vacate = { kind: "vacate", at: { name, sort }, uuid, leaves, remembers: "nothing" };
  const outcome = await adminRequest(session, (signal) => copies.count(session.store.write(write, signal)));
  if (outcome.kind === "refused") {
    // A copy that was throttled counts as well: the network may have delivered it twice.
    const earlierCopyUnanswered = outcome.retried || copies.sent > 1;
    if (wasApplied(write, outcome.row, { earlierCopyUnanswered }) !== "yes") return false;
  }
  publish("dynamutex:forced", { name, uuid, now });
  // A holder elsewhere learns of it at its next renewal. One in this process must not wait for that, and neither must the
  // calls that wait behind it.
  const own = session.leases.with(uuid);
  if (own !== undefined && session.leases.has(own)) own.lose("forced");
  return true;
}

/** The same for whichever row of a range has this uuid. */
export async function forceUnlockIn(
  session: Session,
  name: string,
  range: SortRange,
  uuid: string,
  options: ForceUnlockOptions,
): Promise<boolean> {
  forceUnlockOptions(uuid, options);
  const { rows } = await rowsIn(session, name, range, { consistent: true });
  const held = rows.find((row) => row.uuid === uuid);
  return held !== undefined && (await forceUnlock(session, held, uuid, options));
}
