import { AsyncResource } from "node:async_hooks";
import { CHANNELS, publish } from "../diagnostics.js";
import { LockTimeoutError } from "../errors.js";
import { onAbort } from "../session/abort-listening.js";
import { leaseInUse, watchForStuck } from "./stuck.js";
export const FIRST_ANSWER_MS = 10_000;
const LAST_CALL = Symbol.for("dynamutex.lastCall");
const numbering = globalThis;
export class Call {
    name;
    number;
    bounds;
    holderNow;
    onSeen;
    leasesOver = 0;
    failure;
    isSettled = false;
    #session;
    #context = new AsyncResource("DynamutexCall");
    #startedAt;
    #startedAtLeast;
    #answersBefore;
    #onEnd = [];
    #isMissed = false;
    #resolve;
    #reject;
    #unregister;
    #cancelTimer;
    #stopListening;
    #endStuckWatch;
    #mayExit;
    constructor(session, name, bounds) {
        this.#session = session;
        this.name = name;
        this.number = (numbering[LAST_CALL] ?? 0) + 1;
        numbering[LAST_CALL] = this.number;
        this.bounds = bounds;
        this.#startedAt = session.clock.atMost();
        this.#startedAtLeast = session.clock.atLeast();
        this.#answersBefore = session.scheduler.answers;
    }
    get isPatient() {
        return this.bounds.isPatient ?? false;
    }
    get waitedMs() {
        return this.#session.clock.atLeast() - this.#startedAtLeast;
    }
    get remainingMs() {
        return (this.bounds.waitMs ?? Number.POSITIVE_INFINITY) - this.waitedMs;
    }
    until() {
        const { scheduler } = this.#session;
        if (!this.isPatient)
            return this.#startedAt + FIRST_ANSWER_MS;
        if (scheduler.answers > this.#answersBefore)
            return Number.POSITIVE_INFINITY;
        return Math.max(this.#startedAt, scheduler.silentSince) + FIRST_ANSWER_MS;
    }
    get holder() {
        return this.holderNow?.();
    }
    inContext(run) {
        return this.#context.runInAsyncScope(run);
    }
    begin(start) {
        const { signal, waitMs = Number.POSITIVE_INFINITY, asksFor = 0 } = this.bounds;
        return new Promise((resolve, reject) => {
            this.#resolve = resolve;
            this.#reject = reject;
            this.#unregister = this.#session.waiting((reason) => this.fail(reason, "closed"));
            if (Number.isFinite(waitMs))
                this.#cancelTimer = this.#session.clock.alarm(waitMs, () => this.#timeOut());
            this.#stopListening = signal && onAbort(signal, () => this.fail(signal.reason, "aborted"));
            if (asksFor > 0 && CHANNELS["dynamutex:asked"].hasSubscribers)
                publish("dynamutex:asked", { name: this.name ?? "", call: this.number, locks: asksFor });
            if (!this.isSettled)
                start();
        });
    }
    atEnd(listener) {
        this.#onEnd.push(listener);
    }
    settle(answer) {
        if (!this.#end(undefined))
            return false;
        this.#resolve?.(answer);
        return true;
    }
    fail(reason, because = "error") {
        if (!this.#end({ reason }))
            return;
        this.#reject?.(reason);
        if ((this.bounds.asksFor ?? 0) > 0 && !this.#isMissed)
            this.inContext(() => publish("dynamutex:failed", { ...this.#ended, because, cause: reason }));
    }
    timeout(because) {
        const inThisProcess = leaseInUse(this.#session, this.holder?.uuid) !== undefined;
        const options = { inThisProcess, because, ...(this.failure !== undefined && { cause: this.failure }) };
        return new LockTimeoutError(this.name ?? "", this.waitedMs, this.holder, options);
    }
    missed(because) {
        if (this.isSettled)
            return;
        this.#isMissed = true;
        this.inContext(() => publish("dynamutex:missed", { ...this.#ended, because, holder: this.holder }));
    }
    requestFailed(cause) {
        this.failure = cause;
        const { name } = this;
        if (name !== undefined)
            this.inContext(() => publish("dynamutex:wait-failed", { name, cause }));
    }
    isBlocked() {
        if (!this.isPatient || this.isSettled)
            return;
        this.#endStuckWatch ??= this.inContext(() => watchForStuck(this.#session, this.number, () => this.holder?.uuid));
    }
    stay() {
        if (this.isPatient && !this.isSettled)
            this.#mayExit ??= this.#session.clock.stay?.();
    }
    #timeOut() {
        try {
            this.missed("timeout");
            this.fail(this.timeout());
        }
        catch (error) {
            this.fail(error);
        }
    }
    #end(failure) {
        if (this.isSettled)
            return false;
        this.isSettled = true;
        this.#unregister?.();
        this.#cancelTimer?.();
        this.#stopListening?.();
        this.#endStuckWatch?.();
        this.#mayExit?.();
        for (const listener of this.#onEnd)
            listener(failure);
        return true;
    }
    get #ended() {
        return { name: this.name ?? "", call: this.number, waitedMs: this.waitedMs };
    }
}
