import { publish } from "../diagnostics.js";
import { earliestOf, type MinimumHold, rowAfterHold } from "../protocol/lease-time.js";
import { mayTake } from "../protocol/may-take.js";
import { isStillHeldBy } from "../protocol/was-applied.js";
import type { RowAfterRelease } from "../protocol/writes.js";
import { firstTimeoutMs, persist } from "../session/requests.js";
import { endAfter } from "../session/retry.js";
import type { Session } from "../session/session.js";
import { type RowLease, uuidsOf } from "./row-lease.js";
import { vacate } from "./row-writes.js";

/** How often a claim whose arrival is uncertain is looked for. */
const LOOK_EVERY_MS = 400;

/** How long such a claim is looked for. A claim that arrives later ends at its own stamp, because no process renews it. */
const LOOK_FOR_MS = 10_000;

/** How a release leaves the row now: taken until its hold is over, if it has a hold, and free otherwise. */
export function rowAfterRelease({ clock }: Session, hold: MinimumHold | undefined): RowAfterRelease {
  return rowAfterHold(hold, clock.atLeast(), clock.wall());
}

/**
 * Notes that no section will use this row. From here on it keeps no call of this process out, unless it stays taken for its hold.
 */
export function disown(session: Session, lease: RowLease, hold?: MinimumHold): void {
  if (rowAfterRelease(session, hold).kind === "free")
    for (const uuid of uuidsOf(lease)) session.sightings.disown(uuid, lease.attempt);
}

/** Releases, in the background, a row that was taken and is not handed out: no section has run on it. */
export async function giveBack(session: Session, lease: RowLease): Promise<void> {
  disown(session, lease);
  await vacate(session, lease, { until: untilGivenBack(session, lease) });
}

/**
 * Until when the release of a row that is not handed out is retried: until its lease is over, or for {@link LOOK_FOR_MS} if
 * that is longer, because a stamp that was chosen while the time was uncertain lasts longer for others.
 */
export function untilGivenBack(session: Session, { validUntil }: RowLease): () => number {
  return session.untilClosed(Math.max(validUntil - session.clock.atMost(), LOOK_FOR_MS));
}

/**
 * Abandons a claim that may still arrive at the table, looks for its row, and releases the row once it is there. Ends when the
 * row was released, when its lease would be over on arrival, after {@link LOOK_FOR_MS}, or when a close has no time left. It
 * reads the row, because a refused delete would prove nothing. Runs in the background: the caller has had its answer.
 * @param hold that of the section before a hand-off: no section has run on any other such row.
 * @returns whether other rows of the same claim may be there: not if its lease is over.
 */
export async function removeWhenItArrives(session: Session, lease: RowLease, hold?: MinimumHold): Promise<boolean> {
  disown(session, lease, hold);
  const { clock, store } = session;
  const { at, uuid, validUntil, settings } = lease;
  const lookUntil = endAfter(clock, LOOK_FOR_MS);
  const ms = firstTimeoutMs(settings.ttlMs);
  const until = session.untilClosed(Math.max(LOOK_FOR_MS + LOOK_EVERY_MS + ms, validUntil - clock.atMost()));
  // Retry after any failure, as a release does: credentials may be refreshed.
  const persistence = { kind: "read", until, firstTimeoutMs: ms, worthRetrying: () => true } as const;
  try {
    for (;;) {
      const row = await persist(session, persistence, (signal) => store.read(at, { consistent: true }, signal));
      const isThere = isStillHeldBy(uuid, row);
      if (isThere && (await vacate(session, lease, { until, leaves: rowAfterRelease(session, hold) })).kind === "ok")
        return true;
      // A process that takes over by watching waits for a whole ttl, even if the row's lease ended long ago.
      const bounds = settings.takeover === "expired" ? clock.wall() : undefined;
      const isHarmless = mayTake(lease, { earliest: earliestOf(bounds) });
      // A closing table goes on looking, for as long as there is time for another look.
      const now = clock.atMost();
      if (now >= lookUntil() || isHarmless || now + LOOK_EVERY_MS >= until()) return !isHarmless;
      await clock.sleep(LOOK_EVERY_MS);
    }
  } catch (cause) {
    publish("dynamutex:release-failed", { name: at.name, uuid, cause });
    return true;
  }
}

/**
 * The same for rows that one transaction may have taken, or may take. Looks for two of them, and releases the others when it has found
 * these, or has looked in vain: a call of this process may have taken over both between two looks, or somebody may have unlocked
 * them by force.
 */
export function removeWhenTheyArrive(session: Session, leases: readonly RowLease[]): void {
  for (const lease of leases) disown(session, lease);
  let rest: Promise<unknown> | undefined;
  const look = async (lease: RowLease): Promise<void> => {
    if (!(await removeWhenItArrives(session, lease))) return;
    rest ??= Promise.all(leases.slice(2).map((other) => giveBack(session, other)));
    await rest;
  };
  for (const lease of leases.slice(0, 2)) session.detach(look(lease));
}
