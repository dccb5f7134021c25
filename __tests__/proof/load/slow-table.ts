import { LockStoreError } from "../../../lib/errors.js";
import type { Write } from "../../../lib/protocol/writes.js";
import type { WriteOutcome } from "../../../lib/store.js";
import { MemoryTable } from "../../../lib/testing/memory-table.js";
import type { ManualTime } from "../../support/manual-time.js";
import type { Answer, Message } from "../../support/message.js";
import { aborted, answerOf, MemoryStore } from "../../support/message-store.js";

/** How a table serves requests: one after another, each for so long, at some distance. */
export interface Service {
  /** How long the table is busy with a request that arrives at this moment of the test. */
  readonly serviceMs: (elapsedMs: number) => number;
  /** There and back. */
  readonly distanceMs: number;
  /** When it goes on, for a table that stands still from time to time. Default: at once. */
  readonly goesOnAt?: ((elapsedMs: number) => number) | undefined;
  /** Whether a write of this name is throttled. Default: none is. */
  readonly isThrottled?: ((name: string) => boolean) | undefined;
  /** Whether renewals may travel together. Default: they may. */
  readonly hasBatches?: boolean | undefined;
}

/** What each further statement of a batch keeps the table busy for, as a share of a request: as DynamoDB Local has it. */
const STATEMENT_SHARE = 1 / 2;

/**
 * A table in memory that has only so much capacity, on virtual time: what exceeds it waits, and what nobody waits for any
 * more is served all the same.
 */
export class SlowTable extends MemoryStore {
  served = 0;
  readonly #time: ManualTime;
  readonly #table: MemoryTable;
  readonly #service: Service;
  #freeAt = 0;

  constructor(time: ManualTime, service: Service) {
    const table = new MemoryTable();
    super(table);
    this.#time = time;
    this.#table = table;
    this.#service = service;
  }

  override write(write: Write, signal: AbortSignal, inTime?: () => boolean): Promise<WriteOutcome> {
    return this.#service.hasBatches === false ? this.writeOne(write, signal) : super.write(write, signal, inTime);
  }

  protected override send(message: Message, signal: AbortSignal): Promise<Answer> {
    const givenUp = new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => reject(aborted(signal)), { once: true });
    });
    return Promise.race([this.#serve(message), givenUp]);
  }

  async #serve(message: Message): Promise<Answer> {
    const { serviceMs, distanceMs, goesOnAt = (now) => now } = this.#service;
    await this.#pass(distanceMs / 2);
    const statements = message.kind === "renewAll" ? message.renewals.length : 1;
    const work = 1 + (statements - 1) * STATEMENT_SHARE;
    this.served += work;
    this.#freeAt = goesOnAt(Math.max(this.#freeAt, this.#time.elapsed));
    this.#freeAt += serviceMs(this.#freeAt) * work;
    await this.#pass(this.#freeAt - this.#time.elapsed);
    const answer = this.#answer(message);
    await this.#pass(distanceMs / 2);
    return answer;
  }

  #answer(message: Message): Answer {
    if (message.kind === "renewAll") {
      const outcomes = message.renewals.map((renewal) => this.#failure(renewal) ?? this.#table.write(renewal));
      return { ...message, outcomes };
    }
    const failure = message.kind === "write" ? this.#failure(message.write) : undefined;
    if (failure !== undefined) throw failure;
    return answerOf(this.#table, message);
  }

  #failure({ at }: Write): LockStoreError | undefined {
    const { isThrottled = () => false } = this.#service;
    if (!isThrottled(at.name)) return undefined;
    return new LockStoreError("ThrottlingException", { transient: true, throttled: true });
  }

  #pass(ms: number): Promise<void> {
    return new Promise((resolve) => {
      if (ms > 0) this.#time.clock().alarm(ms, resolve);
      else resolve();
    });
  }
}
