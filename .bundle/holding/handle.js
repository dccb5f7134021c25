import { LockConfigError, LockError, LockLostError } from "../errors.js";
import { copyOf } from "../lock-info.js";
import { checkData, checkMinRemaining, guardOptions, handOffOptions } from "../options/calls.js";
import { permitOf } from "../protocol/addresses.js";
import { retraced } from "../retraced.js";
import { follow } from "../session/abort-listening.js";
import { rowsOf } from "../session/session.js";
import { SHOWN, shownAs } from "../shown.js";
import { guardFor, transactUnder } from "./guarded-writes.js";
import { tokenOf } from "./hand-off-token.js";
import { LossSignal } from "./loss-signal.js";
import { recordSuccess } from "./record-success.js";
import { SectionEvents } from "./section-events.js";
export class HeldLock {
    uuid;
    owner;
    acquired;
    tick;
    attempt;
    #session;
    #lease;
    #lossSignal;
    #end;
    #mayHandOff;
    #events;
    onLost = () => undefined;
    #over;
    constructor(section) {
        const { uuid, fence } = section.lease.row;
        this.uuid = uuid;
        this.owner = section.session.owner;
        if (fence !== undefined)
            this.fencingToken = fence;
        this.acquired = new Date(section.acquired);
        this.tick = section.tick;
        this.attempt = section.lease.row.attempt;
        this.#session = section.session;
        this.#lease = section.lease;
        this.#end = section.end ?? (({ exit }) => exit.release());
        this.#mayHandOff = section.mayHandOff ?? true;
        if (section.lease.row.permits !== undefined) {
            this.permits = rowsOf(section.lease.row).map(({ at }) => permitOf(at.sort) ?? 0);
            this.permit = this.permits[0] ?? 0;
        }
        this.#events = new SectionEvents(section.session, section.lease, this);
        this.#events.beganAt = section.lease.begin(this);
    }
    delivered(wait) {
        if (this.attempt !== undefined)
            this.#lease.exit.hasBegun = true;
        this.#events.delivered(wait);
    }
    renewed() {
        this.#events.renewed();
    }
    names(result) {
        this.#lease.exit.result = result;
    }
    get wanted() {
        return this.held && this.#lease.turnLeftMs <= 0;
    }
    get name() {
        return this.#lease.row.at.name;
    }
    get expires() {
        return new Date(Math.min(...rowsOf(this.#lease.row).map(({ expires }) => expires)));
    }
    get signal() {
        void this.lost;
        return this.#signal.signal;
    }
    get #signal() {
        this.#lossSignal ??= new LossSignal(() => this.lost);
        return this.#lossSignal;
    }
    abort(reason) {
        this.#abort(reason);
        this.onLost();
        if (reason instanceof LockLostError)
            this.#events.lost(reason);
    }
    #abort(reason) {
        this.#events.stopWatching();
        this.#signal.abort(reason);
    }
    get held() {
        return this.#over === undefined && this.#lease.held;
    }
    get remainingMs() {
        return this.#over === undefined ? this.#lease.remainingMs : 0;
    }
    assertHeld(minRemainingMs = 0) {
        checkMinRemaining(minRemainingMs);
        this.#throwIfNotHeld();
        const { remainingMs } = this;
        if (remainingMs >= minRemainingMs)
            return;
        const because = `${Math.floor(remainingMs)} ms of its lease are left, and ${minRemainingMs} were asked for`;
        throw new LockLostError(this.name, this.uuid, "expired", { because });
    }
    async extend(ms) {
        if (ms !== undefined) {
            throw new LockConfigError("extend()", ms, "takes no length: it renews the lease for the ttlMs of the lock's options");
        }
        await this.#renew(() => this.#lease.renewals.extend());
    }
    get data() {
        return this.#lease.row.data;
    }
    async replaceData(data) {
        checkData(data);
        this.#session.store.admit(data);
        const copy = copyOf(data);
        const lease = this.#lease;
        this.#throwIfNotHeld();
        for (;;) {
            if (lease.writing !== undefined)
                await lease.writing.done;
            else if (lease.lastFailure !== undefined)
                await this.extend();
            else
                break;
        }
        await this.#renew(() => lease.renewals.replaceData(copy));
    }
    async #renew(send) {
        this.#throwIfNotHeld();
        try {
            await send();
        }
        catch (error) {
            this.#throwIfNotHeld();
            throw retraced(error);
        }
    }
    unlock() {
        const { lost } = this;
        this.#over ??= { done: this.#endSection(), lost };
        return this.#over.done;
    }
    async #endSection() {
        this.#events.ended();
        try {
            await this.#end(this.#lease, this);
        }
        catch (error) {
            this.abort(error);
            throw retraced(error);
        }
        finally {
            this.#events.tellEnd();
        }
    }
    uncountAttempt() {
        this.#lease.exit.hasBegun = false;
    }
    untilStepEnds() {
        const leftMs = this.#lease.deadline - this.#session.clock.atMost();
        return this.#session.untilClosed(Math.max(this.#lease.settings.releaseWithinMs, leftMs));
    }
    async recordSuccess() {
        const { attempt, tick } = this;
        if (tick === undefined || attempt === undefined)
            return;
        this.#lease.exit.hasBegun = true;
        const recorded = recordSuccess(this.#session, this.#lease.row, { tick, attempt }, this.untilStepEnds());
        this.#session.detach(recorded);
        await recorded;
    }
    tellEnd() {
        this.#events.tellEnd();
    }
    async handOff(options) {
        const { withinMs } = handOffOptions(options);
        let remedy;
        if (this.attempt !== undefined)
            remedy = "must not be called in a run with `untilSuccess`: its end is recorded";
        if (!this.#mayHandOff)
            remedy =
                "must be an exclusive lock of a row of its own, and not that of singleFlight(): neither that nor those of a shared mutex can be handed off";
        if (remedy !== undefined)
            throw new LockConfigError("handOff()", this.name, remedy);
        if (this.#over !== undefined)
            this.#throwIfNotHeld();
        const handed = this.#lease.exit.handOff(withinMs, this.tick);
        handed.catch(() => undefined);
        const { lost } = this.#lease;
        const done = this.#endSection();
        this.#over = { done, lost };
        await done.catch(() => undefined);
        try {
            const rows = rowsOf(this.#lease.row).map(({ at }) => at);
            return tokenOf(this.#session.table, rows, await handed);
        }
        catch (error) {
            throw retraced(error);
        }
    }
    [Symbol.asyncDispose]() {
        return this.unlock();
    }
    async guard(options = {}) {
        const { document } = guardOptions(options);
        const { store } = this.#session;
        const guard = await guardFor(this.#session, this.#lease, this);
        return document ? store.documentGuard(guard) : store.guard(guard);
    }
    async transactWrite(items, options = {}) {
        await transactUnder(this.#session, this.#lease, this, items, options);
    }
    toJSON() {
        const { name, held, owner, uuid, acquired, expires, tick, attempt, permit, permits = [], fencingToken } = this;
        return {
            ...{ name, held, owner, uuid, acquired, expires },
            ...(tick !== undefined && { tick }),
            ...(attempt !== undefined && { attempt }),
            ...(permit !== undefined && { permit }),
            ...(permits.length > 1 && { permits }),
            ...(fencingToken !== undefined && { fencingToken: `${fencingToken}` }),
        };
    }
    [SHOWN](_depth, options) {
        return shownAs("Lock", this.toJSON(), options);
    }
    follow(signal) {
        return follow([signal], (reason) => this.#abort(reason));
    }
    get isOver() {
        return this.#over !== undefined;
    }
    get lost() {
        return this.#over === undefined ? this.#lease.lost : this.#over.lost;
    }
    #throwIfNotHeld() {
        if (this.held)
            return;
        const { lost } = this;
        if (lost !== undefined)
            throw retraced(lost);
        const name = JSON.stringify(this.name);
        throw new LockError("LOCK_RELEASED", `Lock ${name} has been unlocked: take it again before you rely on it`);
    }
}
