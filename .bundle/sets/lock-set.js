import { HeldLock } from "../holding/handle.js";
import { LossSignal } from "../holding/loss-signal.js";
import { SHOWN, shownAs } from "../shown.js";
export class HeldLockSet {
    names;
    locks;
    #signal;
    #over;
    constructor(session, leases) {
        this.#signal = new LossSignal(() => this.#look());
        const locks = leases.map((lease) => new HeldLock({ session, lease, acquired: lease.row.acquired }));
        this.names = locks.map(({ name }) => name);
        this.locks = new Map(locks.map((lock) => [lock.name, lock]));
        for (const lock of locks)
            lock.signal.addEventListener("abort", () => this.#look(), { once: true });
    }
    get signal() {
        return this.#signal.signal;
    }
    get held() {
        return this.#all.every((lock) => lock.held);
    }
    get remainingMs() {
        return Math.min(...this.#all.map((lock) => lock.remainingMs));
    }
    get wanted() {
        return this.#all.some((lock) => lock.wanted);
    }
    assertHeld(minRemainingMs = 0) {
        this.signal.throwIfAborted();
        for (const lock of this.#all)
            lock.assertHeld(minRemainingMs);
    }
    async extend(ms) {
        await settled(this.#all.map((lock) => lock.extend(ms)));
    }
    unlock() {
        this.#over ??= this.#unlock();
        return this.#over;
    }
    [Symbol.asyncDispose]() {
        return this.unlock();
    }
    toJSON() {
        return { held: this.held, locks: this.#all.map((lock) => lock.toJSON()) };
    }
    [SHOWN](_depth, options) {
        return shownAs("LockSet", this.toJSON(), options);
    }
    async #unlock() {
        this.#look();
        await settled(this.#all.map((lock) => lock.unlock())).catch((error) => {
            this.signal.throwIfAborted();
            throw error;
        });
    }
    get #all() {
        return [...this.locks.values()];
    }
    #look() {
        for (const { signal } of this.#all)
            if (signal.aborted)
                this.#signal.abort(signal.reason);
    }
}
async function settled(all) {
    for (const outcome of await Promise.allSettled(all))
        if (outcome.status === "rejected")
            throw outcome.reason;
}
