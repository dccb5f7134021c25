import {
  type CancellationReason,
  DeleteItemCommand,
  type DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  ScanCommand,
  type TransactWriteItem,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import { LockStoreError } from "../errors.js";
import type { DocumentGuard } from "../guard.js";
import type { LockData } from "../lock-info.js";
import type { TableLayout } from "../options/table.js";
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
  Take,
  TakeAllOutcome,
  TakeOutcome,
  Terms,
  TransactOutcome,
  WriteOutcome,
} from "../store.js";
import type { TableStore } from "../ticket-store.js";
import type { Clock } from "../time/clock.js";
import { marshalledData } from "./data.js";
import { DynamoDbTickets } from "./dynamodb-tickets.js";
import {
  isCancellation,
  isConflict,
  isPassingCancellation,
  isRefusal,
  isRefusedItem,
  refusalsOf,
  storeFailure,
} from "./failures.js";
import { admitItems, documentGuard, guardItem } from "./guards.js";
import { fenceOf, type Item, rowOf } from "./items.js";
import { type RenewalInput, Requests } from "./requests.js";
import { pageOf, scanOf } from "./scanning.js";
import { type ItemCommand, type Reply, Transport } from "./transport.js";

type Refused = Extract<WriteOutcome, { kind: "refused" }>;

/** What a write came to, and what it shows of the row: its refusal is an outcome, not an error. */
type Written = { readonly kind: "applied"; readonly attributes: Item | undefined } | Refused;

/** The port on a DynamoDB table: one request for each operation, and a second where a refusal shows no row. */
export class DynamoDbStore implements TableStore {
  readonly tickets: DynamoDbTickets | undefined;
  readonly #client: DynamoDBClient;
  readonly #layout: TableLayout;
  readonly #transport: Transport;
  readonly #requests: Requests;
  /** Whether the endpoint has shown that it is a table. */
  #proven = false;

  constructor(options: {
    /** `close()` destroys a {@link DefaultClient}, and leaves a caller's open. */
    readonly client: DynamoDBClient;
    readonly layout: TableLayout;
    readonly clock: Clock;
  }) {
    const { client, layout, clock } = options;
    this.#client = client;
    this.#layout = layout;
    this.#transport = new Transport(client, layout, clock);
    this.#requests = new Requests(layout);
    const { sort } = layout;
    this.tickets = sort === undefined ? undefined : new DynamoDbTickets(this.#transport, { ...layout, sort });
  }

  admit(data: LockData | undefined): void {
    if (data !== undefined) marshalledData(data);
  }

  async take(claim: Claim, terms: Terms, signal: AbortSignal): Promise<TakeOutcome> {
    const command = terms.kept
      ? new UpdateItemCommand(this.#requests.takeKept(claim, terms))
      : new PutItemCommand(this.#requests.put(claim, terms));
    const written = await this.#write(command, claim.name, signal);
    if (written.kind === "applied") {
      if (!this.#proven) await this.#prove(claim.name, signal);
      return {
        kind: "granted",
        replaced: this.#replaced(written.attributes),
        fence: tokenOf(claim, written.attributes),
      };
    }
    if (written.row !== undefined) return { kind: "held", row: written.row };
    throw new LockStoreError(`The row of lock ${claim.name} was in the way and then was gone: try again`, {
      transient: true,
    });
  }

  async takeAll(takes: readonly Take[], signal: AbortSignal): Promise<TakeAllOutcome> {
    const command = new TransactWriteItemsCommand({
      TransactItems: takes.map((take) => this.#requests.takeItem(take)),
    });
    try {
      this.#heard(await this.#transport.ask(command, signal));
    } catch (error) {
      const reasons = refusalsOf(error);
      if (reasons === undefined) throw error;
      const rows = await Promise.all(takes.map((take, index) => this.#refusing(take, reasons[index], signal)));
      const isAnothers = rows.some((row, index) => row !== undefined && row.uuid !== takes[index]?.claim.uuid);
      if (isAnothers || (rows.every((row) => row !== undefined) && !reasons.some(isConflict))) {
        return { kind: "someHeld", rows };
      }
      // An earlier copy of our own, where something else is under way, or rows that are gone: the next try tells.
      throw new LockStoreError(`The rows of ${takes.length} locks changed while they were taken: try again`, {
        transient: true,
      });
    }
    if (!this.#proven) await this.#prove(takes[0]?.claim.name ?? "", signal);
    return { kind: "allGranted" };
  }

  async read(name: string, options: { readonly consistent: boolean }, signal: AbortSignal): Promise<Row | undefined> {
    const item = await this.#get(name, options.consistent, signal);
    return item && rowOf(this.#layout, item);
  }

  async renew(renewal: RenewalInput, signal: AbortSignal): Promise<WriteOutcome> {
    const command = new UpdateItemCommand(this.#requests.renew(renewal));
    return await this.#write(command, renewal.name, signal);
  }

  async restamp(
    name: string,
    from: Stamped,
    to: Stamped & { readonly ticked?: boolean | undefined },
    signal: AbortSignal,
  ): Promise<WriteOutcome> {
    const command = new UpdateItemCommand(this.#requests.restamp(name, from, to));
    return await this.#write(command, name, signal);
  }

  async reissue(reissue: Reissue, signal: AbortSignal): Promise<ReissueOutcome> {
    const command = new UpdateItemCommand(this.#requests.reissue(reissue));
    const written = await this.#write(command, reissue.name, signal);
    if (written.kind === "refused") return written;
    return { kind: "applied", fence: reissue.fenced ? fenceOf(written.attributes) : undefined };
  }

  release(
    name: string,
    uuid: string,
    options: {
      readonly kept: boolean;
      readonly parked?: Parking | undefined;
      readonly ticked?: boolean | undefined;
    },
    signal: AbortSignal,
  ): Promise<WriteOutcome> {
    return this.#write(this.#release(name, uuid, options), name, signal);
  }

  async want(name: string, uuid: string, until: number, signal: AbortSignal): Promise<WriteOutcome> {
    return await this.#write(new UpdateItemCommand(this.#requests.want(name, uuid, until)), name, signal);
  }

  async force(
    name: string,
    uuid: string,
    { now }: { readonly now: boolean },
    signal: AbortSignal,
  ): Promise<WriteOutcome> {
    // Freed at once it is what the release of a kept row leaves: a row that anybody may take, on any clock.
    const input = now ? this.#requests.free(name, uuid) : this.#requests.force(name, uuid);
    return await this.#write(new UpdateItemCommand(input), name, signal);
  }

  async list(prefix: string, after: Cursor | undefined, signal: AbortSignal): Promise<RowPage> {
    const command = new ScanCommand(scanOf(this.#layout, prefix, after));
    return pageOf(this.#layout, await this.#transport.ask(command, signal));
  }

  guard(guard: Guard): TransactWriteItem {
    return guardItem(this.#layout, guard);
  }

  documentGuard(guard: Guard): DocumentGuard {
    return documentGuard(this.#layout, guard);
  }

  admitItems(name: string, items: readonly TransactWriteItem[]): void {
    admitItems(this.#layout, name, items);
  }

  async transact({ items, guard, token }: GuardedWrites, signal: AbortSignal): Promise<TransactOutcome> {
    // The guard comes last: the reasons for a cancellation then stand in the order of the caller's items.
    const TransactItems = [...items, this.guard(guard)];
    const command = new TransactWriteItemsCommand({ TransactItems, ClientRequestToken: token });
    try {
      await this.#transport.send(command, signal);
      return { kind: "committed" };
    } catch (error) {
      const failure = storeFailure(error, { action: "TransactWriteItems", tableName: this.#layout.tableName });
      if (!isCancellation(error)) {
        if (failure.transient) throw failure;
        return { kind: "refused", error };
      }
      const reasons = error.CancellationReasons ?? [];
      const ofGuard = reasons[items.length];
      if (ofGuard?.Code !== "ConditionalCheckFailed") {
        if (isPassingCancellation(reasons)) throw failure;
        return { kind: "refused", error };
      }
      const item = ofGuard.Item ?? (await this.#get(guard.name, true, signal));
      return { kind: "unguarded", row: item && rowOf(this.#layout, item) };
    }
  }

  close(): void {
    if (isOwnClient(this.#client)) this.#client.destroy();
  }

  /** The row that refused one claim of a transaction, if one did. An engine that does not show it is asked. */
  async #refusing(
    { claim }: Take,
    reason: CancellationReason | undefined,
    signal: AbortSignal,
  ): Promise<Row | undefined> {
    if (reason === undefined || !isRefusedItem(reason)) return undefined;
    const item = reason.Item ?? (await this.#get(claim.name, true, signal));
    return item && rowOf(this.#layout, item);
  }

  #release(name: string, uuid: string, { kept, parked, ticked }: Parameters<TableStore["release"]>[2]): ItemCommand {
    if (parked !== undefined) return new UpdateItemCommand(this.#requests.park(name, uuid, { ...parked, ticked }));
    if (kept) return new UpdateItemCommand(this.#requests.free(name, uuid));
    return new DeleteItemCommand(this.#requests.delete(name, uuid));
  }

  /** Sends a conditional write. */
  async #write(command: ItemCommand, name: string, signal: AbortSignal): Promise<Written> {
    try {
      const reply = await this.#transport.ask(command, signal);
      this.#heard(reply);
      return { kind: "applied", attributes: reply?.Attributes };
    } catch (error) {
      if (!isRefusal(error)) throw error;
      // An engine that shows no row, or no row to show: one read tells which.
      const item = error.Item ?? (await this.#get(name, true, signal));
      const row = item && rowOf(this.#layout, item);
      return { kind: "refused", row, retried: (error.$metadata?.attempts ?? 1) > 1 };
    }
  }

  /** A request id is what a table gives. */
  #heard(reply: Reply): void {
    this.#proven ||= reply?.$metadata === undefined || reply.$metadata.requestId !== undefined;
  }

  async #get(name: string, consistent: boolean, signal: AbortSignal): Promise<Item | undefined> {
    return (await this.#transport.ask(new GetItemCommand(this.#requests.get(name, consistent)), signal))?.Item;
  }

  /** What a take replaced. It is told and no more: the take stands, whatever it was. */
  #replaced(item: Item | undefined): Row | undefined {
    try {
      return item && rowOf(this.#layout, item);
    } catch {
      return undefined;
    }
  }

  /** A server that answers everything with success would grant every lock: so the first one is read back. */
  async #prove(name: string, signal: AbortSignal): Promise<void> {
    if ((await this.#get(name, true, signal)) === undefined) {
      throw new LockStoreError(
        `The endpoint of table ${this.#layout.tableName} says that it wrote a row and does not show it: check that it is DynamoDB`,
        { answered: false },
      );
    }
    this.#proven = true;
  }
}

/** The token that a claim has drawn from the row that it replaced. */
function tokenOf({ fenceSeed }: Claim, replaced: Item | undefined): bigint | undefined {
  return fenceSeed === undefined ? undefined : (fenceOf(replaced) ?? BigInt(fenceSeed)) + 1n;
}
