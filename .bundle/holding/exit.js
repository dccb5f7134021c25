import { LockLostError } from "../errors.js";
import { minimumHold } from "../protocol/lease-time.js";
import { rowsOf } from "../session/session.js";
import { abandon, rowAfterRelease, untilGivenBack } from "../taking/abandoned-claims.js";
import { guardOf } from "../taking/row-lease.js";
import { renew, transfer, vacate } from "../taking/row-writes.js";
import { boundsOf } from "../time/clock.js";
import { handOffUuid } from "./hand-off-token.js";
export class Exit {
    hold;
    result;
    hasBegun = false;
    #session;
    #lease;
    #exited;
    constructor(session, lease) {
        this.#session = session;
        this.#lease = lease;
    }
    holdAtLeast(ms) {
        const { clock } = this.#session;
        this.hold = ms > 0 ? minimumHold(ms, clock.atLeast(), boundsOf(clock)) : undefined;
    }
    release() {
        const from = this.#session.clock.atMost();
        return this.#exited ?? this.#leave(() => this.#release(() => this.#releaseUntil(from)));
    }
    giveBack() {
        const { row } = this.#lease;
        abandon(this.#session, row, this.hold);
        return this.#exited ?? this.#leave(() => this.#release(() => untilGivenBack(this.#session, row)));
    }
    handOff(withinMs, tick) {
        const { lost } = this.#lease;
        return lost === undefined ? this.#leave(() => this.#handOff(withinMs, tick)) : Promise.reject(lost);
    }
    #leave(how) {
        this.#lease.leave();
        this.#session.keepLease(this.#lease);
        const leaving = this.#last(how);
        this.#exited = leaving.then(() => undefined, (error) => {
            if (error instanceof LockLostError)
                throw error;
        });
        this.#exited.catch(() => undefined);
        return leaving;
    }
    async #last(how) {
        try {
            if (this.#lease.writing !== undefined)
                await this.#lease.endWriting();
            return await how();
        }
        finally {
            this.#session.forgetLease(this.#lease);
        }
    }
    async #release(until) {
        const { lost } = this.#lease;
        if (lost === undefined) {
            const released = await this.#vacate(until());
            if (released.kind === "lost" && !this.#lease.hasRunOut)
                throw this.#lease.markLost(released.why);
            return;
        }
        const { reason } = lost;
        if (reason === "expired")
            await this.#vacate(undefined);
        else if (reason === "max-hold" || reason === "closed" || this.#lease.row.others !== undefined)
            await this.#vacate(until());
        throw lost;
    }
    async #handOff(withinMs, tick) {
        const { clock, uuid } = this.#session;
        const { row, usableUntil } = this.#lease;
        const { hold } = this;
        const secret = uuid();
        const facts = {
            ...(tick !== undefined && { tick }),
            ...(hold && { heldUntil: hold.expires, heldForMs: Math.ceil(hold.ms) }),
        };
        const heldMs = hold === undefined ? 0 : Math.ceil(hold.ms - (clock.atLeast() - hold.startedAt));
        const giveUpAt = Math.min(clock.atMost() + row.settings.releaseWithinMs, usableUntil);
        const trying = { until: () => giveUpAt };
        const ready = guardOf(row) === undefined ? await renew(this.#session, row, trying) : { kind: "ok", lease: row };
        const rows = rowsOf(row).map(({ at }) => at);
        const handOffOf = (at) => ({ ...facts, uuid: handOffUuid(secret, at, rows) });
        const handed = { handOffOf, ttlMs: Math.max(withinMs, heldMs) };
        const written = ready.kind === "ok" ? await transfer(this.#session, ready.lease, trying, handed) : ready;
        this.#lease.row = written.lease;
        switch (written.kind) {
            case "ok":
                return secret;
            case "lost":
                if (row.others !== undefined)
                    await this.#vacate(this.#releaseUntil());
                throw this.#lease.markLost(this.#lease.hasRunOut ? "expired" : written.why);
            case "unknown": {
                const { cause } = written;
                await this.#vacate(this.#releaseUntil());
                throw this.#lease.hasRunOut ? this.#lease.markLost("expired", cause) : cause;
            }
            default:
                return written;
        }
    }
    #releaseUntil(from = this.#session.clock.atMost()) {
        const { hasRunOut, row } = this.#lease;
        if (hasRunOut)
            return undefined;
        const giveUpAt = Math.min(from + row.settings.releaseWithinMs, row.validUntil);
        return () => giveUpAt;
    }
    #vacate(until) {
        const { hold, result, hasBegun } = this;
        const leaves = hold === undefined ? { kind: "free", result } : rowAfterRelease(this.#session, hold);
        return vacate(this.#session, this.#lease.row, { until, leaves, hasBegun });
    }
}
