import { randomUUID } from "node:crypto";
import { LockError } from "../errors.js";
import { retraced } from "../retraced.js";
import { listenWithoutBound } from "./abort-listening.js";
import { Agenda } from "./agenda.js";
import { BoundedMap } from "./bounded-map.js";
import { Closing } from "./closing.js";
import { Contention } from "./contention.js";
import { Scheduler } from "./requests.js";
import { endAfter } from "./retry.js";
import { Sightings } from "./sightings.js";
const MOST_SEMAPHORES = 1_000;
export function rowsOf(row) {
    return row.others === undefined ? [row] : [row, ...row.others];
}
const LEASES_OF_TABLES = new Set();
export const leasesOfProcess = () => [...LEASES_OF_TABLES].flatMap((leases) => [...leases]);
export class Session {
    store;
    clock;
    owner;
    table;
    random;
    uuid;
    sightings;
    contention;
    scheduler;
    agenda;
    leases = new Set();
    semaphores = new BoundedMap(MOST_SEMAPHORES);
    readingTime;
    #closed = new AbortController();
    #closing;
    #told = new BoundedMap(MOST_SEMAPHORES);
    #waits = new Set();
    #background = 0;
    #longestReleaseMs = 0;
    constructor(parts) {
        this.store = parts.store;
        this.clock = parts.clock;
        this.owner = parts.owner;
        this.table = parts.table ?? { tableName: "locks", keyPrefix: "" };
        this.random = parts.random ?? Math.random;
        this.uuid = parts.uuid ?? (() => randomUUID({ disableEntropyCache: true }));
        this.sightings = new Sightings(parts.clock, parts.mostRemembered === undefined ? {} : { most: parts.mostRemembered });
        this.scheduler = new Scheduler(parts.clock);
        this.agenda = new Agenda(parts.clock, this.leases, parts.togetherFrom);
        listenWithoutBound(this.#closed.signal);
    }
    contended() {
        this.contention ??= new Contention(this.clock, (at) => this.leasesOn(at).length > 0);
        return this.contention;
    }
    keepLease(lease) {
        this.leases.add(lease);
        if (this.clock.stay !== undefined)
            LEASES_OF_TABLES.add(this.leases);
    }
    forgetLease(lease) {
        if (!this.leases.delete(lease))
            return;
        if (this.leases.size === 0)
            LEASES_OF_TABLES.delete(this.leases);
        this.#closing?.checkSettled();
    }
    leasesOn({ name, sort }) {
        const isIt = ({ at }) => at.name === name && at.sort === sort;
        return [...this.leases].filter(({ row }) => rowsOf(row).some(isIt));
    }
    get closing() {
        return this.#closed.signal;
    }
    untilClosed(ms) {
        const end = endAfter(this.clock, ms);
        return () => Math.min(end(), this.clock.atMost() + (this.#closing?.remainingMs ?? Number.POSITIVE_INFINITY));
    }
    assertOpen(lockName) {
        if (this.closing.aborted)
            throw retraced(this.closing.reason, lockName);
    }
    waiting(stop) {
        this.#waits.add(stop);
        return () => this.#waits.delete(stop);
    }
    isNews(what) {
        if (this.#told.has(what))
            return false;
        this.#told.set(what, true);
        return true;
    }
    usesSemaphore(name, permits) {
        this.semaphores.set(name, Math.max(this.semaphores.get(name) ?? 0, permits));
    }
    mayRelease(withinMs) {
        this.#longestReleaseMs = Math.max(this.#longestReleaseMs, withinMs);
    }
    detach(work) {
        const done = () => {
            this.#background -= 1;
            this.#closing?.checkSettled();
        };
        this.#background += 1;
        work.then(done, done);
    }
    close(drainMs) {
        if (this.#closing === undefined) {
            const longestReleaseMs = () => this.#longestReleaseMs;
            const remaining = { leases: this.leases, background: () => this.#background, longestReleaseMs };
            const closing = new Closing(this.clock, remaining, () => this.store.close());
            this.#closing = closing;
            const reason = new LockError("LOCK_CLOSED", "This LockTable is closed: await calls before you close it, or make a new one");
            this.#closed.abort(reason);
            for (const stop of [...this.#waits])
                stop(reason);
        }
        return this.#closing.close(drainMs);
    }
}
