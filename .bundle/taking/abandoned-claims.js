import { publish } from "../diagnostics.js";
import { earliestOf, rowAfterHold } from "../protocol/lease-time.js";
import { mayTake } from "../protocol/may-take.js";
import { isStillHeldBy } from "../protocol/was-applied.js";
import { firstTimeoutMs, persist } from "../session/requests.js";
import { endAfter } from "../session/retry.js";
import { uuidsOf } from "./row-lease.js";
import { vacate } from "./row-writes.js";
const LOOK_EVERY_MS = 400;
const LOOK_FOR_MS = 10_000;
export function rowAfterRelease({ clock }, hold) {
    return rowAfterHold(hold, clock.atLeast(), clock.wall());
}
export function abandon(session, lease, hold) {
    if (rowAfterRelease(session, hold).kind === "free")
        for (const uuid of uuidsOf(lease))
            session.sightings.abandon(uuid, lease.attempt);
}
export async function giveBack(session, lease, hold) {
    abandon(session, lease, hold);
    await vacate(session, lease, { until: untilGivenBack(session, lease), leaves: rowAfterRelease(session, hold) });
}
export function untilGivenBack(session, { validUntil }) {
    return session.untilClosed(Math.max(validUntil - session.clock.atMost(), LOOK_FOR_MS));
}
export async function removeWhenItArrives(session, lease, hold) {
    abandon(session, lease, hold);
    const { clock, store } = session;
    const { at, uuid, validUntil, settings } = lease;
    const lookUntil = endAfter(clock, LOOK_FOR_MS);
    const ms = firstTimeoutMs(settings.ttlMs);
    const until = session.untilClosed(Math.max(LOOK_FOR_MS + LOOK_EVERY_MS + ms, validUntil - clock.atMost()));
    const persistence = { kind: "read", until, firstTimeoutMs: ms, worthRetrying: () => true };
    try {
        for (;;) {
            const row = await persist(session, persistence, (signal) => store.read(at, { consistent: true }, signal));
            const isThere = isStillHeldBy(uuid, row);
            if (isThere && (await vacate(session, lease, { until, leaves: rowAfterRelease(session, hold) })).kind === "ok")
                return true;
            const bounds = settings.takeover === "expired" ? clock.wall() : undefined;
            const isHarmless = mayTake(lease, { earliest: earliestOf(bounds) });
            const now = clock.atMost();
            if (now >= lookUntil() || isHarmless || now + LOOK_EVERY_MS >= until())
                return !isHarmless;
            await clock.sleep(LOOK_EVERY_MS);
        }
    }
    catch (cause) {
        publish("dynamutex:release-failed", { name: at.name, uuid, cause });
        return true;
    }
}
export function removeWhenTheyArrive(session, leases, hold) {
    for (const lease of leases)
        abandon(session, lease, hold);
    let rest;
    const look = async (lease) => {
        if (!(await removeWhenItArrives(session, lease, hold)))
            return;
        rest ??= Promise.all(leases.slice(2).map((other) => giveBack(session, other, hold)));
        await rest;
    };
    for (const lease of leases.slice(0, 2))
        session.detach(look(lease));
}
