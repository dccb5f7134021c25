import type { CancellationReason, ReturnValue } from "@aws-sdk/client-dynamodb";
import { LockStoreError } from "../errors.js";
import type { TableLayout } from "../options/table.js";
import type { Address } from "../protocol/addresses.js";
import type { Row } from "../protocol/row.js";
import { countOf, drawnBy } from "../protocol/rules.js";
import { isStillHeldBy } from "../protocol/was-applied.js";
import type { Renew, Take, Write } from "../protocol/writes.js";
import type {
  Cursor,
  GuardedWrites,
  Page,
  RangeQuery,
  Store,
  TransactOutcome,
  WriteAllOutcome,
  WriteOutcome,
} from "../store.js";
import { actionOf, type Item, itemKey } from "./compile.js";
import { isConflict, isRefusal, isRefusedItem, refusalsOf } from "./failures.js";
import { refusalOfGuard } from "./guards.js";
import { attributesOf, foreign, queryOf, rangePageOf, rowOf, scanOf, scanPageOf } from "./items.js";
import { eachOf, RowStore } from "./row-store.js";
import { statedBy, statementOf } from "./statements.js";
import type { ItemRequest, Reply, Transport } from "./transport.js";

/** The port on a DynamoDB table: one request for each operation, and a second where a refusal does not tell enough. */
export class DynamoDbStore extends RowStore implements Store {
  readonly #transport: Transport;

  constructor(layout: TableLayout, transport: Transport) {
    super(layout);
    this.#transport = transport;
  }

  async writeAll(writes: readonly Take[], signal: AbortSignal): Promise<WriteAllOutcome> {
    const TransactItems = writes.map((write) => actionOf(this.layout, write));
    try {
      const purpose = { kind: "take-all", at: writes[0]?.at } as const;
      await this.#transport.ask(["TransactWriteItems", { TransactItems }], signal, purpose);
      return { kind: "applied" };
    } catch (error) {
      // An engine may not tell the reasons: then each row is read.
      const reasons = isRefusal(error) ? writes.map(() => REFUSED) : refusalsOf(error);
      if (reasons === undefined) throw error;
      return await this.#allRefused(writes, reasons, signal);
    }
  }

  async read(at: Address, options: { readonly consistent: boolean }, signal: AbortSignal): Promise<Row | undefined> {
    const item = await this.#get(at, options.consistent, signal);
    return item && rowOf(this.layout, at, item);
  }

  async query(query: RangeQuery, signal: AbortSignal): Promise<Page<string>> {
    const request = ["Query", queryOf(this.layout, query)] as const;
    return rangePageOf(this.layout, await this.#transport.ask(request, signal, { kind: "query", at: query }));
  }

  async scan(prefix: string, after: Cursor | undefined, signal: AbortSignal): Promise<Page<Cursor>> {
    const request = ["Scan", scanOf(this.layout, prefix, after)] as const;
    return scanPageOf(this.layout, await this.#transport.ask(request, signal, { kind: "scan" }));
  }

  async transact({ items, guard, token, isMetered }: GuardedWrites, signal: AbortSignal): Promise<TransactOutcome> {
    // The guard comes last: the reasons for a cancellation then stand in the order of the caller's items.
    const TransactItems = [...items, this.guard(guard)];
    const metered = isMetered ? ({ ReturnConsumedCapacity: "TOTAL" } as const) : undefined;
    const input = { TransactItems, ClientRequestToken: token, ...metered };
    try {
      await this.#transport.send(["TransactWriteItems", input], signal, { kind: "transact", at: guard.at });
      return { kind: "committed" };
    } catch (error) {
      const refusal = refusalOfGuard(error, items.length, this.layout.tableName);
      if (refusal === undefined) {
        return { kind: "refused", error: (await this.#transport.noTransactions(error, signal)) ?? error };
      }
      return { kind: "unguarded", row: await this.#refusing(guard.at, refusal.Item, signal) };
    }
  }

  whySilent(): string | undefined {
    return this.#transport.whySilent();
  }

  close(): void {
    this.#transport.close();
  }

  protected override async writeOne(write: Write, signal: AbortSignal): Promise<WriteOutcome> {
    let reply: Reply;
    try {
      reply = await this.#transport.ask(requestOf(this.layout, write), signal, write);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      const retried = (error.$metadata?.attempts ?? 1) > 1;
      return { kind: "refused", row: await this.#refusingOne(write, error.Item, signal), retried };
    }
    const before = reply?.Attributes;
    try {
      return { kind: "applied", replaced: this.#shown(write, before), drawn: this.#drawn(write, before) };
    } catch (error) {
      if (before !== undefined && isRowShown(write, false)) await this.#putBack(write, before, signal);
      throw error;
    }
  }

  protected override async renewAll(
    renewals: readonly Renew[],
    signal: AbortSignal,
    signals: readonly AbortSignal[],
  ): Promise<readonly (WriteOutcome | Promise<WriteOutcome> | LockStoreError)[]> {
    const { tableName } = this.layout;
    const Statements = renewals.map((renewal) => statementOf(this.layout, renewal));
    const purpose = { kind: "renew-all", at: renewals[0]?.at } as const;
    const reply = await this.#transport.ask(["BatchExecuteStatement", { Statements }], signal, purpose);
    // A table answers each statement, if only to say that it failed.
    const { Responses: responses, $metadata } = reply ?? {};
    if (responses === undefined) throw new LockStoreError(`The client of table ${tableName} answers no batches`);
    const retried = ($metadata?.attempts ?? 1) > 1;
    return renewals.map((renewal, index) => {
      const stated = statedBy(responses[index], tableName);
      if (stated.kind === "failed") return stated.error;
      if (stated.kind === "applied")
        return { kind: "applied", replaced: this.#shown(renewal, stated.item), drawn: undefined };
      const row = this.#refusingOne(renewal, stated.item, signals[index] ?? signal);
      return row.then((refusedBy): WriteOutcome => ({ kind: "refused", row: refusedBy, retried }));
    });
  }

  /** @throws {@link LockStoreError} for a take or a draw if the item is gone by now: a missing item refuses neither of them. */
  async #refusingOne({ kind, at }: Write, shown: Item | undefined, signal: AbortSignal): Promise<Row | undefined> {
    const item = shown ?? (await this.#get(at, true, signal));
    if (item === undefined && (kind === "take" || kind === "draw")) {
      const message = `The row of lock ${at.name} was in the way and then was gone: try again`;
      throw new LockStoreError(message, { transient: true });
    }
    // A counter is no row, and a counter of ours never refuses a draw: so this one is foreign.
    if (kind === "draw") throw foreign(this.layout, item ?? {}, NO_COUNTER);
    return item && rowOf(this.layout, at, item);
  }

  /** Which rows refused the writes of one transaction. */
  async #allRefused(
    writes: readonly Take[],
    reasons: readonly CancellationReason[],
    signal: AbortSignal,
  ): Promise<WriteAllOutcome> {
    const rows = await eachOf(writes, signal, async ({ at }, index) => {
      const reason = reasons[index];
      return reason && isRefusedItem(reason) ? await this.#refusing(at, reason.Item, signal) : undefined;
    });
    // A missing row refuses no take.
    const isAnothers = writes.some(({ uuid }, index) => rows[index] && !isStillHeldBy(uuid, rows[index]));
    if (isAnothers || (rows.every((row) => row !== undefined) && !reasons.some(isConflict))) {
      return { kind: "refused", rows };
    }
    // Either an earlier copy of our own was applied while another write is in conflict, or rows are gone: the next try tells.
    const message = `The ${writes.length} rows changed while they were taken: try again`;
    throw new LockStoreError(message, { transient: true });
  }

  /** The row that refused, as the refusal shows it. If an engine does not show it, it is read. */
  async #refusing(at: Address, shown: Item | undefined, signal: AbortSignal): Promise<Row | undefined> {
    const item = shown ?? (await this.#get(at, true, signal));
    return item && rowOf(this.layout, at, item);
  }

  async #get(at: Address, consistent: boolean, signal: AbortSignal): Promise<Item | undefined> {
    const { tableName: TableName } = this.layout;
    const input = { TableName, Key: itemKey(this.layout, at), ConsistentRead: consistent };
    return (await this.#transport.ask(["GetItem", input], signal, { kind: "read", at }))?.Item;
  }

  /**
   * The row that a take, a transfer, or the write of a marked row found. A row that does not parse is ignored, because the
   * write was applied all the same.
   */
  #shown(write: Write, item: Item | undefined): Row | undefined {
    if (item === undefined || !isRowShown(write, item.wanted !== undefined)) return undefined;
    try {
      return rowOf(this.layout, write.at, item);
    } catch (error) {
      // Only the token of a row can be damaged in a way that no condition sees.
      if (write.kind === "take" || (write.kind === "transfer" && write.token !== undefined)) throw error;
      return undefined;
    }
  }

  /**
   * Puts the item back that a take or a transfer has changed and that is no row of ours: no condition can ask for a whole token.
   * Nobody counts on the uuid of that write. If this fails, the item stays damaged, and nobody takes it.
   */
  async #putBack(write: Write, Item: Item, signal: AbortSignal): Promise<void> {
    const uuid = "uuid" in write ? write.uuid : "";
    const condition = {
      ConditionExpression: "#uuid = :uuid",
      ExpressionAttributeNames: { "#uuid": "uuid" },
      ExpressionAttributeValues: { ":uuid": { S: uuid } },
    };
    const request: ItemRequest = ["PutItem", { TableName: this.layout.tableName, Item, ...condition }];
    await this.#transport.ask(request, signal, write).catch(() => undefined);
  }

  /** What a write has drawn, if it draws. @throws {@link LockStoreError} if it counted up somebody else's number. */
  #drawn(write: Write, before: Item | undefined): bigint | undefined {
    if (countOf(write) === undefined) return undefined;
    const drawn = drawnBy(write, before && attributesOf(this.layout, before));
    if (drawn !== undefined) return drawn;
    throw foreign(this.layout, before ?? {}, write.kind === "draw" ? NO_COUNTER : "its fence must be a whole number");
  }
}

/** A write as a request of its own. */
export function requestOf(layout: TableLayout, write: Write): ItemRequest {
  const { Put, Update, Delete, ConditionCheck } = actionOf(layout, write);
  const ReturnValues = returnedBy(write);
  if (Put !== undefined) return ["PutItem", { ...Put, ReturnValues }];
  if (Delete !== undefined) return ["DeleteItem", { ...Delete, ReturnValues }];
  if (Update !== undefined) return ["UpdateItem", { ...Update, ReturnValues }];
  // A check by itself is an update that changes nothing.
  return ["UpdateItem", { TableName: layout.tableName, Key: itemKey(layout, write.at), ...ConditionCheck }];
}

/** What the reply shows, at no cost: the row as it was; for other writes that count, the old values of what they changed. */
function returnedBy(write: Write): ReturnValue | undefined {
  if (isRowShown(write, true)) return "ALL_OLD";
  return countOf(write) === undefined ? undefined : "UPDATED_OLD";
}

/**
 * Whether the outcome shows the row as it was: a take and a transfer always, a release and a renewal only if others have marked it.
 */
function isRowShown({ kind }: Write, isMarked: boolean): boolean {
  return kind === "take" || kind === "transfer" || ((kind === "vacate" || kind === "renew") && isMarked);
}

const REFUSED: CancellationReason = { Code: "ConditionalCheckFailed" };
const NO_COUNTER = "it does not count tickets";
