import { publish } from "../diagnostics.js";
import { type ForceUnlockOptions, forceUnlockOptions } from "../options/calls.js";
import { type Address, acquisitionOf, type SortRange } from "../protocol/addresses.js";
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
  const { now = false, signal } = forceUnlockOptions(uuid, options);
  const wasHeld = await endOf(session, { name, sort }, uuid, { now, signal });
  if (wasHeld) tell(session, name, uuid, now);
  return wasHeld;
}

/** The same for whichever rows of a range belong to this acquisition. */
export async function forceUnlockIn(
  session: Session,
  name: string,
  range: SortRange,
  uuid: string,
  options: ForceUnlockOptions,
): Promise<boolean> {
  const { now = false, signal } = forceUnlockOptions(uuid, options);
  const { rows } = await rowsIn(session, name, range, { consistent: true, signal });
  const wereHeld: boolean[] = [];
  for (const { sort, uuid: held } of rows) {
    const isPart = held !== undefined && acquisitionOf({ sort, uuid: held }) === acquisitionOf({ sort, uuid });
    if (isPart) wereHeld.push(await endOf(session, { name, sort }, held, { now, signal }));
  }
  const wasHeld = wereHeld.includes(true);
  if (wasHeld) tell(session, name, uuid, now);
  return wasHeld;
}

/** @returns whether this uuid was on the row until now. */
async function endOf(
  session: Session,
  at: Address,
  uuid: string,
  { now, signal: ends }: ForceUnlockOptions,
): Promise<boolean> {
  const copies = new Copies();
  const leaves = { kind: now ? "kept" : "untilExpires" } as const;
  const write: Vacate = { kind: "vacate", at, uuid, leaves, remembers: "nothing" };
  const send = (signal: AbortSignal) => copies.count(session.store.write(write, signal));
  const outcome = await adminRequest(session, send, { signal: ends });
  if (outcome.kind === "applied") return true;
  // A copy that was throttled counts as well: the network may have delivered it twice.
  const earlierCopyUnanswered = outcome.retried || copies.sent > 1;
  return wasApplied(write, outcome.row, { earlierCopyUnanswered }) === "yes";
}

function tell(session: Session, name: string, uuid: string, now: boolean): void {
  publish("dynamutex:forced", { name, uuid, now });
  // A holder elsewhere learns of it at its next renewal. One in this process must not wait for that, and neither must the
  // calls that wait behind it.
  const own = session.leases.with(uuid);
  if (own !== undefined && session.leases.has(own)) own.lose("forced");
}
