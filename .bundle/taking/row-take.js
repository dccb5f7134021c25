import { displayTime, stamp } from "../protocol/lease-time.js";
import { mayTake } from "../protocol/may-take.js";
import { memoryAfter, memoryOf } from "../protocol/rules.js";
import { wasApplied } from "../protocol/was-applied.js";
import { boundsOf } from "../time/clock.js";
import { giveBack, removeWhenItArrives } from "./abandoned-claims.js";
import { rowLease } from "./row-lease.js";
export class RowTake {
    sentAt = Number.POSITIVE_INFINITY;
    #session;
    #sightings;
    #target;
    #purpose;
    #take;
    constructor(session, sightings, target, purpose) {
        this.#session = session;
        this.#sightings = sightings;
        this.#target = target;
        this.#purpose = purpose;
        session.mayRelease(target.settings.releaseWithinMs);
    }
    get uuids() {
        return [this.write.uuid];
    }
    get write() {
        if (this.#take === undefined) {
            this.sentAt = this.#session.clock.atMost();
            this.#take = this.#newTake();
        }
        return this.#take;
    }
    send(signal) {
        return this.#session.store.write(this.write, signal);
    }
    granted(outcome) {
        if (outcome.kind === "refused") {
            const { row } = outcome;
            return this.isOwn(row) ? this.taken(row, { remembered: memoryOf(row), fence: row?.fence }) : undefined;
        }
        const { replaced, drawn: fence } = outcome;
        return this.taken(replaced, { remembered: memoryOf(replaced), fence, takeover: this.#takeoverOf(replaced) });
    }
    refused(outcome) {
        return outcome.kind === "refused" ? this.refusedBy(outcome.row) : [];
    }
    abandon() {
        if (this.#take === undefined)
            return;
        this.giveUp();
        this.#session.detach(removeWhenItArrives(this.#session, this.lease()));
    }
    giveUp() {
        this.#sightings.abandon(this.write.uuid, this.write.attempt);
    }
    isOwn(row) {
        return wasApplied(this.write, row) !== "no";
    }
    taken(row, found) {
        if (row?.wanted !== undefined)
            this.#session.contended().sees(row);
        this.#sightings.note(this.#target.at, undefined);
        return this.lease(found);
    }
    refusedBy(row) {
        this.giveUp();
        if (row === undefined)
            return [];
        if (!this.isOwn(row))
            return [{ target: this.#target, row }];
        this.#session.detach(giveBack(this.#session, this.lease()));
        return [];
    }
    lease({ remembered = this.write.remembers, fence, takeover } = {}) {
        const { uuid, expires, acquired, data, tick, attempt, knowledge } = this.write;
        return rowLease(this.#session, this.#target, {
            ...{ uuid, expires, sentAt: this.sentAt, acquired, data, tick, attempt, takeover },
            remembers: memoryAfter({ ...this.write, remembers: remembered }),
            fence: this.#target.settings.fencing ? fence : undefined,
            namedHold: knowledge.unchanged?.uuid === undefined ? knowledge.unchanged?.expires : undefined,
        });
    }
    #newTake() {
        const { at, settings, permits } = this.#target;
        const { clock, owner, contention } = this.#session;
        const sightings = this.#sightings;
        const { ttlMs, fencing, takeover } = settings;
        const bounds = boundsOf(clock);
        const { data, tick, after } = this.#purpose;
        return {
            ...{ data, tick, after, ...this.#attempt() },
            kind: "take",
            at,
            uuid: this.#session.uuid(),
            expires: stamp(bounds, ttlMs),
            ttlMs,
            owner,
            acquired: displayTime(bounds),
            wanted: contention?.markOf(at),
            permits,
            knowledge: sightings.knowledge(at, takeover),
            remembers: sightings.memory(at),
            fenceSeed: fencing ? Math.ceil(bounds.latest) : undefined,
        };
    }
    #attempt() {
        const { tick, maxAttempts } = this.#purpose;
        if (tick === undefined || maxAttempts === undefined)
            return {};
        const next = this.#sightings.nextAttempt(this.#target.at, tick);
        return next.attempt > maxAttempts ? { attempt: 1 } : next;
    }
    #takeoverOf(replaced) {
        if (replaced?.uuid === undefined || this.#sightings.isAbandoned(replaced))
            return undefined;
        return mayTake(replaced, { earliest: this.write.knowledge.earliest }) ? "expired" : "unchanged";
    }
}
