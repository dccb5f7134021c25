/// <reference lib="esnext.disposable" preserve="true" />
import { hostname } from "node:os";
import type { InspectOptions } from "node:util";
import { LockConfigError } from "./errors.js";
import { Flights } from "./flights/flights.js";
import type { FencedLock } from "./lock.js";
import type { LockInfo } from "./lock-info.js";
import { Mutex } from "./mutex.js";
import { listLocks, permitProblems } from "./operations/inspect.js";
import type { CheckOptions, CloseOptions, ListOptions } from "./options/calls.js";
import { checkOptions, closeOptions, listOptions } from "./options/calls.js";
import { NONE } from "./options/check.js";
import { checkCount, checkMembers, type LockAllOptions, lockAllOptions, type SetMember } from "./options/lock-all.js";
import { type MutexOptions, type MutexSettings, mutexSettings } from "./options/mutex.js";
import { type SemaphoreOptions, semaphoreSettings } from "./options/semaphore.js";
import { type SharedMutexOptions, sharedMutexSettings } from "./options/shared-mutex.js";
import type { CreateOptions, LockTableOptions, TableLayout } from "./options/table.js";
import { checkFits, checkHasSort, checkName, createOptions, tableLayout, tableOptions } from "./options/table.js";
import { kindOf } from "./protocol/addresses.js";
import { Sections } from "./queues/sections.js";
import { retraced } from "./retraced.js";
import { Semaphore } from "./semaphore.js";
import type { Requests } from "./session/requests.js";
import { Session } from "./session/session.js";
import { lockAll } from "./sets/lock-all.js";
import type { LockSet } from "./sets/lock-set.js";
import { SharedMutex } from "./shared-mutex.js";
import { SHOWN, shownAs } from "./shown.js";
import type { Store } from "./store.js";
import type { TableReport } from "./table-report.js";
import type { Clock } from "./time/clock.js";
import { tableClock } from "./time/table-clock.js";

/** @internal What keeps the rows of a table: DynamoDB, or a map in memory. */
export interface Backend {
  readonly store: Store;
  create(options: CreateOptions, requests: Requests): Promise<void>;
  check(options: CheckOptions, requests: Requests): Promise<TableReport>;
}

/** The locks of one table: what {@link LockTable} is on DynamoDB, and a host of a `TestTable` in memory. */
export class TableLocks implements AsyncDisposable {
  readonly tableName: string;
  /** @internal */
  readonly session: Session;
  readonly #backend: Backend;
  readonly #sections: Sections;
  readonly #flights: Flights;
  readonly #layout: TableLayout;
  readonly #defaults: MutexOptions;
  /** The settings of a mutex without options of its own. */
  readonly #settings: MutexSettings;

  /** @internal @param connect is called once the options are known to work. */
  constructor(options: LockTableOptions, connect: (layout: TableLayout, clock: Clock) => Backend) {
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

  /**
   * Makes a mutex. It sends nothing.
   *
   * @param name case-sensitive, not empty, and with the key prefix at most 2 048 bytes.
   * @param options options that differ from the table's.
   * @throws {@link LockConfigError} naming the option that cannot work.
   */
  mutex(name: string, options: MutexOptions & { readonly fencing: true }): Mutex<FencedLock>;
  mutex(name: string, options?: MutexOptions): Mutex;
  mutex(name: string, options?: MutexOptions): Mutex {
    checkName(name, this.#layout.keyPrefix);
    if (options === undefined) return new Mutex(this.#sections, name, this.#settings, this.#flights);
    const settings = mutexSettings(options, this.#defaults);
    checkFits(settings, this.#layout);
    return new Mutex(this.#sections, name, settings, this.#flights);
  }

  /**
   * Makes a semaphore, of which at most `permits` hold one at once. It sends nothing.
   *
   * @param name as for a mutex. A mutex of the same name is another lock.
   * @param options `permits`, and options that differ from the table's.
   * @throws {@link LockConfigError} naming the option that cannot work; for a table without a sort key.
   *
   * @example
   * const semaphore = locks.semaphore("crm-api", { permits: 4 });
   * await semaphore.run(async (permit) => await callApi(permit.signal));
   */
  semaphore(name: string, options: SemaphoreOptions): Semaphore {
    checkName(name, this.#layout.keyPrefix);
    checkHasSort("a semaphore", this.#layout);
    const settings = semaphoreSettings(options, this.#defaults);
    this.session.usesSemaphore(name, settings.permits);
    return new Semaphore(this.#sections, name, settings);
  }

  /**
   * Makes a shared mutex, which many hold at once on its shared side, or one on its exclusive side. It sends nothing.
   *
   * @param name as for a mutex. A mutex of the same name is another lock.
   * @param options options that differ from the table's.
   * @throws {@link LockConfigError} naming the option that cannot work; for a table without a sort key.
   *
   * @example
   * const { shared, exclusive } = locks.sharedMutex("catalogue");
   * await shared.run(async (lock) => await readAll(lock.signal));
   */
  sharedMutex(name: string, options: SharedMutexOptions = NONE): SharedMutex {
    checkName(name, this.#layout.keyPrefix);
    checkHasSort("a shared mutex", this.#layout);
    return new SharedMutex(this.#sections, name, sharedMutexSettings(options, this.#defaults));
  }

  /**
   * Waits until all of these locks are free, and takes them in one transaction, all or none. It holds none of them while
   * it waits, so overlapping sets cannot deadlock, whatever their order. A set whose locks are seldom free at the same
   * time may wait for ever.
   *
   * @param locks 1 to 100 names, or mutexes of this `LockTable`, each lock once. A mutex brings its own options along, except for
   * `waitMs` and `fair`; those of the call go first.
   * @param options those of a mutex and of its `lock()` together, without `fencing`, `fair` and `handOverMs`.
   * @throws {@link LockTimeoutError} after `waitMs`. It names one holder.
   * @throws the reason of `signal`.
   * @throws {@link LockStoreError} if the table cannot be used, has not answered once within 10 s, or not by `waitMs`.
   * @throws {@link LockConfigError} if a lock or an option cannot work.
   *
   * @example
   * await using set = await locks.lockAll(["account#1", "account#2"]);
   * await transfer(set.signal);
   */
  async lockAll(locks: readonly (string | Mutex)[], options: LockAllOptions = {}): Promise<LockSet> {
    checkCount(locks);
    const { lock, settingsOf } = lockAllOptions(options, this.#defaults);
    const members = locks.map((each, index): SetMember => {
      if (typeof each === "string") checkName(each, this.#layout.keyPrefix, `locks.${index}`);
      const member = typeof each === "string" ? { name: each, settings: undefined } : Mutex.of(each, this.session);
      if (member !== undefined) return { name: member.name, settings: settingsOf(member.settings) };
      throw new LockConfigError(`locks.${index}`, each, "must be a name, or a mutex of this LockTable");
    });
    checkMembers(members);
    return await lockAll(this.session, members, lock);
  }

  /**
   * Creates the table with on-demand billing, the keys of the options and TTL enabled, and waits until it is active. A table
   * that exists is left as it is, unless `enableTtl` says that its TTL is to be enabled.
   *
   * @throws {@link LockStoreError} if the table exists but does not fit, or if it cannot be created.
   * @throws {@link LockConfigError} if an option cannot work.
   * @throws the reason of `signal`.
   */
  async create(options: CreateOptions = {}): Promise<void> {
    this.session.assertOpen();
    try {
      await this.#backend.create(this.#untilClosed(createOptions(options)), this.session);
    } catch (error) {
      throw retraced(error);
    }
  }

  /**
   * Checks whether locks work on this table with these credentials: its key, its TTL, its billing, its replicas, and
   * which IAM actions are refused; and whether other hosts know as many permits of the semaphores that this process has made.
   * It changes nothing: it sends writes whose condition never holds, which costs about 6 write units. Run it in a deployment, or to diagnose a problem.
   *
   * @returns the problems and the facts that it found. It does not throw for a problem: read `usable` and `problems`.
   * @throws {@link LockStoreError} if the table cannot be reached, or DynamoDB does not know the credentials.
   * @throws {@link LockConfigError} if an option cannot work.
   * @throws the reason of `signal`.
   *
   * @example
   * const { usable, problems } = await locks.check();
   * for (const { severity, message } of problems) console.warn(`${severity}: ${message}`);
   * if (!usable) process.exitCode = 1;
   */
  async check(options: CheckOptions = {}): Promise<TableReport> {
    this.session.assertOpen();
    try {
      const report = await this.#backend.check(this.#untilClosed(checkOptions(options)), this.session);
      if (!report.usable || report.permissions.Query !== "allowed") return report;
      return { ...report, problems: [...report.problems, ...(await permitProblems(this.session, options))] };
    } catch (error) {
      throw retraced(error);
    }
  }

  /**
   * Lists the locks of this table that are held, in no order. It is a scan, which reads every item of the table, page by
   * page as you iterate. Its reads are eventually consistent: a lock that changes meanwhile is returned in its old or its
   * new state, or not at all.
   *
   * @throws {@link LockStoreError} while iterating, if the table cannot be used, or does not answer within 10 s.
   * @throws {@link LockConfigError} if an option cannot work.
   *
   * @example
   * for await (const lock of locks.list({ prefix: "customer#" })) console.log(lock.name, lock.owner);
   */
  list(options: ListOptions = {}): AsyncIterable<LockInfo> {
    this.session.assertOpen();
    const which = listOptions(options);
    return { [Symbol.asyncIterator]: () => listLocks(this.session, which) };
  }

  /**
   * Shuts down: calls that wait reject at once with the code `LOCK_CLOSED`, as do new ones. Sections that run may end, and
   * their locks are renewed meanwhile. Those that have not ended after `drainMs` are revoked: `signal` aborts, and
   * `unlock()`, the end of `await using` and `run()` reject with a {@link LockLostError}, reason `closed`. The row of a
   * revoked section is deleted when the section ends, and is otherwise left to its lease: until then nobody else gets in.
   *
   * It ends as soon as nothing is left, and takes no longer than `drainMs` and the largest `releaseWithinMs` of the locks
   * that were asked for, whatever the table does. It keeps the process alive meanwhile. A client of your own stays open.
   *
   * A further call joins the first. With a `drainMs` that ends sooner, it shortens the drain; nothing makes it longer.
   *
   * @param options.drainMs how long sections may run on, in ms. Default 10 000.
   * @throws AggregateError with a {@link LockLostError} for each lock that was revoked, when the whole is over.
   * @throws {@link LockConfigError} if an option cannot work. The table stays open.
   *
   * @example
   * process.on("SIGTERM", () => {
   *   // Stop taking new work first. The process ends by itself once the rest is done.
   *   locks.close({ drainMs: 20_000 }).catch((error) => console.error(error));
   * });
   */
  async close(options: CloseOptions = NONE): Promise<void> {
    const { drainMs } = closeOptions(options);
    await this.session.close(drainMs);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** The table's close ends a request about the table as its caller's signal does. */
  #untilClosed<Options extends { readonly signal?: AbortSignal | undefined }>(options: Options): Options {
    const { closing } = this.session;
    return { ...options, signal: options.signal === undefined ? closing : AbortSignal.any([options.signal, closing]) };
  }

  /** What `JSON.stringify()` writes, and what `console.log()` shows. `held`: how many locks this process holds. */
  toJSON(): { readonly tableName: string; readonly owner: string; readonly held: number; readonly closed: boolean } {
    const { leases, owner, closing } = this.session;
    const held = [...leases].filter((lease) => lease.held && kindOf(lease.row.at.sort) !== "place").length;
    return { tableName: this.tableName, owner, held, closed: closing.aborted };
  }

  /** @internal */
  [SHOWN](_depth: number, options: InspectOptions): string {
    return shownAs("LockTable", this.toJSON(), options);
  }
}
