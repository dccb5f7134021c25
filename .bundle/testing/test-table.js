import { randomUUID } from "node:crypto";
import { inspect, types } from "node:util";
import { LockConfigError } from "../errors.js";
import { isTaken } from "../operations/inspect.js";
import { over } from "../options/mutex.js";
import { tableLayout, tableOptions } from "../options/table.js";
import { infoOf } from "../protocol/row.js";
import { next } from "../protocol/rules.js";
import { rowsOf } from "../session/session.js";
import { TableLocks } from "../table-locks.js";
import { isHolder, MemoryTable } from "./memory-table.js";
import { reached, report } from "./test-admin.js";
import { TableTime } from "./test-clock.js";
import { TestStore } from "./test-store.js";
const PAGE_ITEMS = 1_000;
export class TestTable {
    clock;
    #time;
    #options;
    #layout;
    #onTransactWrite;
    memory = new MemoryTable({ pageItems: PAGE_ITEMS });
    #hosts = new Map();
    #guards = new Map();
    #condition = "answers";
    constructor(options = {}) {
        refuse(options, { ...NOT_OF_A_TABLE, owner: "is an option of each host: table.host({ owner })" });
        const { tableName = "locks", time = "real", startAt, onTransactWrite, ...defaults } = options;
        if (time !== "real" && time !== "manual")
            throw new LockConfigError("time", time, 'must be "real" or "manual"');
        if (startAt !== undefined && !(types.isDate(startAt) && startAt.getTime() > 0)) {
            throw new LockConfigError("startAt", startAt, "must be a Date after 1970-01-01T00:00:00Z");
        }
        if (onTransactWrite !== undefined && typeof onTransactWrite !== "function") {
            throw new LockConfigError("onTransactWrite", onTransactWrite, "must be a function");
        }
        this.#options = tableOptions({ tableName, ...defaults });
        this.#layout = tableLayout(this.#options);
        this.#onTransactWrite = onTransactWrite;
        this.#time = new TableTime({ time, startAt });
        this.clock = this.#time;
    }
    host(options = {}) {
        refuse(options, NOT_OF_A_HOST);
        const owner = options.owner ?? `host-${this.#hosts.size + 1}`;
        const { clock } = this.#time;
        const store = new TestStore({
            table: this.memory,
            layout: this.#layout,
            clock,
            condition: this.#condition,
            applyWrites: (items) => this.#applyWrites(items),
            onGuard: (guard, check) => this.#guards.set(textOf(guard), check),
        });
        tableOptions({ ...this.#options, ...options });
        const locks = new TableLocks({ ...over(this.#options, options), owner, clock }, (layout) => ({
            store,
            create: (how, requests) => reached(store, requests, "CreateTable", how),
            check: async (how, requests) => {
                await reached(store, requests, "DescribeTable", how);
                return report(layout);
            },
        }));
        this.#hosts.set(locks, store);
        return locks;
    }
    lose(which, reason = "expired") {
        const isMeant = ({ name, uuid }) => (typeof which === "string" ? name === which : uuid === which?.uuid);
        const rows = this.memory.rows.filter((row) => row.uuid !== undefined && isHolder(row) && isMeant(row));
        if (rows.length === 0) {
            throw new LockConfigError("which", which, "must be the name, or have the uuid, of a lock that somebody holds");
        }
        for (const row of rows)
            this.#changeRow(row, reason);
        const uuids = new Set(rows.map(({ uuid }) => uuid));
        for (const { session } of this.#hosts.keys()) {
            for (const lease of session.leases)
                if (rowsOf(lease.row).some(({ uuid }) => uuids.has(uuid)))
                    lease.lose(reason);
        }
    }
    held() {
        const bounds = this.#time.clock.wall();
        const rows = this.memory.rows.filter((row) => isHolder(row) && isTaken(row, bounds));
        const orderKey = ({ name, sort }) => `${name}\0${sort}`;
        return rows.sort((one, other) => (orderKey(one) < orderKey(other) ? -1 : 1)).map(infoOf);
    }
    silence(host) {
        this.#become("silent", host);
    }
    fail(error, host) {
        this.#become({ error }, host);
    }
    answer(host) {
        this.#become("answers", host);
    }
    get transactions() {
        return this.memory.committed.map(({ items }) => items);
    }
    admits(guard) {
        const check = this.#guards.get(textOf(guard));
        if (check !== undefined)
            return this.memory.apply(check).kind === "applied";
        throw new LockConfigError("guard", guard, "must be what guard() of a lock of this table returned");
    }
    #become(condition, host) {
        if (host === undefined) {
            this.#condition = condition;
            for (const store of this.#hosts.values())
                store.condition = condition;
            return;
        }
        const store = this.#hosts.get(host);
        if (store === undefined)
            throw new LockConfigError("host", host, "must be what host() of this table returned");
        store.condition = condition;
    }
    #applyWrites(items) {
        const returned = this.#onTransactWrite?.(items);
        if (!(returned instanceof Promise))
            return;
        returned.catch(() => undefined);
        const remedy = "must be synchronous: a transaction is one instant";
        throw new LockConfigError("onTransactWrite", this.#onTransactWrite, remedy);
    }
    #changeRow(row, reason) {
        const { uuid = "" } = row;
        const item = this.memory.item(row);
        const now = this.clock.now.getTime();
        switch (reason) {
            case "expired":
                this.memory.plant(row, { ...item, expires: Math.min(row.expires, now - 1) });
                return;
            case "stolen": {
                const fence = row.fence === undefined ? {} : { fence: next(row.fence, undefined) };
                const thief = { uuid: randomUUID(), owner: "somebody else", acquired: now, expires: now + row.ttlMs };
                this.memory.plant(row, { ...item, ...thief, ...fence });
                return;
            }
            case "deleted":
                this.memory.plant(row, undefined);
                return;
            case "forced":
                this.memory.apply({ kind: "vacate", at: row, uuid, leaves: { kind: "untilExpires" }, remembers: "nothing" });
                return;
            case "max-hold":
            case "closed":
                return;
            default:
                reason;
                throw new LockConfigError("reason", reason, "must be the reason of a LockLostError");
        }
    }
}
const NOT_OF_A_TABLE = {
    client: "must be left out: a table in memory needs no client",
    clock: 'must be left out: the table has a clock of its own, for which there are `time: "manual"` and `startAt`',
};
const OF_THE_TABLE = "is an option of the table, not of a host: new TestTable({ … })";
const NOT_OF_A_HOST = {
    ...NOT_OF_A_TABLE,
    ...Object.fromEntries(["tableName", "keys", "keyPrefix", "time", "startAt", "onTransactWrite"].map((name) => [name, OF_THE_TABLE])),
};
function refuse(options, remedies) {
    if (typeof options !== "object" || options === null || Array.isArray(options)) {
        throw new LockConfigError("options", options, "must be an object with options");
    }
    for (const [name, remedy] of Object.entries(remedies)) {
        const value = Reflect.get(options, name);
        if (value !== undefined)
            throw new LockConfigError(name, value, remedy);
    }
}
function textOf(guard) {
    return inspect(guard, { sorted: true, depth: null, maxStringLength: null });
}
