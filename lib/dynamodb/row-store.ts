import type { TransactWriteItem } from "@aws-sdk/client-dynamodb";
import type { LockStoreError } from "../errors.js";
import type { LockData } from "../lock-info.js";
import type { TableLayout } from "../options/table.js";
import type { Address } from "../protocol/addresses.js";
import type { Row } from "../protocol/row.js";
import { isStillHeldBy, vacateKept } from "../protocol/was-applied.js";
import type { Check, Renew, Take, Write } from "../protocol/writes.js";
import { listenWithoutBound } from "../session/abort-listening.js";
import type { DocumentGuard, WriteAllOutcome, WriteOutcome } from "../store.js";
import { actionOf } from "./compile.js";
import { bytesOf, checkResult, marshalledData } from "./data.js";
import { admitItems, documentGuard } from "./guards.js";
import { RenewalBatches } from "./renewal-batches.js";
import { notShown, stillInDoubt, type TableSign } from "./table-sign.js";

/** What every store does in the same way, on DynamoDB and in memory: guards, data, and how single writes are sent. */
export abstract class RowStore {
  readonly layout: TableLayout;
  /** What tells the table's replies from those of others. */
  protected readonly sign: TableSign;
  readonly #renewals: RenewalBatches;

  constructor(layout: TableLayout, sign: TableSign) {
    this.layout = layout;
    this.sign = sign;
    this.#renewals = new RenewalBatches({
      one: (renewal, signal) => this.writeOne(renewal, signal),
      all: (renewals, signal, signals) => this.renewAll(renewals, signal, signals),
    });
  }

  get isKnown(): boolean {
    return this.sign.isKnown;
  }

  /** Sends a write once. Its refusal is an outcome, not an error. */
  protected abstract writeOne(write: Write, signal: AbortSignal): Promise<WriteOutcome>;

  /** Sends renewals in one request. Each has an outcome, or an error, and a signal of its own. */
  protected abstract renewAll(
    renewals: readonly Renew[],
    signal: AbortSignal,
    signals: readonly AbortSignal[],
  ): Promise<readonly (WriteOutcome | Promise<WriteOutcome> | LockStoreError)[]>;

  abstract read(at: Address, options: { readonly consistent: boolean }, signal: AbortSignal): Promise<Row | undefined>;

  async write(write: Write, signal: AbortSignal): Promise<WriteOutcome> {
    if (write.kind === "renew" && write.data === undefined) return await this.#renewals.write(write, signal);
    if (write.kind === "vacate") this.#renewals.note(write.at, 0);
    // The row of a result is never renewed.
    const data = write.kind !== "put-result" && "data" in write ? write.data : undefined;
    if (data !== undefined) this.#renewals.note(write.at, bytesOf(data));
    const outcome = await this.writeOne(write, signal);
    // A grant whose first copy lost its reply is known by the refusal of its second.
    if (outcome.kind === "refused" && grants(write)) this.#learn(write, outcome.row);
    const again = outcome.kind === "refused" ? vacateKept(write, outcome.row) : undefined;
    return again === undefined ? outcome : await this.writeOne(again, signal);
  }

  /**
   * What the row says of a grant whose reply is no proof. A server that answers everything with success would grant every lock.
   * @returns a refusal by the row: if the row has the uuid of the write, the write was applied.
   * @throws {@link LockStoreError} if there is no row.
   */
  protected async readBack(write: Grant, signal: AbortSignal): Promise<WriteOutcome> {
    return { kind: "refused", row: await this.#rowAfter(write, signal), retried: true };
  }

  /** The same for the writes of one transaction. */
  protected async readBackAll(writes: readonly Take[], signal: AbortSignal): Promise<WriteAllOutcome> {
    return { kind: "refused", rows: await eachOf(writes, signal, (write) => this.#rowAfter(write, signal)) };
  }

  async #rowAfter({ at, uuid }: Grant, signal: AbortSignal): Promise<Row> {
    const row = await this.read(at, { consistent: true }, signal).catch((error: unknown) => {
      throw stillInDoubt(error);
    });
    if (row === undefined) throw notShown(this.layout.tableName, this.sign.isKnown);
    this.#learn({ uuid }, row);
    return row;
  }

  /** Nobody but the table knows the uuid of a grant. */
  #learn({ uuid }: Pick<Grant, "uuid">, row: Row | undefined): void {
    if (isStillHeldBy(uuid, row)) this.sign.prove();
  }

  admit(data: LockData | undefined): void {
    if (data !== undefined) marshalledData(data);
  }

  admitResult(data: LockData): void {
    checkResult(data);
  }

  guard(guard: Check): TransactWriteItem {
    return actionOf(this.layout, guard);
  }

  documentGuard(guard: Check): DocumentGuard {
    return documentGuard(this.layout, guard);
  }

  admitItems(at: Address, items: readonly TransactWriteItem[]): void {
    admitItems(this.layout, at, items);
  }
}

/** Asks for each of these at once, with one signal, which every request listens to. */
export function eachOf<One, Answer>(
  all: readonly One[],
  signal: AbortSignal,
  ask: (one: One, index: number) => Promise<Answer>,
): Promise<readonly Answer[]> {
  listenWithoutBound(signal);
  return Promise.all(all.map(ask));
}

/** A write on whose success somebody runs a section. */
type Grant = Extract<Write, { readonly kind: "take" | "reissue" | "transfer" }>;

export function grants(write: Write): write is Grant {
  return write.kind === "take" || write.kind === "reissue" || write.kind === "transfer";
}
