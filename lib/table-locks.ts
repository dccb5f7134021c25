import { hostname } from "node:os";
import type { FencedLock } from "./lock.js";
import type { LockInfo } from "./lock-info.js";
import { type LockSet, lockAll } from "./lock-set.js";
import { Mutex } from "./mutex.js";
import { permitProblems } from "./operations/check-permits.js";
import { listLocks } from "./operations/list.js";
import type { CheckOptions, CloseOptions, ListOptions } from "./options/calls.js";
import { checkOptions, closeOptions, listOptions } from "./options/calls.js";
import { NONE } from "./options/check.js";
import { checkNames, type LockAllOptions, lockAllOptions } from "./options/lock-all.js";
import { type MutexOptions, type MutexSettings, mutexSettings } from "./options/mutex.js";
import { type SemaphoreOptions, semaphoreSettings } from "./options/semaphore.js";
import { type SharedMutexOptions, sharedMutexSettings } from "./options/shared-mutex.js";
import type { CreateOptions, LockTableOptions, TableLayout } from "./options/table.js";
import { checkFits, checkHasSort, checkName, createOptions, tableLayout, tableOptions } from "./options/table.js";
import { Sections } from "./queues/sections.js";
import { Semaphore } from "./semaphore.js";
import { Session } from "./session/session.js";
import { SharedMutex } from "./shared-mutex.js";
import type { Store } from "./store.js";
import type { TableReport } from "./table-report.js";
import type { Clock } from "./time/clock.js";
import { tableClock } from "./time/table-clock.js";

/** What keeps the rows of a table: DynamoDB, or a map in memory. */
export interface Backend {
  readonly store: Store;
  create(options: CreateOptions): Promise<void>;
  check(options: CheckOptions): Promise<TableReport>;
}

/** What {@link LockTable} does, whatever keeps the rows: its methods and no others, documented there. */
export class TableLocks implements AsyncDisposable {
  readonly tableName: string;
  /** @internal */
  readonly session: Session;
  readonly #backend: Backend;
  readonly #sections: Sections;
  readonly #layout: TableLayout;
  readonly #defaults: MutexOptions;
  /** The settings of a mutex without options of its own. */
  readonly #settings: MutexSettings;

  /** @param connect is called once the options are known to work. */
  constructor(options: LockTableOptions, connect: (layout: TableLayout, clock: Clock) => Backend) {
    const { tableName, client: _client, keys: _keys, keyPrefix: _prefix, ...rest } = tableOptions(options);
    const { owner = `${hostname()}#${process.pid}`, clock = tableClock(), ...defaults } = rest;
    this.tableName = tableName;
    this.#layout = tableLayout(options);
    this.#settings = mutexSettings(NONE, defaults);
    checkFits(this.#settings, this.#layout);
    this.#defaults = defaults;
    this.#backend = connect(this.#layout, clock);
    const table = { tableName, keyPrefix: this.#layout.keyPrefix };
    this.session = new Session({ store: this.#backend.store, clock, owner, table });
    this.#sections = new Sections(this.session);
  }

  mutex(name: string, options: MutexOptions & { readonly fencing: true }): Mutex<FencedLock>;
  mutex(name: string, options?: MutexOptions): Mutex;
  mutex(name: string, options?: MutexOptions): Mutex {
    checkName(name, this.#layout.keyPrefix);
    if (options === undefined) return new Mutex(this.#sections, name, this.#settings);
    const settings = mutexSettings(options, this.#defaults);
    checkFits(settings, this.#layout);
    return new Mutex(this.#sections, name, settings);
  }

  semaphore(name: string, options: SemaphoreOptions): Semaphore {
    checkName(name, this.#layout.keyPrefix);
    checkHasSort("a semaphore", this.#layout);
    const settings = semaphoreSettings(options, this.#defaults);
    this.session.usesSemaphore(name, settings.permits);
    return new Semaphore(this.#sections, name, settings);
  }

  sharedMutex(name: string, options: SharedMutexOptions = NONE): SharedMutex {
    checkName(name, this.#layout.keyPrefix);
    checkHasSort("a shared mutex", this.#layout);
    return new SharedMutex(this.#sections, name, sharedMutexSettings(options, this.#defaults));
  }

  async lockAll(names: readonly string[], options: LockAllOptions = {}): Promise<LockSet> {
    checkNames(names, this.#layout.keyPrefix);
    const { settings, lock } = lockAllOptions(options, this.#defaults);
    return await lockAll(this.session, names, settings, lock);
  }

  async create(options: CreateOptions = {}): Promise<void> {
    this.session.assertOpen();
    await this.#backend.create(createOptions(options));
  }

  async check(options: CheckOptions = {}): Promise<TableReport> {
    this.session.assertOpen();
    const report = await this.#backend.check(checkOptions(options));
    if (!report.usable || report.permissions.Query !== "allowed") return report;
    return { ...report, problems: [...report.problems, ...(await permitProblems(this.session, options))] };
  }

  list(options: ListOptions = {}): AsyncIterable<LockInfo> {
    this.session.assertOpen();
    const which = listOptions(options);
    return { [Symbol.asyncIterator]: () => listLocks(this.session, which) };
  }

  async close(options: CloseOptions = NONE): Promise<void> {
    const { drainMs } = closeOptions(options);
    await this.session.close(drainMs);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
