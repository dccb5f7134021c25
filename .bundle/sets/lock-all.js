import { Lease } from "../holding/lease.js";
import { copyOf } from "../lock-info.js";
import { lockAt } from "../protocol/addresses.js";
import { listenWithoutBound } from "../session/abort-listening.js";
import { Call } from "../taking/call.js";
import { claimBy, tryClaim } from "../taking/claim.js";
import { uuidsOf } from "../taking/row-lease.js";
import { SetTake } from "../taking/set-take.js";
import { leaseWasOver } from "../taking/too-slow.js";
import { runFor } from "../taking/wait.js";
import { HeldLockSet } from "./lock-set.js";
import { SetWatch } from "./set-watch.js";
export async function lockAll(session, members, { signal, data: given, holdAtLeastMs = 0, waitMs = Number.POSITIVE_INFINITY }) {
    signal?.throwIfAborted();
    session.assertOpen();
    session.store.admit(given);
    const data = given && copyOf(given);
    const targets = members.map(({ name, settings }) => ({ at: lockAt(name), settings }));
    const first = targets.reduce((least, target) => (leaseMs(target) < leaseMs(least) ? target : least));
    const names = members.map(({ name }) => name);
    const isPatient = waitMs > 0;
    const bounds = { signal, waitMs: isPatient ? waitMs : Number.POSITIVE_INFINITY, isPatient, asksFor: names.length };
    const call = new Call(session, names.join(", "), bounds);
    return await runFor(session, call, async (wait) => {
        listenWithoutBound(wait.endSignal);
        const send = () => claimBy(session, first, wait, {}, () => new SetTake(session, wait, targets, data));
        const refusers = new SetWatch(session, wait, first);
        for (;;) {
            const claimed = await (isPatient ? send() : tryClaim(wait, send));
            if (claimed.kind !== "granted") {
                if (!isPatient) {
                    call.missed("held");
                    throw call.timeout();
                }
                await refusers.untilFree(claimed.inTheWay);
                continue;
            }
            const leases = claimed.granted.map((row) => new Lease(session, row));
            const stand = await Promise.all(leases.map(({ renewals }) => renewals.secure(wait)));
            if (stand.every((stands) => stands) && leases.every(({ stands }) => stands) && !call.isSettled) {
                for (const lease of leases)
                    lease.keep();
                const set = new HeldLockSet(session, leases);
                call.settle(set);
                for (const lease of leases)
                    lease.exit.holdAtLeast(holdAtLeastMs);
                const { number, waitedMs } = call;
                for (const lock of set.locks.values())
                    lock.delivered({ call: number, waitedMs });
                return;
            }
            for (const { exit } of leases)
                session.detach(exit.giveBack());
            wait.endSignal.throwIfAborted();
            for (const uuid of leases.flatMap(({ row }) => uuidsOf(row)))
                wait.sightings.abandon(uuid);
            leaseWasOver(wait, { name: first.at.name, settings: first.settings });
            refusers.restart();
        }
    });
}
const leaseMs = ({ settings }) => settings.ttlMs - settings.safetyMarginMs;
