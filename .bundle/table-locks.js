import { hostname } from "node:os";
import { LockConfigError } from "./errors.js";
import { Flights } from "./flights/flights.js";
import { Mutex } from "./mutex.js";
import { listLocks, permitProblems } from "./operations/inspect.js";
import { checkOptions, closeOptions, listOptions } from "./options/calls.js";
import { NONE } from "./options/check.js";
import { checkCount, checkMembers, lockAllOptions } from "./options/lock-all.js";
import { mutexSettings } from "./options/mutex.js";
import { semaphoreSettings } from "./options/semaphore.js";
import { sharedMutexSettings } from "./options/shared-mutex.js";
import { checkFits, checkHasSort, checkName, createOptions, tableLayout, tableOptions } from "./options/table.js";
import { kindOf } from "./protocol/addresses.js";
import { Sections } from "./queues/sections.js";
import { retraced } from "./retraced.js";
import { Semaphore } from "./semaphore.js";
import { Session } from "./session/session.js";
import { lockAll } from "./sets/lock-all.js";
import { SharedMutex } from "./shared-mutex.js";
import { SHOWN, shownAs } from "./shown.js";
import { tableClock } from "./time/table-clock.js";
export class TableLocks {
    tableName;
    session;
    #backend;
    #sections;
    #flights;
    #layout;
    #defaults;
    #settings;
    constructor(options, connect) {
        const { tableName, client: _client, keys: _keys, keyPrefix: _prefix, ...rest } = tableOptions(options);
        const { owner = `${hostname()}#${process.pid}`, clock = tableClock(), ...defaults } = rest;
        this.tableName = tableName;
        this.#layout = tableLayout(options);
        this.#settings = mutexSettings(NONE, defaults);
        checkFits(this.#settings, this.#layout);
        this.#defaults = defaults;
        this.#backend = connect(this.#layout, clock);
        this.session = new Session({ store: this.#backend.store, clock, owner, table: this.#layout });
        this.#sections = new Sections(this.session);
        this.#flights = new Flights(this.#sections, this.#layout);
    }
    mutex(name, options) {
        checkName(name, this.#layout.keyPrefix);
        if (options === undefined)
            return new Mutex(this.#sections, name, this.#settings, this.#flights);
        const settings = mutexSettings(options, this.#defaults);
        checkFits(settings, this.#layout);
        return new Mutex(this.#sections, name, settings, this.#flights);
    }
    semaphore(name, options) {
        checkName(name, this.#layout.keyPrefix);
        checkHasSort("a semaphore", this.#layout);
        const settings = semaphoreSettings(options, this.#defaults);
        this.session.usesSemaphore(name, settings.permits);
        return new Semaphore(this.#sections, name, settings);
    }
    sharedMutex(name, options = NONE) {
        checkName(name, this.#layout.keyPrefix);
        checkHasSort("a shared mutex", this.#layout);
        return new SharedMutex(this.#sections, name, sharedMutexSettings(options, this.#defaults));
    }
    async lockAll(locks, options = {}) {
        checkCount(locks);
        const { lock, settingsOf } = lockAllOptions(options, this.#defaults);
        const members = locks.map((each, index) => {
            if (typeof each === "string")
                checkName(each, this.#layout.keyPrefix, `locks.${index}`);
            const member = typeof each === "string" ? { name: each, settings: undefined } : Mutex.of(each, this.session);
            if (member !== undefined)
                return { name: member.name, settings: settingsOf(member.settings) };
            throw new LockConfigError(`locks.${index}`, each, "must be a name, or a mutex of this LockTable");
        });
        checkMembers(members);
        try {
            return await lockAll(this.session, members, lock);
        }
        catch (error) {
            throw retraced(error);
        }
    }
    async create(options = {}) {
        this.session.assertOpen();
        try {
            await this.#backend.create(this.#untilClosed(createOptions(options)), this.session);
        }
        catch (error) {
            throw retraced(error);
        }
    }
    async check(options = {}) {
        this.session.assertOpen();
        try {
            const report = await this.#backend.check(this.#untilClosed(checkOptions(options)), this.session);
            if (!report.usable || report.permissions.Query !== "allowed")
                return report;
            return { ...report, problems: [...report.problems, ...(await permitProblems(this.session, options))] };
        }
        catch (error) {
            throw retraced(error);
        }
    }
    list(options = {}) {
        this.session.assertOpen();
        const which = listOptions(options);
        return { [Symbol.asyncIterator]: () => listLocks(this.session, which) };
    }
    async close(options = NONE) {
        const { drainMs } = closeOptions(options);
        await this.session.close(drainMs);
    }
    [Symbol.asyncDispose]() {
        return this.close();
    }
    #untilClosed(options) {
        const { closing } = this.session;
        return { ...options, signal: options.signal === undefined ? closing : AbortSignal.any([options.signal, closing]) };
    }
    toJSON() {
        const { leases, owner, closing } = this.session;
        const held = [...leases].filter((lease) => lease.held && kindOf(lease.row.at.sort) !== "place").length;
        return { tableName: this.tableName, owner, held, closed: closing.aborted };
    }
    [SHOWN](_depth, options) {
        return shownAs("LockTable", this.toJSON(), options);
    }
}
