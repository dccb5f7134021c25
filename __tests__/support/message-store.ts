import { RowStore } from "../../lib/dynamodb/row-store.js";
import { LockStoreError } from "../../lib/errors.js";
import { tableLayout } from "../../lib/options/table.js";
import type { Address } from "../../lib/protocol/addresses.js";
import type { Row } from "../../lib/protocol/row.js";
import type { Renew, Take, Write } from "../../lib/protocol/writes.js";
import type {
  Cursor,
  GuardedWrites,
  Page,
  RangeQuery,
  Store,
  TransactOutcome,
  WriteAllOutcome,
  WriteOutcome,
} from "../../lib/store.js";
import type { MemoryTable } from "../../lib/testing/memory-table.js";
import type { Answer, Message } from "./message.js";

const LAYOUT = tableLayout({ tableName: "memory" });

/** What a table in memory answers. @throws {@link LockStoreError} for an item under one of our keys that is none of our rows. */
export function answerOf(table: MemoryTable, message: Message): Answer {
  switch (message.kind) {
    case "write":
      return { ...message, outcome: table.write(message.write) };
    case "writeAll":
      return { ...message, outcome: table.writeAll(message.takes) };
    case "renewAll":
      return { ...message, outcomes: table.renewAll(message.renewals) };
    case "transact":
      return { ...message, outcome: table.transact(message.writes) };
    case "read":
      return { ...message, row: table.read(message.at) };
    case "query":
      return { ...message, page: table.query(message.query) };
    default:
      return message satisfies never;
  }
}

/** How a message is answered. */
type Carry = (message: Message, signal: AbortSignal) => Promise<Answer>;

/** The port on a table in memory, with nothing in between unless `carry` says so. */
export class MemoryStore extends RowStore implements Store {
  readonly #table: MemoryTable;
  readonly #carry: Carry;

  constructor(
    table: MemoryTable,
    carry: Carry = async (message, signal) => {
      if (signal.aborted) throw aborted(signal);
      return answerOf(table, message);
    },
  ) {
    super(LAYOUT);
    this.#table = table;
    this.#carry = carry;
  }

  protected send(message: Message, signal: AbortSignal): Promise<Answer> {
    return this.#carry(message, signal);
  }

  protected override async writeOne(write: Write, signal: AbortSignal): Promise<WriteOutcome> {
    return (await this.#ask({ kind: "write", write }, signal)).outcome;
  }

  protected override async renewAll(
    renewals: readonly Renew[],
    signal: AbortSignal,
  ): Promise<readonly (WriteOutcome | LockStoreError)[]> {
    return (await this.#ask({ kind: "renewAll", renewals }, signal)).outcomes;
  }

  async writeAll(takes: readonly Take[], signal: AbortSignal): Promise<WriteAllOutcome> {
    return (await this.#ask({ kind: "writeAll", takes }, signal)).outcome;
  }

  async read(at: Address, options: { readonly consistent: boolean }, signal: AbortSignal): Promise<Row | undefined> {
    return (await this.#ask({ kind: "read", at, consistent: options.consistent }, signal)).row;
  }

  async query(query: RangeQuery, signal: AbortSignal): Promise<Page<string>> {
    return (await this.#ask({ kind: "query", query }, signal)).page;
  }

  /** No lock depends on what a listing says, so nothing happens to it on its way. */
  async scan(prefix: string, after: Cursor | undefined, signal: AbortSignal): Promise<Page<Cursor>> {
    if (signal.aborted) throw aborted(signal);
    return this.#table.scan(prefix, after);
  }

  async transact(writes: GuardedWrites, signal: AbortSignal): Promise<TransactOutcome> {
    return (await this.#ask({ kind: "transact", writes }, signal)).outcome;
  }

  close(): void {}

  #ask<Kind extends Message["kind"]>(
    message: Extract<Message, { kind: Kind }>,
    signal: AbortSignal,
  ): Promise<Extract<Answer, { kind: Kind }>> {
    return this.send(message, signal) as Promise<Extract<Answer, { kind: Kind }>>;
  }
}

/** What a request came to whose sender has given it up. */
export function aborted(signal: AbortSignal): LockStoreError {
  return new LockStoreError("aborted", { transient: true, answered: false, cause: signal.reason });
}
