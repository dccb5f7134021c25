import { CHANNELS, publish } from "../diagnostics.js";
import { guardOf, isHalfGone, lossOf } from "../taking/row-lease.js";
import { reissue, renew } from "../taking/row-writes.js";
export const LOCK_EVENTS = {
    hasSection: true,
    renewed: ({ at, uuid }, remainingMs) => {
        if (CHANNELS["dynamutex:renewed"].hasSubscribers)
            publish("dynamutex:renewed", { name: at.name, uuid, remainingMs });
    },
    renewalFailed: ({ at, uuid }, cause) => publish("dynamutex:renewal-failed", { name: at.name, uuid, cause }),
};
const MANY = 16;
const MOMENTS_PER_PERIOD = 8;
const RENEW_AGAIN_MS = 50;
export class Renewals {
    #session;
    #term;
    mayHaveData;
    #usage = "unused";
    constructor(session, term) {
        this.#session = session;
        this.#term = term;
        this.mayHaveData = term.row.data !== undefined;
    }
    get haveServed() {
        return this.#usage !== "unused";
    }
    start(share = 1) {
        this.#arm(this.#dueIn() * share);
    }
    spread() {
        return this.haveServed || this.#session.leases.size < MANY ? 1 : 0.5 + this.#session.random() / 2;
    }
    serve() {
        this.#usage = "used";
        if (!this.#term.row.settings.autoRenew)
            this.#term.stopRenewing();
    }
    async renew() {
        for (;;) {
            const { lost } = this.#term;
            if (lost !== undefined)
                return { kind: "lost", why: lost.reason };
            const { writing } = this.#term;
            if (writing === undefined)
                return await this.#term.write((row, trying) => renew(this.#session, row, trying));
            const outcome = await writing.done;
            if (!writing.hasData || outcome.kind !== "unknown" || this.#term.isOver)
                return outcome;
        }
    }
    async extend() {
        this.#throwIfNotRenewed(await this.renew());
    }
    async replaceData(data) {
        const { lost, deadline } = this.#term;
        if (lost !== undefined)
            throw lost;
        this.mayHaveData = true;
        const giveUpAt = (this.#session.clock.atMost() + deadline) / 2;
        const send = (row, trying) => renew(this.#session, row, trying, data);
        this.#throwIfNotRenewed(await this.#term.write(send, { until: () => giveUpAt, hasData: true }));
    }
    async secure(wait, { mayLapse } = { mayLapse: true }) {
        if (this.#term.writing !== undefined)
            await this.#term.endWriting();
        const session = this.#session;
        const { clock } = session;
        const { row } = this.#term;
        const tryingUntil = (end) => ({
            until: () => Math.min(end, wait.until()),
            endSignal: wait.endSignal,
        });
        if (this.#term.stands) {
            if (!isHalfGone(session, row))
                return true;
            const { usableUntil } = this.#term;
            const renewed = await renew(session, row, tryingUntil(usableUntil));
            this.#term.row = renewed.lease;
            if (renewed.kind === "lost")
                return false;
            if (clock.atMost() < usableUntil)
                return true;
        }
        if (!mayLapse)
            return false;
        const { ttlMs, safetyMarginMs } = row.settings;
        const reissued = await reissue(session, this.#term.row, tryingUntil(clock.atMost() + ttlMs - safetyMarginMs));
        this.#term.row = reissued.lease;
        return reissued.kind === "ok" && this.#term.stands;
    }
    async renewForNext() {
        const { settings } = this.#term;
        const mustReissue = this.#usage === "guarded" || (this.#usage === "used" && settings.fencing);
        if (!mustReissue && !isHalfGone(this.#session, this.#term.row))
            return this.#term.stands;
        await this.#term.endWriting();
        if (!this.#term.stands)
            return false;
        const giveUpAt = Math.min(this.#session.clock.atMost() + settings.releaseWithinMs, this.#term.usableUntil);
        const write = mustReissue ? reissue : renew;
        const send = (row, trying) => write(this.#session, row, trying);
        const { kind } = await this.#term.write(send, { until: () => giveUpAt });
        if (mustReissue && kind === "ok")
            this.#usage = "reissued";
        return kind === "ok" && this.#term.stands;
    }
    async guard() {
        this.#usage = "guarded";
        for (;;) {
            const guard = guardOf(this.#term.row);
            if (guard !== undefined)
                return guard;
            await this.extend();
        }
    }
    #dueIn() {
        const { validUntil, settings } = this.#term.row;
        return Math.max(0, validUntil - (settings.ttlMs - settings.renewEveryMs) - this.#session.clock.atMost());
    }
    #arm(ms) {
        const gridMs = this.#term.row.settings.renewEveryMs / MOMENTS_PER_PERIOD;
        this.#term.renewIn(ms, () => void this.#renewOnTime(), gridMs);
    }
    async #renewOnTime() {
        const { validUntil, settings } = this.#term.row;
        const { kind } = await this.renew();
        if (kind === "lost" || !this.#term.held || (this.haveServed && !settings.autoRenew))
            return;
        const isLonger = kind === "ok" && this.#term.row.validUntil > validUntil;
        this.#arm(Math.max(isLonger ? 0 : RENEW_AGAIN_MS, this.#dueIn()));
    }
    #throwIfNotRenewed(outcome) {
        if (outcome.kind === "lost")
            throw this.#term.lost ?? lossOf(this.#term.row, outcome.why);
        if (outcome.kind === "unknown")
            throw outcome.cause;
    }
}
