import type { TransactWriteItem } from "@aws-sdk/client-dynamodb";
import { marshalledData } from "../../lib/dynamodb/data.js";
import { admitItems, documentGuard, guardItem } from "../../lib/dynamodb/guards.js";
import { LockStoreError } from "../../lib/errors.js";
import type { DocumentGuard } from "../../lib/guard.js";
import type { LockData } from "../../lib/lock-info.js";
import { tableLayout } from "../../lib/options/table.js";
import { admits } from "../../lib/protocol/row.js";
import type {
  Claim,
  Cursor,
  Guard,
  GuardedWrites,
  Parking,
  Reissue,
  ReissueOutcome,
  Row,
  RowPage,
  Stamped,
  Store,
  Take,
  TakeAllOutcome,
  TakeOutcome,
  Terms,
  TransactOutcome,
  WriteOutcome,
} from "../../lib/store.js";
import type { TableStore, TicketStore } from "../../lib/ticket-store.js";
import { MemoryTickets, type TicketOperation, type TicketResult, ticketStoreOver } from "./memory-tickets.js";

/** Where a guard says that the rows are. */
export const LAYOUT = tableLayout({ tableName: "memory" });

/** What a message asks of the table: plain data, which a network can hold back, repeat and reorder. */
export type Operation =
  | { readonly kind: "take"; readonly name: string; readonly claim: Claim; readonly terms: Terms }
  /** `name` is the first of them. */
  | { readonly kind: "takeAll"; readonly name: string; readonly takes: readonly Take[] }
  | { readonly kind: "read"; readonly name: string; readonly consistent: boolean }
  | {
      readonly kind: "renew";
      readonly name: string;
      readonly uuid: string;
      readonly expires: number;
      readonly data?: LockData | undefined;
    }
  | { readonly kind: "restamp"; readonly name: string; readonly from: Stamped; readonly to: Stamped }
  | ({ readonly kind: "reissue" } & Reissue)
  | ({ readonly kind: "transact"; readonly name: string } & GuardedWrites)
  | {
      readonly kind: "release";
      readonly name: string;
      readonly uuid: string;
      readonly kept: boolean;
      readonly parked?: Parking | undefined;
    }
  | { readonly kind: "force"; readonly name: string; readonly uuid: string; readonly now: boolean }
  | { readonly kind: "want"; readonly name: string; readonly uuid: string; readonly until: number }
  | { readonly kind: "ticket"; readonly name: string; readonly ticket: TicketOperation };

export type Outcome =
  | TakeOutcome
  | TakeAllOutcome
  | WriteOutcome
  | ReissueOutcome
  | TransactOutcome
  | { readonly kind: "read"; readonly row: Row | undefined }
  | { readonly kind: "ticket"; readonly result: TicketResult }
  /** An item under the key that this library did not write. */
  | { readonly kind: "foreign"; readonly item: unknown };

/** The rows, and what the conditional writes do to them: each at one instant, whatever the time is. */
export class MemoryTable {
  readonly #rows = new Map<string, Row>();
  readonly #foreign = new Map<string, unknown>();
  readonly #committed = new Map<string, GuardedWrites>();
  /** The waiters of fair mutexes, and their counters. */
  readonly tickets = new MemoryTickets();

  get rows(): ReadonlyMap<string, Row> {
    return this.#rows;
  }

  /** What somebody else put under a lock's key. */
  get foreign(): ReadonlyMap<string, unknown> {
    return this.#foreign;
  }

  /** The callers' own writes that were applied, in order. */
  get committed(): readonly GuardedWrites[] {
    return [...this.#committed.values()];
  }

  /** A row as some earlier host left it. */
  plant(row: Row): void {
    this.#rows.set(row.name, row);
  }

  plantForeign(name: string, item: unknown): void {
    this.#foreign.set(name, item);
  }

  /** A page of a listing: the rows of locks that a few names have. */
  page(prefix: string, after: Cursor | undefined): RowPage {
    const names = [...this.#rows.keys()].filter((name) => !this.#foreign.has(name)).sort();
    const rest = names.filter((name) => after === undefined || name > (after.name as string));
    const page = rest.slice(0, PAGE_ROWS);
    const rows = page.filter((name) => name.startsWith(prefix)).map((name) => this.#rows.get(name) as Row);
    return { rows, next: rest.length > PAGE_ROWS ? { name: page.at(-1) } : undefined };
  }

  apply(operation: Operation): Outcome {
    const { name } = operation;
    if (this.#foreign.has(name)) return { kind: "foreign", item: this.#foreign.get(name) };
    const row = this.#rows.get(name);
    const refused = { kind: "refused", row, retried: false } as const;
    switch (operation.kind) {
      case "read":
        return { kind: "read", row };
      case "take":
        if (row !== undefined && !admits(operation.terms, row, operation.claim.tick)) return { kind: "held", row };
        this.#rows.set(name, taken(operation.claim, row));
        return { kind: "granted", replaced: row, fence: tokenFor(operation.claim, row) };
      case "takeAll":
        return this.#takeAll(operation.takes);
      case "renew":
        if (row?.uuid !== operation.uuid || row.expires >= operation.expires) return refused;
        this.#rows.set(name, { ...row, expires: operation.expires, data: copied(operation.data) ?? row.data });
        return { kind: "applied" };
      case "restamp":
        if (row?.uuid !== operation.from.uuid || row.expires !== operation.from.expires) return refused;
        this.#rows.set(name, { ...row, uuid: operation.to.uuid, expires: operation.to.expires });
        return { kind: "applied" };
      case "reissue": {
        const { from, to, fenced } = operation;
        if (row?.uuid !== from || row.expires >= to.expires) return refused;
        const fence = fenced ? (row.fence ?? 0n) + 1n : row.fence;
        this.#rows.set(name, { ...row, ...to, fence });
        return { kind: "applied", fence: fenced ? fence : undefined };
      }
      case "transact": {
        const { items, guard, token } = operation;
        // A second copy of what was applied gets the answer of the first.
        if (!this.#committed.has(token) && !isGuarded(guard, row)) return { kind: "unguarded", row };
        this.#committed.set(token, { items, guard, token });
        return { kind: "committed" };
      }
      case "release":
        if (row?.uuid !== operation.uuid) return refused;
        if (operation.parked !== undefined) {
          this.#rows.set(name, { ...row, ...operation.parked, uuid: undefined, wanted: undefined });
        } else if (operation.kept) this.#rows.set(name, { ...row, uuid: undefined, expires: 0, wanted: undefined });
        else this.#rows.delete(name);
        return { kind: "applied" };
      case "force":
        if (row?.uuid !== operation.uuid) return refused;
        if (operation.now) this.#rows.set(name, { ...row, uuid: undefined, expires: 0, wanted: undefined });
        else this.#rows.set(name, { ...row, uuid: undefined });
        return { kind: "applied" };
      case "want":
        if (row?.uuid !== operation.uuid) return refused;
        this.#rows.set(name, { ...row, wanted: operation.until });
        return { kind: "applied" };
      case "ticket":
        return { kind: "ticket", result: this.tickets.apply(name, operation.ticket, row) };
      default:
        return operation satisfies never;
    }
  }

  #takeAll(takes: readonly Take[]): Outcome {
    const foreign = takes.find(({ claim }) => this.#foreign.has(claim.name))?.claim.name;
    if (foreign !== undefined) return { kind: "foreign", item: this.#foreign.get(foreign) };
    const rows = takes.map(({ claim, terms }) => {
      const row = this.#rows.get(claim.name);
      return row === undefined || admits(terms, row, claim.tick) ? undefined : row;
    });
    if (rows.some((row) => row !== undefined)) return { kind: "someHeld", rows };
    for (const { claim } of takes) this.#rows.set(claim.name, taken(claim, this.#rows.get(claim.name)));
    return { kind: "allGranted" };
  }
}

/** How many rows a page looks at: few, so that there are several. */
const PAGE_ROWS = 3;

/** The port on a table in memory, with nothing in between. */
export class MemoryStore implements TableStore {
  readonly tickets: TicketStore = ticketStoreOver(
    async (name, ticket, signal) =>
      this.#send<Extract<Outcome, { kind: "ticket" }>>({ kind: "ticket", name, ticket }, signal).result,
  );
  readonly #table: MemoryTable;

  constructor(table: MemoryTable) {
    this.#table = table;
  }

  admit(data: LockData | undefined): void {
    if (data !== undefined) marshalledData(data);
  }

  async take(claim: Claim, terms: Terms, signal: AbortSignal): Promise<TakeOutcome> {
    this.admit(claim.data);
    return this.#send<TakeOutcome>({ kind: "take", name: claim.name, claim, terms }, signal);
  }

  async takeAll(takes: readonly Take[], signal: AbortSignal): Promise<TakeAllOutcome> {
    for (const { claim } of takes) this.admit(claim.data);
    return this.#send<TakeAllOutcome>({ kind: "takeAll", name: takes[0]?.claim.name ?? "", takes }, signal);
  }

  async read(
    name: string,
    { consistent }: { readonly consistent: boolean },
    signal: AbortSignal,
  ): Promise<Row | undefined> {
    return this.#send<Extract<Outcome, { kind: "read" }>>({ kind: "read", name, consistent }, signal).row;
  }

  async renew(renewal: Parameters<Store["renew"]>[0], signal: AbortSignal): Promise<WriteOutcome> {
    this.admit(renewal.data);
    return this.#send<WriteOutcome>({ kind: "renew", ...renewal }, signal);
  }

  async restamp(name: string, from: Stamped, to: Stamped, signal: AbortSignal): Promise<WriteOutcome> {
    return this.#send<WriteOutcome>({ kind: "restamp", name, from, to }, signal);
  }

  async reissue(reissue: Reissue, signal: AbortSignal): Promise<ReissueOutcome> {
    return this.#send<ReissueOutcome>({ kind: "reissue", ...reissue }, signal);
  }

  async release(
    name: string,
    uuid: string,
    { kept, parked }: { readonly kept: boolean; readonly parked?: Parking | undefined },
    signal: AbortSignal,
  ): Promise<WriteOutcome> {
    return this.#send<WriteOutcome>({ kind: "release", name, uuid, kept, parked }, signal);
  }

  async want(name: string, uuid: string, until: number, signal: AbortSignal): Promise<WriteOutcome> {
    return this.#send<WriteOutcome>({ kind: "want", name, uuid, until }, signal);
  }

  async force(
    name: string,
    uuid: string,
    { now }: { readonly now: boolean },
    signal: AbortSignal,
  ): Promise<WriteOutcome> {
    return this.#send<WriteOutcome>({ kind: "force", name, uuid, now }, signal);
  }

  async list(prefix: string, after: Cursor | undefined, signal: AbortSignal): Promise<RowPage> {
    if (signal.aborted) throw aborted(signal);
    return this.#table.page(prefix, after);
  }

  guard(guard: Guard): TransactWriteItem {
    return guardItem(LAYOUT, guard);
  }

  documentGuard(guard: Guard): DocumentGuard {
    return documentGuard(LAYOUT, guard);
  }

  admitItems(name: string, items: readonly TransactWriteItem[]): void {
    admitItems(LAYOUT, name, items);
  }

  async transact(writes: GuardedWrites, signal: AbortSignal): Promise<TransactOutcome> {
    return this.#send<TransactOutcome>({ kind: "transact", name: writes.guard.name, ...writes }, signal);
  }

  close(): void {}

  #send<Expected extends Outcome>(operation: Operation, signal: AbortSignal): Expected {
    if (signal.aborted) throw aborted(signal);
    const outcome = this.#table.apply(operation);
    if (outcome.kind === "foreign") throw new LockStoreError(`not a lock: ${JSON.stringify(outcome.item)}`);
    return outcome as Expected;
  }
}

function aborted(signal: AbortSignal): LockStoreError {
  return new LockStoreError("aborted", { transient: true, answered: false, cause: signal.reason });
}

/** A claim over the row that it replaces. What the row remembers stays: a put never gets to a row that remembers. */
function taken({ fenceSeed, ...claim }: Claim, row: Row | undefined): Row {
  const fence = tokenFor({ fenceSeed }, row) ?? row?.fence;
  return { ...claim, data: copied(claim.data), wanted: undefined, fence, tick: claim.tick ?? row?.tick };
}

function isGuarded({ uuid, after, fence }: Guard, row: Row | undefined): boolean {
  return row?.uuid === uuid && row.expires > after && (fence === undefined || row.fence === fence);
}

function tokenFor({ fenceSeed }: Pick<Claim, "fenceSeed">, row: Row | undefined): bigint | undefined {
  return fenceSeed === undefined ? undefined : (row?.fence ?? BigInt(fenceSeed)) + 1n;
}

/** Cut off from its sender, as what goes through a network is. */
function copied(data: LockData | undefined): LockData | undefined {
  return data && structuredClone(data);
}
