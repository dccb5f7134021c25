import type { TransactWriteItem } from "@aws-sdk/client-dynamodb";
import { storeFailure } from "../dynamodb/failures.js";
import type { TableLayout } from "../options/table.js";
import { leftBy } from "../protocol/rules.js";
import { onAbort } from "../session/abort-listening.js";
import type { Cursor, GuardedWrites, RowPage } from "../store.js";
import type { Clock } from "../time/clock.js";
import type { ApplyWrites } from "./apply-writes.js";
import { aborted, type MemoryTable, MessageStore } from "./memory-store.js";
import type { Answer, Message } from "./message.js";

/** What becomes of a host's requests: each is answered, none is, or each fails with an error. */
export type Condition =
  | { readonly kind: "answers" }
  | { readonly kind: "silent" }
  | { readonly kind: "fails"; readonly error: unknown };

/** What a caller's own writes were refused with. */
interface Refusal {
  readonly error: unknown;
}

/** The way from one host to a table in memory. */
export class TestStore extends MessageStore {
  readonly #table: MemoryTable;
  readonly #layout: TableLayout;
  readonly #clock: Clock;
  readonly #condition: () => Condition;
  readonly #applyWrites: ApplyWrites;
  /** What became of the callers' writes, by their tokens: DynamoDB applies them once as well. */
  readonly #applied = new Map<string, Refusal | undefined>();

  constructor(
    table: MemoryTable,
    how: {
      readonly layout: TableLayout;
      readonly clock: Clock;
      readonly condition: () => Condition;
      readonly applyWrites: ApplyWrites;
    },
  ) {
    super(table, how.layout);
    this.#table = table;
    this.#layout = how.layout;
    this.#clock = how.clock;
    this.#condition = how.condition;
    this.#applyWrites = how.applyWrites;
  }

  /**
   * A request without an answer never arrives: it is not applied, now or later.
   * @throws {@link LockStoreError} once `signal` aborts, while the table is silent; at once while it fails.
   */
  async reach(action: string, signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw aborted(signal);
    const condition = this.#condition();
    switch (condition.kind) {
      case "answers":
        return;
      case "silent": {
        // As the socket of a request does.
        const leave = this.#clock.stay?.();
        return await new Promise<never>((_, reject) => {
          onAbort(signal, () => reject(aborted(signal)));
        }).finally(leave);
      }
      case "fails":
        throw storeFailure(condition.error, { action, tableName: this.#layout.tableName });
      default:
        condition satisfies never;
    }
  }

  override async scan(prefix: string, after: Cursor | undefined, signal: AbortSignal): Promise<RowPage> {
    await this.reach("Scan", signal);
    return await super.scan(prefix, after, signal);
  }

  protected override async send(message: Message, signal: AbortSignal): Promise<Answer> {
    await this.reach(actionOf(message), signal);
    if (message.kind !== "transact") return this.#table.answer(message);
    const answer = this.#table.answer(message);
    if (answer.kind !== "transact" || answer.outcome.kind !== "committed") return answer;
    const refusal = this.#apply(message.writes);
    return refusal === undefined ? answer : { ...message, outcome: { kind: "refused", error: refusal.error } };
  }

  #apply({ items, token }: GuardedWrites): Refusal | undefined {
    if (!this.#applied.has(token)) this.#applied.set(token, this.#applyOnce(items));
    return this.#applied.get(token);
  }

  #applyOnce(items: readonly TransactWriteItem[]): Refusal | undefined {
    try {
      this.#applyWrites(items);
      return undefined;
    } catch (error) {
      return { error };
    }
  }
}

/** The operation as IAM calls it, for the errors that say so. */
function actionOf(message: Message): string {
  switch (message.kind) {
    case "write": {
      const { kind } = leftBy(message.write);
      return kind === "put" ? "PutItem" : kind === "delete" ? "DeleteItem" : "UpdateItem";
    }
    case "writeAll":
      return "PutItem";
    case "renewAll":
      return "PartiQLUpdate";
    case "read":
      return "GetItem";
    case "query":
      return "Query";
    case "transact":
      return "TransactWriteItems";
    default:
      return message satisfies never;
  }
}
