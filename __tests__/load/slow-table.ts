import { RenewalBatches } from "../../lib/dynamodb/renewal-batches.js";
import { LockStoreError } from "../../lib/errors.js";
import type { Renew, Write } from "../../lib/protocol/writes.js";
import type { Store, WriteOutcome } from "../../lib/store.js";
import { MemoryTable } from "../../lib/testing/memory-table.js";
import type { ManualTime } from "../support/manual-time.js";
import { aborted, MemoryStore } from "../support/message-store.js";

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
 * more is served all the same. Renewals travel together as they do in production.
 */
export function slowTable(time: ManualTime, service: Service): { store: Store; served(): number } {
  const { serviceMs, distanceMs, goesOnAt = (now) => now, isThrottled = () => false, hasBatches = true } = service;
  let served = 0;
  let freeAt = 0;
  const clock = time.clock();
  const table = new MemoryTable();
  const near = new MemoryStore(table);

  const pass = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      if (ms > 0) clock.alarm(ms, resolve);
      else resolve();
    });

  /** Answers a request of so many statements when it is its turn. */
  async function serve<T>(statements: number, answer: () => T | Promise<T>): Promise<T> {
    await pass(distanceMs / 2);
    const work = 1 + (statements - 1) * STATEMENT_SHARE;
    served += work;
    freeAt = goesOnAt(Math.max(freeAt, time.elapsed));
    freeAt += serviceMs(freeAt) * work;
    await pass(freeAt - time.elapsed);
    const answered = await answer();
    await pass(distanceMs / 2);
    return answered;
  }

  const failureOf = (name: string): LockStoreError | undefined =>
    isThrottled(name) ? new LockStoreError("ThrottlingException", { transient: true, throttled: true }) : undefined;

  function write(asked: Write, signal: AbortSignal): Promise<WriteOutcome> {
    return serve(1, () => {
      const failure = failureOf(asked.at.name);
      if (failure !== undefined) throw failure;
      return near.write(asked, signal);
    });
  }

  function renewAll(asked: readonly Renew[]): (WriteOutcome | LockStoreError)[] {
    return asked.map((renewal) => {
      const failure = failureOf(renewal.at.name);
      if (failure !== undefined) return failure;
      return table.write(renewal);
    });
  }

  const renewals = new RenewalBatches({
    one: write,
    all: (asked, signal) => {
      const givenUp = new Promise<never>((_, reject) => {
        signal.addEventListener("abort", () => reject(aborted(signal)), { once: true });
      });
      return Promise.race([serve(asked.length, () => renewAll(asked)), givenUp]);
    },
  });

  const store = new Proxy(near, {
    get(_, member: keyof Store) {
      const operation = near[member] as (...args: unknown[]) => unknown;
      if (typeof operation !== "function") return operation;
      if (member === "admit" || member === "close") return operation.bind(near);
      if (member !== "write") return (...args: unknown[]) => serve(1, () => operation.apply(near, args));
      return (asked: Write, signal: AbortSignal) =>
        hasBatches && asked.kind === "renew" && asked.data === undefined
          ? renewals.write(asked, signal)
          : write(asked, signal);
    },
  });
  return { store, served: () => served };
}
