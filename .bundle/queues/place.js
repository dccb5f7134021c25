import { publish } from "../diagnostics.js";
import { LockLostError, LockStoreError } from "../errors.js";
import { Lease } from "../holding/lease.js";
import { placeAt } from "../protocol/addresses.js";
import { firstTimeoutMs } from "../session/requests.js";
import { claim } from "../taking/claim.js";
import { learnTime } from "../taking/known-time.js";
import { guardOf } from "../taking/row-lease.js";
import { boundsOf } from "../time/clock.js";
const MOST_TAKEN = 5;
const PLACE_EVENTS = {
    hasSection: false,
    renewed: () => undefined,
    renewalFailed: ({ at: { name } }, cause) => publish("dynamutex:wait-failed", { name, cause }),
};
export class Place {
    ticket;
    uuid;
    last;
    onLost = () => undefined;
    #session;
    #lease;
    constructor(session, row, ticket, last) {
        this.ticket = ticket;
        this.uuid = row.uuid;
        this.last = last;
        this.#session = session;
        this.#lease = new Lease(session, row, PLACE_EVENTS);
        this.#lease.keep();
        this.#lease.begin({ abort: (reason) => this.#tell(reason) });
    }
    until = () => (this.lost === undefined ? this.#lease.deadline : Number.NEGATIVE_INFINITY);
    get lost() {
        return this.#lease.lost;
    }
    get wasTooShort() {
        return this.lost?.reason === "expired" && guardOf(this.#lease.row) === undefined;
    }
    #tell(why) {
        if (!(why instanceof LockLostError))
            return;
        const reason = why.reason === "expired" ? why.reason : "deleted";
        publish("dynamutex:ticket-lost", { name: this.#lease.row.at.name, ticket: this.ticket, uuid: this.uuid, reason });
        this.onLost();
    }
    lose() {
        this.#lease.lose("deleted");
    }
    giveUp() {
        this.#session.detach(this.#lease.exit.giveBack());
    }
}
export async function takePlace(session, resource, wait, sharing) {
    const { name, kind } = resource;
    const { keys, side } = kind.queue;
    const settings = placeSettings(resource.settings);
    let shared;
    const onSent = () => {
        shared ??= sharing();
    };
    for (let taken = 0; taken < MOST_TAKEN; taken += 1) {
        wait.endSignal.throwIfAborted();
        const ticket = await drawTicket(session, resource, wait, onSent);
        wait.endSignal.throwIfAborted();
        const { last, ...needs } = shared ?? sharing();
        const data = sharingIn(needs, side);
        const result = await claim(session, { at: placeAt(name, ticket, keys), settings }, wait, { data });
        if (result.kind === "granted")
            return new Place(session, result.granted, ticket, last);
    }
    throw new LockStoreError(`Lock ${JSON.stringify(name)}: its counter gives numbers that others have already; somebody has set back the ` +
        `item ${JSON.stringify(keys.counter)} of this lock: delete it, and it will start again behind them`);
}
function sharingIn({ sections, permits }, side) {
    if (permits > sections)
        return { sections: permits, callers: sections };
    return side === undefined ? { sections } : { sections, side };
}
async function drawTicket(session, resource, wait, onSent) {
    const { clock, store } = session;
    const { name, kind, settings } = resource;
    const counter = { name, sort: kind.queue.keys.counter };
    const persistence = { kind: "take", firstTimeoutMs: firstTimeoutMs(settings.ttlMs), until: wait.until };
    for (;;) {
        await learnTime(session, resource.at, wait);
        const outcome = await wait.persistAtKnownTime(persistence, (signal) => {
            onSent();
            return store.write({ kind: "draw", at: counter, seed: Math.ceil(boundsOf(clock).latest) }, signal);
        });
        if (outcome?.kind === "applied" && outcome.drawn !== undefined)
            return outcome.drawn;
        await wait.again();
    }
}
function placeSettings(settings) {
    const { ttlMs, safetyMarginMs } = settings;
    const renewEveryMs = Math.floor(Math.min(ttlMs / 2, ((ttlMs - safetyMarginMs) * 2) / 3));
    return { ...settings, renewEveryMs, autoRenew: true, maxHoldMs: Number.POSITIVE_INFINITY, fencing: false };
}
