import type { TransactWriteItem } from "@aws-sdk/client-dynamodb";
import { marshalledData } from "../../lib/dynamodb/data.js";
import { admitItems, documentGuard, guardItem } from "../../lib/dynamodb/guards.js";
import { LockStoreError } from "../../lib/errors.js";
import { copyOf, type LockData } from "../../lib/lock-info.js";
import { tableLayout } from "../../lib/options/table.js";
import { type Address, type Attributes, LOCK_SORT, parseRow, type Row, ticketOf } from "../../lib/protocol/row.js";
import { vacateKept } from "../../lib/protocol/vacate-kept.js";
import { type Applied, apply, type Check, drawnBy, type Take, type Write } from "../../lib/protocol/writes.js";
import type {
  Cursor,
  DocumentGuard,
  GuardedWrites,
  RangePage,
  RangeQuery,
  RowPage,
  Store,
  TransactOutcome,
  WriteAllOutcome,
  WriteOutcome,
} from "../../lib/store.js";

/** Where a guard says that the rows are. */
export const LAYOUT = tableLayout({ tableName: "memory" });

/** How many rows a page of a scan looks at: few, so that there are several. */
const PAGE_ROWS = 3;

/** The items, and what {@link apply} does to them: each write at one instant, whatever the time is. */
export class MemoryTable {
  readonly #items = new Map<string, { readonly at: Address; readonly item: Attributes }>();
  readonly #committed = new Map<string, GuardedWrites>();

  /** The callers' own writes that were applied, in order. */
  get committed(): readonly GuardedWrites[] {
    return [...this.#committed.values()];
  }

  item(at: Address): Attributes | undefined {
    return this.#items.get(keyText(at))?.item;
  }

  /** An item as some earlier host or somebody else left it. */
  plant(at: Address, item: Attributes | undefined): void {
    if (item === undefined) this.#items.delete(keyText(at));
    else this.#items.set(keyText(at), { at, item: copyOf(item) });
  }

  apply(write: Write): Applied {
    const applied = apply(this.item(write.at), write);
    if (applied.kind === "applied") this.plant(write.at, applied.after);
    return applied;
  }

  /** All of them or none. Gives what refused each. */
  applyAll(writes: readonly Write[]): readonly Applied[] {
    const outcomes = writes.map((write) => apply(this.item(write.at), write));
    if (outcomes.every(({ kind }) => kind === "applied")) for (const write of writes) this.apply(write);
    return outcomes;
  }

  /** A second copy of what was applied gets the answer of the first. */
  commit(writes: GuardedWrites): Applied {
    const applied = apply(this.item(writes.guard.at), writes.guard);
    if (this.#committed.has(writes.token)) return { kind: "applied", before: undefined, after: undefined };
    if (applied.kind === "applied") this.#committed.set(writes.token, writes);
    return applied;
  }

  /** All addresses, in the order of their names and sort keys. */
  addresses(): readonly Address[] {
    return [...this.#items.values()].map(({ at }) => at).sort((one, other) => (keyText(one) < keyText(other) ? -1 : 1));
  }
}

/** The port on a table in memory, with nothing in between. */
export class MemoryStore implements Store {
  readonly hasQueues = true;
  readonly #table: MemoryTable;

  constructor(table: MemoryTable) {
    this.#table = table;
  }

  admit(data: LockData | undefined): void {
    if (data !== undefined) marshalledData(data);
  }

  async write(write: Write, signal: AbortSignal): Promise<WriteOutcome> {
    if ("data" in write) this.admit(write.data);
    throwIfAborted(signal);
    const applied = this.#table.apply(write);
    if (applied.kind === "applied") {
      const replaced = write.kind === "take" ? rowOf(write.at, applied.before) : undefined;
      return { kind: "applied", replaced, drawn: drawnBy(write, applied.before) };
    }
    if (write.kind === "draw") throw foreign(applied.by);
    const row = rowOf(write.at, applied.by);
    const again = vacateKept(write, row);
    return again === undefined ? { kind: "refused", row, retried: false } : await this.write(again, signal);
  }

  async writeAll(takes: readonly Take[], signal: AbortSignal): Promise<WriteAllOutcome> {
    for (const { data } of takes) this.admit(data);
    throwIfAborted(signal);
    const outcomes = this.#table.applyAll(takes);
    if (outcomes.every(({ kind }) => kind === "applied")) return { kind: "applied" };
    const rows = takes.map(({ at }, index) => {
      const outcome = outcomes[index];
      return outcome?.kind === "refused" ? rowOf(at, outcome.by) : undefined;
    });
    return { kind: "refused", rows };
  }

  async read(at: Address, _options: { readonly consistent: boolean }, signal: AbortSignal): Promise<Row | undefined> {
    throwIfAborted(signal);
    return rowOf(at, this.#table.item(at));
  }

  async query({ name, first, last, order, limit }: RangeQuery, signal: AbortSignal): Promise<RangePage> {
    throwIfAborted(signal);
    const found = this.#table.addresses().filter((at) => at.name === name && at.sort >= first && at.sort <= last);
    if (order === "descending") found.reverse();
    const page = found.slice(0, limit);
    const ours = page.filter(({ sort }) => sort === LOCK_SORT || ticketOf(sort) !== undefined);
    return {
      rows: ours.map((at) => rowOf(at, this.#table.item(at)) as Row),
      next: found.length > limit ? page.at(-1)?.sort : undefined,
    };
  }

  async scan(prefix: string, after: Cursor | undefined, signal: AbortSignal): Promise<RowPage> {
    throwIfAborted(signal);
    const locks = this.#table.addresses().filter(({ sort }) => sort === LOCK_SORT);
    const rest = locks.filter(({ name }) => after === undefined || name > (after.name as string));
    const page = rest.slice(0, PAGE_ROWS);
    const rows = page.flatMap((at) => {
      const parsed = parseRow(at, this.#table.item(at) ?? {});
      return "row" in parsed && at.name.startsWith(prefix) ? [parsed.row] : [];
    });
    return { rows, next: rest.length > PAGE_ROWS ? { name: page.at(-1)?.name } : undefined };
  }

  guard(guard: Check): TransactWriteItem {
    return guardItem(LAYOUT, guard);
  }

  documentGuard(guard: Check): DocumentGuard {
    return documentGuard(LAYOUT, guard);
  }

  admitItems(at: Address, items: readonly TransactWriteItem[]): void {
    admitItems(LAYOUT, at, items);
  }

  async transact(writes: GuardedWrites, signal: AbortSignal): Promise<TransactOutcome> {
    throwIfAborted(signal);
    const applied = this.#table.commit(writes);
    if (applied.kind === "applied") return { kind: "committed" };
    return { kind: "unguarded", row: rowOf(writes.guard.at, applied.by) };
  }

  close(): void {}
}

function keyText({ name, sort }: Address): string {
  return `${name}\0${sort}`;
}

function rowOf(at: Address, item: Attributes | undefined): Row | undefined {
  if (item === undefined) return undefined;
  const parsed = parseRow(at, item);
  if ("row" in parsed) return parsed.row;
  throw foreign(item);
}

function foreign(item: Attributes | undefined): LockStoreError {
  const text = JSON.stringify(item, (_key, value) => (typeof value === "bigint" ? `${value}` : value));
  return new LockStoreError(`not a lock: ${text}`);
}

function throwIfAborted(signal: AbortSignal): void {
  if (!signal.aborted) return;
  throw new LockStoreError("aborted", { transient: true, answered: false, cause: signal.reason });
}
