import { randomUUID } from "node:crypto";
import { inspect, types } from "node:util";
import type { TransactWriteItem } from "@aws-sdk/client-dynamodb";
import { LockConfigError, type LossReason } from "../errors.js";
import type { LockInfo } from "../lock-info.js";
import type { LockTable } from "../lock-table.js";
import { byAcquisition, infoOfSeveral, isTaken } from "../operations/inspect.js";
import { type MutexOptions, over } from "../options/mutex.js";
import { type LockTableOptions, type TableLayout, tableLayout, tableOptions } from "../options/table.js";
import type { Row } from "../protocol/row.js";
import type { Check } from "../protocol/writes.js";
import { rowsOf } from "../session/session.js";
import type { DocumentGuard } from "../store.js";
import { TableLocks } from "../table-locks.js";
import type { ApplyWrites } from "./apply-writes.js";
import { isHolder, MemoryTable } from "./memory-table.js";
import { reached, report } from "./test-admin.js";
import { TableTime, type TestClock, type TestTime } from "./test-clock.js";
import { type Condition, TestStore } from "./test-store.js";

/** Options of a table in memory, and defaults for its mutexes. */
export interface TestTableOptions extends Omit<LockTableOptions, "tableName" | "client" | "owner" | "clock"> {
  /** Default `locks`. */
  readonly tableName?: string | undefined;
  /**
   * `real`: time passes by itself, as fast as `Date` and `setTimeout` say, fake ones included. `manual`: it stands still,
   * except by `clock.advance()`. Default `real`.
   */
  readonly time?: TestTime | undefined;
  /** What the table's clock shows at first: later than 1970 began. Default: what `Date` says when the table is made. */
  readonly startAt?: Date | undefined;
  /**
   * Called with the items of a `transactWrite()` whose lock is still held, once for each. It must be synchronous: a
   * transaction is one instant. What it throws counts as
   * DynamoDB's refusal of the items, and is what `transactWrite()` throws. Default: nothing is done with them.
   */
  readonly onTransactWrite?: ApplyWrites | undefined;
}

/** Options of one host, and defaults for its mutexes, where they differ from the table's. */
export interface TestHostOptions extends Omit<MutexOptions, "fencing"> {
  /** Names the holder to people who inspect a lock. Default: `host-1`, `host-2`, and so on. */
  readonly owner?: string | undefined;
}

/** How many items a page looks at: enough that a test sees one page, as with DynamoDB. */
const PAGE_ITEMS = 1_000;

/**
 * A table in memory for the tests of code that takes a {@link LockTable}. It runs the library's own protocol, on a map in
 * the place of DynamoDB, and sends nothing. Make one per test.
 *
 * It has none of DynamoDB's delays, limits and charges, all its reads are consistent, and its hosts' clocks agree. What
 * depends on those is for a test on DynamoDB Local, or on DynamoDB.
 *
 * @example
 * const table = new TestTable();
 * const locks = table.host(); // a LockTable, for the code under test
 * await using held = await table.host().mutex("report").lock(); // another host has the lock
 * assert.equal(await locks.mutex("report").tryLock(), null);
 */
export class TestTable {
  /** The table's time, which is that of all of its hosts. */
  readonly clock: TestClock;
  readonly #time: TableTime;
  readonly #options: LockTableOptions;
  readonly #layout: TableLayout;
  readonly #onTransactWrite: ApplyWrites | undefined;
  /** @internal */
  readonly memory: MemoryTable = new MemoryTable({ pageItems: PAGE_ITEMS });
  readonly #hosts = new Map<LockTable, TestStore>();
  /** What guards that were given out ask for, by their text. */
  readonly #guards = new Map<string, Check>();
  /** That of hosts to come. */
  #condition: Condition = "answers";

  /** @throws `LockConfigError` naming the option that cannot work. */
  constructor(options: TestTableOptions = {}) {
    refuse(options, { ...NOT_OF_A_TABLE, owner: "is an option of each host: table.host({ owner })" });
    const { tableName = "locks", time = "real", startAt, onTransactWrite, ...defaults } = options;
    if (time !== "real" && time !== "manual") throw new LockConfigError("time", time, 'must be "real" or "manual"');
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

  /**
   * Makes the locks of one more host of this table. Hosts share nothing else: each is what a process of its own would be.
   *
   * @throws `LockConfigError` naming the option that cannot work.
   *
   * @example
   * const [one, other] = [table.host(), table.host({ owner: "other" })];
   */
  host(options: TestHostOptions = {}): LockTable {
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

  /**
   * Takes a lock from whoever holds it, and tells the holder at once: `signal` aborts, and `unlock()` and `run()` reject with
   * a `LockLostError`. What becomes of the row is what happens in earnest:
   *
   * - `expired`: its lease is over, and the next host gets it.
   * - `stolen`: somebody else has it, for one lease.
   * - `deleted`: it is gone, with the fencing token that it remembered.
   * - `forced`: as after `forceUnlock()`, nobody holds it, and nobody gets it before the old lease ends.
   * - `max-hold`, `closed`: it is the holder's until its section ends.
   *
   * @param which the name, for all who hold a lock of that name; or what has the `uuid`, such as a lock or its `LockInfo`.
   * @param reason the reason of the `LockLostError`.
   * @throws `LockConfigError` if nobody holds such a lock.
   *
   * @example
   * table.lose("report", "stolen");
   */
  lose(which: string | { readonly uuid: string | undefined }, reason: LossReason = "expired"): void {
    const isMeant = ({ name, uuid }: Row) => (typeof which === "string" ? name === which : uuid === which?.uuid);
    const rows = this.memory.rows.filter((row) => row.uuid !== undefined && isHolder(row) && isMeant(row));
    if (rows.length === 0) {
      throw new LockConfigError("which", which, "must be the name, or have the uuid, of a lock that somebody holds");
    }
    for (const row of rows) this.#changeRow(row, reason);
    const uuids = new Set(rows.map(({ uuid }) => uuid));
    for (const { session } of this.#hosts.keys()) {
      for (const lease of session.leases) if (rowsOf(lease.row).some(({ uuid }) => uuids.has(uuid))) lease.lose(reason);
    }
  }

  /** The locks that are taken at this moment, as `list()` shows them, ordered by name. */
  held(): readonly LockInfo[] {
    const bounds = this.#time.clock.wall();
    const rows = this.memory.rows.filter((row) => isHolder(row) && isTaken(row, bounds));
    const orderKey = ({ name, sort }: Row): string => `${name}\0${sort}`;
    const inOrder = rows.sort((one, other) => (orderKey(one) < orderKey(other) ? -1 : 1));
    return byAcquisition(inOrder).map(infoOfSeveral);
  }

  /**
   * From now on requests get no answer and are not applied, as if the table were out of reach. They time out, and are
   * retried, as ever: `lock()` gives up after 10 s, and a holder loses its lock when its lease is over.
   *
   * @param host whose requests. Default: those of all hosts.
   */
  silence(host?: LockTable): void {
    this.#become("silent", host);
  }

  /**
   * From now on requests fail with this error, and are not applied.
   *
   * @param error as the AWS SDK throws it: its `name` decides, as in production, whether the library tries again.
   * @param host whose requests. Default: those of all hosts.
   *
   * @example
   * table.fail(Object.assign(new Error("slow down"), { name: "ThrottlingException" }));
   */
  fail(error: Error, host?: LockTable): void {
    this.#become({ error }, host);
  }

  /**
   * From now on requests are answered again. Those that were silenced stay without an answer.
   *
   * @param host whose requests. Default: those of all hosts.
   */
  answer(host?: LockTable): void {
    this.#become("answers", host);
  }

  /** The items of every `transactWrite()` that was applied, in order. */
  get transactions(): readonly (readonly TransactWriteItem[])[] {
    return this.memory.committed.map(({ items }) => items);
  }

  /**
   * Whether DynamoDB would let a transaction with this condition through, for a double of your own DynamoDB client.
   *
   * @param guard what `lock.guard()` returned, in either form.
   * @throws `LockConfigError` for anything else.
   *
   * @example
   * const guard = await lock.guard();
   * assert.equal(table.admits(guard), true);
   * table.lose(lock);
   * assert.equal(table.admits(guard), false);
   */
  admits(guard: TransactWriteItem | DocumentGuard): boolean {
    const check = this.#guards.get(textOf(guard));
    if (check !== undefined) return this.memory.apply(check).kind === "applied";
    throw new LockConfigError("guard", guard, "must be what guard() of a lock of this table returned");
  }

  #become(condition: Condition, host: LockTable | undefined): void {
    if (host === undefined) {
      this.#condition = condition;
      for (const store of this.#hosts.values()) store.condition = condition;
      return;
    }
    const store = this.#hosts.get(host);
    if (store === undefined) throw new LockConfigError("host", host, "must be what host() of this table returned");
    store.condition = condition;
  }

  #applyWrites(items: readonly TransactWriteItem[]): void {
    const returned: unknown = this.#onTransactWrite?.(items);
    if (!(returned instanceof Promise)) return;
    returned.catch(() => undefined);
    const remedy = "must be synchronous: a transaction is one instant";
    throw new LockConfigError("onTransactWrite", this.#onTransactWrite, remedy);
  }

  #changeRow(row: Row, reason: LossReason): void {
    const { uuid = "" } = row;
    const item = this.memory.item(row);
    const now = this.clock.now.getTime();
    switch (reason) {
      case "expired":
        this.memory.plant(row, { ...item, expires: Math.min(row.expires, now - 1) });
        return;
      case "stolen": {
        const fence = row.fence === undefined ? {} : { fence: row.fence + 1n };
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
        reason satisfies never;
        throw new LockConfigError("reason", reason, "must be the reason of a LockLostError");
    }
  }
}

/** Options of a LockTable that a table in memory has for itself, or leaves to its hosts. */
const NOT_OF_A_TABLE: Readonly<Record<string, string>> = {
  client: "must be left out: a table in memory needs no client",
  clock: 'must be left out: the table has a clock of its own, for which there are `time: "manual"` and `startAt`',
};

const OF_THE_TABLE = "is an option of the table, not of a host: new TestTable({ … })";

const NOT_OF_A_HOST: Readonly<Record<string, string>> = {
  ...NOT_OF_A_TABLE,
  ...Object.fromEntries(
    ["tableName", "keys", "keyPrefix", "time", "startAt", "onTransactWrite"].map((name) => [name, OF_THE_TABLE]),
  ),
};

/** @throws `LockConfigError` for an option that belongs elsewhere. */
function refuse(options: object, remedies: Readonly<Record<string, string>>): void {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw new LockConfigError("options", options, "must be an object with options");
  }
  for (const [name, remedy] of Object.entries(remedies)) {
    const value = Reflect.get(options, name);
    if (value !== undefined) throw new LockConfigError(name, value, remedy);
  }
}

/** The same for equal guards, whatever the order of their properties, and the realm that they are from. */
function textOf(guard: unknown): string {
  return inspect(guard, { sorted: true, depth: null, maxStringLength: null });
}
