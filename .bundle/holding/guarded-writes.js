import { CHANNELS } from "../diagnostics.js";
import { LockConfigError } from "../errors.js";
import { copyOf } from "../lock-info.js";
import { transactWriteOptions } from "../options/calls.js";
import { retraced } from "../retraced.js";
import { answeredWithin } from "../session/overdue.js";
import { firstTimeoutMs, persist } from "../session/requests.js";
import { isTransient, noAnswer } from "../session/retry.js";
const TRANSACT_WITHIN_MS = 10_000;
const NO_GUARDS = "is for a table of several Regions, which has no transactions and so no guards: in place of one, compare the fencing token in a " +
    "condition on the item itself (docs/regions.md in the package)";
const NO_GUARD_OF_SEVERAL = "must not be asked for on a lock of several permits, all of which no single condition can check: take one permit, or a mutex, for " +
    "the write that needs a guard";
export async function guardFor(session, lease, section) {
    const { regionSkewMs = 0 } = session.clock;
    if (regionSkewMs > 0)
        throw new LockConfigError("clock.regionSkewMs", regionSkewMs, NO_GUARDS);
    if (lease.row.others !== undefined)
        throw new LockConfigError("guard()", lease.row.at.name, NO_GUARD_OF_SEVERAL);
    section.assertHeld();
    try {
        return await lease.renewals.guard();
    }
    catch (error) {
        throw retraced(error);
    }
    finally {
        section.assertHeld();
    }
}
export async function transactUnder(session, lease, section, items, options) {
    const outcome = await sendUnder(session, lease, section, items, options).catch((error) => {
        throw retraced(error);
    });
    switch (outcome.kind) {
        case "committed":
            return;
        case "unguarded":
            if (!section.isOver)
                throw lease.unguarded(outcome.row);
            section.assertHeld();
            return;
        case "refused":
            throw outcome.error;
        default:
            outcome;
    }
}
async function sendUnder(session, lease, section, items, options) {
    const { withinMs = TRANSACT_WITHIN_MS } = transactWriteOptions(options);
    const { clock, store, uuid } = session;
    store.admitItems(lease.row.at, items);
    const copy = copyOf(items);
    const giveUpAt = clock.atMost() + withinMs;
    const guard = await answeredWithin(clock, withinMs, guardFor(session, lease, section));
    if (guard === undefined) {
        section.assertHeld();
        const { lastFailure } = lease;
        const isTold = lastFailure !== undefined && !isTransient(lastFailure);
        throw isTold ? lastFailure : noAnswer(withinMs, { sent: 1, failure: lastFailure });
    }
    const writes = { items: copy, guard, token: uuid(), isMetered: CHANNELS["dynamutex:request"].hasSubscribers };
    const until = () => Math.min(giveUpAt, clock.atMost() + section.remainingMs);
    const persistence = { kind: "take", until, firstTimeoutMs: firstTimeoutMs(lease.settings.ttlMs) };
    const sent = persist(session, persistence, (signal) => store.transact(writes, signal));
    return await sent.catch((error) => {
        if (section.lost !== undefined || isTransient(error))
            section.assertHeld();
        throw error;
    });
}
