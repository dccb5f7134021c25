import { BoundedMap } from "../session/bounded-map.js";
import { removeAsSeen } from "../taking/rows.js";
const AT_ONCE = 16;
const MOST_KNOWN = 10_000;
export class Sweeper {
    #session;
    #ttlMs;
    #dead = new Set();
    #known = new BoundedMap(MOST_KNOWN);
    #running = 0;
    constructor(session, ttlMs) {
        this.#session = session;
        this.#ttlMs = ttlMs;
    }
    add(dead) {
        for (const waiter of dead) {
            const key = seenKey(waiter);
            if (!this.#known.has(key))
                this.#dead.add(waiter);
            this.#known.set(key, true);
        }
        while (!this.#session.closing.aborted && this.#running < AT_ONCE && this.#dead.size > this.#running) {
            this.#running += 1;
            this.#session.detach(this.#run());
        }
    }
    async #run() {
        for (const waiter of this.#dead) {
            if (this.#session.closing.aborted)
                break;
            this.#dead.delete(waiter);
            const removed = removeAsSeen(this.#session, waiter, { ttlMs: this.#ttlMs, endSignal: this.#session.closing });
            await removed.catch(() => this.#known.delete(seenKey(waiter)));
        }
        this.#running -= 1;
    }
}
const seenKey = ({ sort, uuid, expires }) => `${sort} ${uuid} ${expires}`;
