import { inspect } from "node:util";
import type { TransactWriteItem } from "@aws-sdk/client-dynamodb";
import { actionOf } from "../dynamodb/compile.js";
import { marshalledData, storedData } from "../dynamodb/data.js";
import { admitItems, documentGuard } from "../dynamodb/guards.js";
import { RenewalBatches } from "../dynamodb/renewal-batches.js";
import { LockStoreError } from "../errors.js";
import type { LockData } from "../lock-info.js";
import { type TableLayout, tableLayout } from "../options/table.js";
import { type Address, kindOf } from "../protocol/addresses.js";
import { type Applied, apply } from "../protocol/apply.js";
import { type Attributes, parseRow, type Row } from "../protocol/row.js";
import { drawnBy } from "../protocol/rules.js";
import { vacateKept } from "../protocol/was-applied.js";
import type { Check, Renew, Take, Write } from "../protocol/writes.js";
import {
  BadRow,
  type Cursor,
  type DocumentGuard,
  type GuardedWrites,
  type RangePage,
  type RangeQuery,
  type RowPage,
  type Store,
  sorted,
  type TransactOutcome,
  type WriteAllOutcome,
  type WriteOutcome,
} from "../store.js";
import type { Answer, Message } from "./message.js";

/** Where a guard says that the rows are, unless a test says it. */
const LAYOUT = tableLayout({ tableName: "memory" });

/** Whether a row is a lock's own: places in a queue are nobody's lock. */
export function isHolder({ sort }: Address): boolean {
  const kind = kindOf(sort);
  return kind !== undefined && kind !== "place";
}

/** The items of one name, by their sort keys. A change makes a new map, so whoever keeps one keeps what was. */
export type Partition = ReadonlyMap<string, Attributes>;

/** How many items a page looks at: few, so that there are several pages. */
const PAGE_ITEMS = 3;

/** A map, and what the protocol says that a write does to an item: each at one instant, whatever the time is. */
export class MemoryTable {
  readonly #partitions = new Map<string, Partition>();
  readonly #committed = new Map<string, GuardedWrites>();
  readonly #pageItems: number;

  /** @param pageItems how many items a page looks at. Default {@link PAGE_ITEMS}. */
  constructor({ pageItems = PAGE_ITEMS }: { readonly pageItems?: number } = {}) {
    this.#pageItems = pageItems;
  }

  /** The names that have an item. */
  get names(): readonly string[] {
    return [...this.#partitions].filter(([, items]) => items.size > 0).map(([name]) => name);
  }

  /** All rows of ours, those that are kept but free as well. */
  get rows(): readonly Row[] {
    return this.#items.flatMap(([at, item]) => rowIn(at, item) ?? []);
  }

  /** The callers' own writes that were applied, in order. */
  get committed(): readonly GuardedWrites[] {
    return [...this.#committed.values()];
  }

  partition(name: string): Partition {
    return this.#partitions.get(name) ?? new Map();
  }

  item({ name, sort }: Address): Attributes | undefined {
    return this.partition(name).get(sort);
  }

  /** The row under a key; undefined where there is none, and where the item is not ours. */
  row(at: Address): Row | undefined {
    return rowIn(at, this.item(at));
  }

  /** An item as somebody else left it. */
  plant({ name, sort }: Address, item: Attributes | undefined): void {
    const changed = new Map(this.partition(name));
    if (item === undefined) changed.delete(sort);
    else changed.set(sort, item);
    this.#partitions.set(name, changed);
  }

  apply(write: Write): Applied {
    const applied = apply(this.item(write.at), detached(write));
    if (applied.kind === "applied" && applied.after !== applied.before) this.plant(write.at, applied.after);
    return applied;
  }

  /** All of them or none. */
  applyAll(takes: readonly Take[]): readonly Applied[] {
    const wouldBe = takes.map((take) => apply(this.item(take.at), take));
    return wouldBe.some(({ kind }) => kind === "refused") ? wouldBe : takes.map((take) => this.apply(take));
  }

  /** Whether the guard holds, or held for an earlier copy: that one's answer is given again. */
  commit(writes: GuardedWrites): Applied {
    const checked = this.apply(writes.guard);
    if (this.#committed.has(writes.token)) return { kind: "applied", before: undefined, after: undefined };
    if (checked.kind === "applied") this.#committed.set(writes.token, writes);
    return checked;
  }

  /** @throws {@link LockStoreError} for an item under one of our keys that this library did not write. */
  answer(message: Message): Answer {
    switch (message.kind) {
      case "write":
        return { ...message, outcome: outcomeOf(message.write, this.apply(message.write)) };
      case "writeAll":
        return { ...message, outcome: outcomeOfAll(message.takes, this.applyAll(message.takes)) };
      case "renewAll": {
        const keys = new Set(message.renewals.map(({ at }) => `${at.sort}/${at.name}`));
        // As DynamoDB does, which applies none of them.
        if (keys.size < message.renewals.length) throw new LockStoreError("a batch has a row twice");
        return { ...message, outcomes: message.renewals.map((renewal) => this.#renewed(renewal)) };
      }
      case "transact":
        return { ...message, outcome: transacted(message.writes.guard, this.commit(message.writes)) };
      case "read":
      case "query":
        return answerFrom((name) => this.partition(name), message, this.#pageItems);
      default:
        return message satisfies never;
    }
  }

  /** A page of a scan: a few items, and of these the locks' own rows whose names begin so. */
  scan(prefix: string, after: Cursor | undefined): RowPage {
    const keys = this.#items.map(([at, item]) => ({ at, item, key: `${at.name}\0${at.sort}` }));
    const rest = keys
      .sort((one, other) => (one.key < other.key ? -1 : 1))
      .filter(({ key }) => after === undefined || key > (after.key as string));
    const page = rest.slice(0, this.#pageItems);
    const locks = page.filter(({ at }) => isHolder(at) && at.name.startsWith(prefix));
    const { rows, bad } = sorted(locks, ({ at, item }) => parsed(at, item));
    const damaged = bad.filter(({ isDamaged }) => isDamaged);
    return { rows, bad: damaged, next: rest.length > this.#pageItems ? { key: page.at(-1)?.key } : undefined };
  }

  #renewed(renewal: Renew): WriteOutcome | LockStoreError {
    try {
      return outcomeOf(renewal, this.apply(renewal));
    } catch (error) {
      if (error instanceof LockStoreError) return error;
      throw error;
    }
  }

  get #items(): (readonly [Address, Attributes])[] {
    return [...this.#partitions].flatMap(([name, items]) =>
      [...items].map(([sort, item]) => [{ name, sort }, item] as const),
    );
  }
}

/** What a read shows of a table whose names have these items. @throws as {@link MemoryTable.answer} does. */
export function answerFrom(
  partitionOf: (name: string) => Partition,
  message: Extract<Message, { kind: "read" | "query" }>,
  pageItems: number = PAGE_ITEMS,
): Answer {
  if (message.kind === "query") {
    return { ...message, page: pageOf(partitionOf(message.query.name), message.query, pageItems) };
  }
  const { at } = message;
  return { ...message, row: parsed(at, partitionOf(at.name).get(at.sort)) };
}

/** A page of a query. As DynamoDB does, it says where it ends whenever it is full, even if nothing follows. */
function pageOf(
  partition: Partition,
  { name, first, last, after = "", limit, showsBad = false }: RangeQuery,
  pageItems: number,
): RangePage {
  const inOrder = [...partition]
    .filter(([sort]) => sort >= first && sort <= last && sort > after)
    .sort(([one], [other]) => (one < other ? -1 : 1));
  const most = Math.min(limit, pageItems);
  const page = inOrder.slice(0, most);
  const ours = page.filter(([sort]) => kindOf(sort) !== undefined);
  const { rows, bad } = sorted(ours, ([sort, item]) => parsed({ name, sort }, item));
  const [worst] = bad;
  if (worst !== undefined && !showsBad) throw worst;
  return { rows, ...(showsBad ? { bad } : {}), next: page.length === most ? page.at(-1)?.[0] : undefined };
}

/** The port, over whatever carries its messages. */
export abstract class MessageStore implements Store {
  readonly #table: MemoryTable;
  readonly #layout: TableLayout;
  readonly #renewals = new RenewalBatches({
    one: async (write, signal) => (await this.#ask({ kind: "write", write }, signal)).outcome,
    all: async (renewals, signal) => (await this.#ask({ kind: "renewAll", renewals }, signal)).outcomes,
    // No answer is slow.
    now: () => 0,
  });

  constructor(table: MemoryTable, layout: TableLayout = LAYOUT) {
    this.#table = table;
    this.#layout = layout;
  }

  protected abstract send(message: Message, signal: AbortSignal): Promise<Answer>;

  admit(data: LockData | undefined): void {
    if (data !== undefined) marshalledData(data);
  }

  async write(write: Write, signal: AbortSignal): Promise<WriteOutcome> {
    if (write.kind === "renew" && write.data === undefined) return await this.#renewals.write(write, signal);
    if ("data" in write) this.admit(write.data);
    const { outcome } = await this.#ask({ kind: "write", write }, signal);
    const again = outcome.kind === "refused" ? vacateKept(write, outcome.row) : undefined;
    return again === undefined ? outcome : (await this.#ask({ kind: "write", write: again }, signal)).outcome;
  }

  async writeAll(takes: readonly Take[], signal: AbortSignal): Promise<WriteAllOutcome> {
    for (const { data } of takes) this.admit(data);
    return (await this.#ask({ kind: "writeAll", takes }, signal)).outcome;
  }

  async read(at: Address, options: { readonly consistent: boolean }, signal: AbortSignal): Promise<Row | undefined> {
    return (await this.#ask({ kind: "read", at, consistent: options.consistent }, signal)).row;
  }

  async query(query: RangeQuery, signal: AbortSignal): Promise<RangePage> {
    return (await this.#ask({ kind: "query", query }, signal)).page;
  }

  /** No lock depends on what a listing says, so nothing happens to it on its way. */
  async scan(prefix: string, after: Cursor | undefined, signal: AbortSignal): Promise<RowPage> {
    if (signal.aborted) throw aborted(signal);
    return this.#table.scan(prefix, after);
  }

  guard(guard: Check): TransactWriteItem {
    return actionOf(this.#layout, guard);
  }

  documentGuard(guard: Check): DocumentGuard {
    return documentGuard(this.#layout, guard);
  }

  admitItems(at: Address, items: readonly TransactWriteItem[]): void {
    admitItems(this.#layout, at, items);
  }

  async transact(writes: GuardedWrites, signal: AbortSignal): Promise<TransactOutcome> {
    return (await this.#ask({ kind: "transact", writes }, signal)).outcome;
  }

  close(): void {}

  async #ask<Kind extends Message["kind"]>(
    message: Extract<Message, { kind: Kind }>,
    signal: AbortSignal,
  ): Promise<Extract<Answer, { kind: Kind }>> {
    return (await this.send(message, signal)) as Extract<Answer, { kind: Kind }>;
  }
}

/** The port on a table in memory, with nothing in between. */
export class MemoryStore extends MessageStore {
  readonly #table: MemoryTable;

  constructor(table: MemoryTable) {
    super(table);
    this.#table = table;
  }

  protected override async send(message: Message, signal: AbortSignal): Promise<Answer> {
    if (signal.aborted) throw aborted(signal);
    return this.#table.answer(message);
  }
}

/** What a request came to whose sender has given it up. */
export function aborted(signal: AbortSignal): LockStoreError {
  return new LockStoreError("aborted", { transient: true, answered: false, cause: signal.reason });
}

function outcomeOf(write: Write, applied: Applied): WriteOutcome {
  if (applied.kind === "refused") return { kind: "refused", row: parsed(write.at, applied.by), retried: false };
  const isMarked = applied.before?.wanted !== undefined;
  const isTaken = write.kind === "take" || write.kind === "transfer";
  const isOfHolder = write.kind === "vacate" || write.kind === "renew";
  const replaced = isTaken || (isOfHolder && isMarked) ? parsed(write.at, applied.before) : undefined;
  return { kind: "applied", replaced, drawn: drawnBy(write, applied.before) };
}

function outcomeOfAll(takes: readonly Take[], applied: readonly Applied[]): WriteAllOutcome {
  if (applied.every(({ kind }) => kind === "applied")) return { kind: "applied" };
  const rows = takes.map(({ at }, index) => {
    const one = applied[index];
    return one?.kind === "refused" ? parsed(at, one.by) : undefined;
  });
  return { kind: "refused", rows };
}

function transacted(guard: Check, applied: Applied): TransactOutcome {
  if (applied.kind === "applied") return { kind: "committed" };
  return { kind: "unguarded", row: parsed(guard.at, applied.by) };
}

/** @throws {@link LockStoreError} for an item that this library did not write. */
function parsed(at: Address, item: Attributes): Row;
function parsed(at: Address, item: Attributes | undefined): Row | undefined;
function parsed(at: Address, item: Attributes | undefined): Row | undefined {
  if (item === undefined) return undefined;
  const result = parseRow(at, item);
  if ("row" in result) return result.row;
  const owner = typeof item.owner === "string" ? item.owner : undefined;
  throw new BadRow(`not a lock: ${result.problem}: ${inspect(item)}`, at, { isDamaged: result.isDamaged, owner });
}

function rowIn(at: Address, item: Attributes | undefined): Row | undefined {
  const result = item && parseRow(at, item);
  return result && "row" in result ? result.row : undefined;
}

/** Cut off from its sender, as what goes through a network is, and with data as DynamoDB gives them back. */
function detached(write: Write): Write {
  return "data" in write && write.data !== undefined ? { ...write, data: storedData(write.data) } : write;
}
