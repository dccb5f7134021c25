import { Lease } from "../holding/lease.js";
import { copyOf } from "../lock-info.js";
import type { LockOptions } from "../options/calls.js";
import type { SetMember } from "../options/lock-all.js";
import { lockAt } from "../protocol/addresses.js";
import { listenWithoutBound } from "../session/abort-listening.js";
import type { Session } from "../session/session.js";
import { runFor } from "../taking/bid.js";
import { Call } from "../taking/call.js";
import { claimBy, tryClaim } from "../taking/claim.js";
import { type Target, uuidsOf } from "../taking/row-lease.js";
import { SetTake } from "../taking/set-take.js";
import { leaseWasOver } from "../taking/too-slow.js";
import { HeldLockSet, type LockSet } from "./lock-set.js";
import { SetWatch } from "./set-watch.js";

/**
 * @internal Takes all of these locks by one transaction, all or none.
 *
 * 1. Try to take them. A refusal shows the rows that are in the way, so nothing needs to be read.
 * 2. Wait until none of them looks held, as {@link SetWatch} does: one read a poll, however many the locks are.
 * 3. Go on with 1. Nothing is held meanwhile, so no two sets wait for one another.
 */
export async function lockAll(
  session: Session,
  members: readonly SetMember[],
  { signal, data: given, holdAtLeastMs = 0, waitMs = Number.POSITIVE_INFINITY }: LockOptions,
): Promise<LockSet> {
  signal?.throwIfAborted();
  session.assertOpen();
  session.store.admit(given, members.length);
  const data = given && copyOf(given);
  const targets = members.map(({ name, settings }) => ({ at: lockAt(name), settings })) as [Target, ...Target[]];
  const first = targets.reduce((least, target) => (leaseMs(target) < leaseMs(least) ? target : least));
  const names = members.map(({ name }) => name);
  const isPatient = waitMs > 0;
  const call = new Call<LockSet>(session, names.join(", "), { signal, waitMs, isPatient, asksFor: names.length });
  return await runFor(session, call, async (bid) => {
    // Rows are read and renewed side by side, and the call ends them all.
    listenWithoutBound(bid.withdrawn);
    const send = () => claimBy(session, first, bid, {}, () => new SetTake(session, targets, data));
    const refusers = new SetWatch(session, bid, first);
    for (;;) {
      const claimed = await (isPatient ? send() : tryClaim(session, bid, send));
      if (claimed.kind !== "granted") {
        if (!isPatient) {
          call.missed("held");
          throw call.refusal();
        }
        await refusers.untilFree(claimed.inTheWay);
        continue;
      }
      const leases = claimed.granted.map((row) => new Lease(session, row));
      const stand = await Promise.all(leases.map(({ renewals }) => renewals.secure(bid)));
      // One lease may be over by the time that the last one is secured.
      if (stand.every((stands) => stands) && leases.every(({ stands }) => stands) && !call.isSettled) {
        for (const lease of leases) lease.keep();
        const set = new HeldLockSet(session, leases);
        call.settle(set);
        for (const lease of leases) lease.exit.holdAtLeast(holdAtLeastMs);
        const { number, waitedMs } = call;
        for (const lock of set.locks.values()) lock.delivered({ call: number, waitedMs });
        return;
      }
      for (const { exit } of leases) session.detach(exit.giveBack());
      bid.withdrawn.throwIfAborted();
      for (const uuid of leases.flatMap(({ row }) => uuidsOf(row))) session.sightings.disown(uuid);
      leaseWasOver(bid, { name: first.at.name, settings: first.settings });
      // Others have not kept it from its rows since.
      bid.view.unblock();
    }
  });
}

const leaseMs = ({ settings }: Target): number => settings.ttlMs - settings.safetyMarginMs;
