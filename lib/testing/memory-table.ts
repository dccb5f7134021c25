import { inspect } from "node:util";
import type { TransactWriteItem } from "@aws-sdk/client-dynamodb";
import { storedData } from "../dynamodb/data.js";
import { LockStoreError } from "../errors.js";
import { type Address, kindOf } from "../protocol/addresses.js";
import { type Applied, apply } from "../protocol/apply.js";
import { type Attributes, parseRow, type Row } from "../protocol/row.js";
import { drawnBy } from "../protocol/rules.js";
import type { Renew, Take, Write } from "../protocol/writes.js";
import {
  BadRow,
  type Cursor,
  type GuardedWrites,
  type Page,
  type RangeQuery,
  sorted,
  type TransactOutcome,
  type WriteAllOutcome,
  type WriteOutcome,
} from "../store.js";
import type { ApplyWrites } from "./apply-writes.js";

/** Whether a row is a lock's own: places in a queue and results of flights are nobody's lock. */
export function isHolder({ sort }: Address): boolean {
  const kind = kindOf(sort);
  return kind !== undefined && kind !== "place" && kind !== "result";
}

/** The items of one name, by their sort keys. A change makes a new map, so whoever keeps one keeps what was. */
export type Partition = ReadonlyMap<string, Attributes>;

/** How many items a page looks at: few, so that there are several pages. */
const PAGE_ITEMS = 3;

/** A map, and what the protocol says that a write does to an item: each at one instant, whatever the time is. */
export class MemoryTable {
  readonly #partitions = new Map<string, Partition>();
  /** The callers' own writes whose guard held, by token, and what came of them. */
  readonly #transacted = new Map<string, { readonly writes: GuardedWrites; readonly outcome: TransactOutcome }>();
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
    return [...this.#transacted.values()].flatMap(({ writes, outcome }) =>
      outcome.kind === "committed" ? writes : [],
    );
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
  applyAll(writes: readonly Take[]): readonly Applied[] {
    const wouldBe = writes.map((write) => apply(this.item(write.at), detached(write)));
    return wouldBe.some(({ kind }) => kind === "refused") ? wouldBe : writes.map((write) => this.apply(write));
  }

  write(write: Write): WriteOutcome {
    return outcomeOf(write, this.apply(write));
  }

  /** As DynamoDB does, it applies no renewal of a batch that has a row twice. */
  renewAll(renewals: readonly Renew[]): readonly (WriteOutcome | LockStoreError)[] {
    const keys = new Set(renewals.map(({ at }) => `${at.sort}/${at.name}`));
    if (keys.size < renewals.length) throw new LockStoreError("a batch has a row twice");
    return renewals.map((renewal) => this.#renewed(renewal));
  }

  writeAll(writes: readonly Take[]): WriteAllOutcome {
    const applied = this.applyAll(writes);
    if (applied.every(({ kind }) => kind === "applied")) return { kind: "applied" };
    const rows = writes.map(({ at }, index) => {
      const one = applied[index];
      return one?.kind === "refused" ? parsed(at, one.by) : undefined;
    });
    return { kind: "refused", rows };
  }

  /**
   * Applies a caller's own writes if the guard holds. A further copy, which has the same token, gets the answer of the first.
   * @param applyItems what is done with the items; what it throws is their refusal.
   */
  transact(writes: GuardedWrites, applyItems: ApplyWrites = () => undefined): TransactOutcome {
    const { guard, items, token } = writes;
    const before = this.#transacted.get(token);
    if (before !== undefined) return before.outcome;
    const checked = this.apply(guard);
    if (checked.kind === "refused") return { kind: "unguarded", row: parsed(guard.at, checked.by) };
    const outcome = applied(items, applyItems);
    this.#transacted.set(token, { writes, outcome });
    return outcome;
  }

  read(at: Address): Row | undefined {
    return parsed(at, this.item(at));
  }

  /** A page of a query. As DynamoDB does, it says where it ends whenever it is full, even if nothing follows. */
  query({ name, first, last, after = "", limit }: RangeQuery): Page<string> {
    const inOrder = [...this.partition(name)]
      .filter(([sort]) => sort >= first && sort <= last && sort > after)
      .sort(([one], [other]) => (one < other ? -1 : 1));
    const most = Math.min(limit, this.#pageItems);
    const page = inOrder.slice(0, most);
    const ours = page.filter(([sort]) => kindOf(sort) !== undefined);
    const next = page.length === most ? page.at(-1)?.[0] : undefined;
    return { ...sorted(ours, ([sort, item]) => parsed({ name, sort }, item)), next };
  }

  /** A page of a scan: a few items, and of these the locks' own rows whose names begin so. */
  scan(prefix: string, after: Cursor | undefined): Page<Cursor> {
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
      return this.write(renewal);
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

function outcomeOf(write: Write, applied: Applied): WriteOutcome {
  if (applied.kind === "refused") return { kind: "refused", row: parsed(write.at, applied.by), retried: false };
  const isMarked = applied.before?.wanted !== undefined;
  const isTaken = write.kind === "take" || write.kind === "transfer";
  const isOfHolder = write.kind === "vacate" || write.kind === "renew";
  const replaced = isTaken || (isOfHolder && isMarked) ? parsed(write.at, applied.before) : undefined;
  return { kind: "applied", replaced, drawn: drawnBy(write, applied.before) };
}

function applied(items: readonly TransactWriteItem[], applyItems: ApplyWrites): TransactOutcome {
  try {
    applyItems(items);
    return { kind: "committed" };
  } catch (error) {
    return { kind: "refused", error };
  }
}

/** @throws {@link LockStoreError} for an item that this library did not write. */
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
