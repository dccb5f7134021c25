import type { TransactWriteItem } from "@aws-sdk/client-dynamodb";
import type { LockStoreError } from "../errors.js";
import type { LockData } from "../lock-info.js";
import type { TableLayout } from "../options/table.js";
import type { Address } from "../protocol/addresses.js";
import type { Row } from "../protocol/row.js";
import { inOtherForm, vacateKept } from "../protocol/was-applied.js";
import type { Check, Renew, Write } from "../protocol/writes.js";
import { listenWithoutBound } from "../session/abort-listening.js";
import type { DocumentGuard, WriteOutcome } from "../store.js";
import { actionOf } from "./compile.js";
import { bytesOf, checkResult, marshalledData } from "./data.js";
import { admitItems, documentGuard } from "./guards.js";
import { RenewalBatches } from "./renewal-batches.js";

/** What every store does in the same way, on DynamoDB and in memory: guards, data, and how single writes are sent. */
export abstract class RowStore {
  readonly layout: TableLayout;
  readonly #renewals: RenewalBatches;

  constructor(layout: TableLayout) {
    this.layout = layout;
    this.#renewals = new RenewalBatches({
      one: (renewal, signal) => this.writeOne(renewal, signal),
      all: (renewals, signal, signals) => this.renewAll(renewals, signal, signals),
    });
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

  async write(write: Write, signal: AbortSignal, inTime: () => boolean = () => true): Promise<WriteOutcome> {
    if (write.kind === "renew" && write.data === undefined) return await this.#renewals.write(write, signal);
    if (write.kind === "vacate") this.#renewals.note(write.at, 0);
    // The row of a result is never renewed.
    const data = write.kind !== "put-result" && "data" in write ? write.data : undefined;
    if (data !== undefined) this.#renewals.note(write.at, bytesOf(data));
    const outcome = await this.writeOne(write, signal);
    if (outcome.kind === "applied") return outcome;
    const kept = vacateKept(write, outcome.row);
    if (kept !== undefined) return await this.writeOne(kept, signal);
    const other = inOtherForm(write, outcome.row);
    // A process may have stood still before it read the answer.
    if (other === undefined || !inTime()) return outcome;
    const second = await this.writeOne(other, signal);
    // A copy of the first form may still be under way.
    return second.kind === "refused" && outcome.retried ? { ...second, retried: true } : second;
  }

  admit(data: LockData | undefined, rows?: number): void {
    if (data !== undefined) marshalledData(data, rows);
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
