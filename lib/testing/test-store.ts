import type { TransactWriteItem } from "@aws-sdk/client-dynamodb";
import { storeFailure } from "../dynamodb/failures.js";
import { RowStore } from "../dynamodb/row-store.js";
import { LockStoreError } from "../errors.js";
import type { TableLayout } from "../options/table.js";
import type { Address } from "../protocol/addresses.js";
import type { Row } from "../protocol/row.js";
import { leftBy } from "../protocol/rules.js";
import type { Check, Renew, Take, Write } from "../protocol/writes.js";
import { onAbort } from "../session/abort-listening.js";
import type {
  Cursor,
  DocumentGuard,
  GuardedWrites,
  Page,
  RangeQuery,
  Store,
  TransactOutcome,
  WriteAllOutcome,
  WriteOutcome,
} from "../store.js";
import type { Clock } from "../time/clock.js";
import type { ApplyWrites } from "./apply-writes.js";
import type { MemoryTable } from "./memory-table.js";

/** What becomes of a host's requests: each is answered, none is, or each fails with an error. */
export type Condition = "answers" | "silent" | { readonly error: unknown };

interface TestStoreOptions {
  readonly table: MemoryTable;
  readonly layout: TableLayout;
  readonly clock: Clock;
  readonly condition: Condition;
  readonly applyWrites: ApplyWrites;
  /** Is told of each guard that is given out. */
  readonly onGuard: (guard: TransactWriteItem | DocumentGuard, check: Check) => void;
}

/** The way from one host to a table in memory. */
export class TestStore extends RowStore implements Store {
  condition: Condition;
  readonly #options: TestStoreOptions;

  constructor(options: TestStoreOptions) {
    super(options.layout);
    this.#options = options;
    this.condition = options.condition;
  }

  /**
   * The table, once a request has arrived there. One without an answer never does: it is not applied, now or later.
   *
   * @param action as IAM calls it, for the errors that say so.
   * @throws {@link LockStoreError} once `signal` aborts, while the table is silent; at once while it fails.
   */
  async reach(action: string, signal: AbortSignal): Promise<MemoryTable> {
    if (signal.aborted) throw aborted(signal);
    const { condition } = this;
    if (condition === "answers") return this.#options.table;
    if (condition !== "silent") throw storeFailure(condition.error, { action, tableName: this.layout.tableName });
    // As the socket of a request does.
    const leave = this.#options.clock.stay?.();
    return await new Promise<never>((_, reject) => {
      onAbort(signal, () => reject(aborted(signal)));
    }).finally(leave);
  }

  protected override async writeOne(write: Write, signal: AbortSignal): Promise<WriteOutcome> {
    const { kind } = leftBy(write);
    const action = kind === "put" ? "PutItem" : kind === "delete" ? "DeleteItem" : "UpdateItem";
    return (await this.reach(action, signal)).write(write);
  }

  protected override async renewAll(
    renewals: readonly Renew[],
    signal: AbortSignal,
  ): Promise<readonly (WriteOutcome | LockStoreError)[]> {
    return (await this.reach("PartiQLUpdate", signal)).renewAll(renewals);
  }

  async writeAll(writes: readonly Take[], signal: AbortSignal): Promise<WriteAllOutcome> {
    return (await this.reach("PutItem", signal)).writeAll(writes);
  }

  async read(at: Address, _options: { readonly consistent: boolean }, signal: AbortSignal): Promise<Row | undefined> {
    return (await this.reach("GetItem", signal)).read(at);
  }

  async query(query: RangeQuery, signal: AbortSignal): Promise<Page<string>> {
    return (await this.reach("Query", signal)).query(query);
  }

  async scan(prefix: string, after: Cursor | undefined, signal: AbortSignal): Promise<Page<Cursor>> {
    return (await this.reach("Scan", signal)).scan(prefix, after);
  }

  async transact(writes: GuardedWrites, signal: AbortSignal): Promise<TransactOutcome> {
    return (await this.reach("TransactWriteItems", signal)).transact(writes, this.#options.applyWrites);
  }

  override guard(check: Check): TransactWriteItem {
    return this.#noted(super.guard(check), check);
  }

  override documentGuard(check: Check): DocumentGuard {
    return this.#noted(super.documentGuard(check), check);
  }

  close(): void {}

  #noted<Guard extends TransactWriteItem | DocumentGuard>(guard: Guard, check: Check): Guard {
    this.#options.onGuard(guard, check);
    return guard;
  }
}

/** What a request came to whose sender has given it up. */
function aborted(signal: AbortSignal): LockStoreError {
  return new LockStoreError("aborted", { transient: true, answered: false, cause: signal.reason });
}
