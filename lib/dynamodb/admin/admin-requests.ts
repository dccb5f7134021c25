import { LockStoreError } from "../../errors.js";
import { follow } from "../../session/abort-listening.js";
import { persist, type Requests } from "../../session/requests.js";
import { storeFailure } from "../failures.js";

const ATTEMPT_MS = 5_000;
/** An endpoint that has not answered once by then counts as unreachable, however long the caller would wait. */
export const FIRST_ANSWER_MS = 10_000;
const PAUSE_MS = 500;
/** With less time than this left, another description could only fail, and its failure would hide what was seen. */
const LEAST_LOOK_MS = 50;

export interface AdminRequestsOptions {
  readonly tableName: string;
  /** They share the lanes of the process with those of its locks. */
  readonly requests: Requests;
  readonly signal: AbortSignal | undefined;
  /** The time for all requests and pauses together. */
  readonly timeoutMs: number;
}

/** Sends requests about a table as a whole. Each has a timeout, all have one together, and until then they are retried. */
export class AdminRequests {
  readonly tableName: string;
  readonly #options: AdminRequestsOptions;
  readonly #startedAt: number;
  readonly #answersBefore: number;

  constructor(options: AdminRequestsOptions) {
    this.tableName = options.tableName;
    this.#options = options;
    this.#startedAt = options.requests.clock.atMost();
    this.#answersBefore = options.requests.scheduler.answers;
  }

  /** @param action its name in IAM. @throws {@link LockStoreError}, or the reason of the caller's signal. */
  async ask<Reply>(action: string, send: (signal: AbortSignal) => Promise<Reply>): Promise<Reply> {
    const { requests, signal, timeoutMs } = this.#options;
    const isAnswered = () => requests.scheduler.answers > this.#answersBefore;
    const until = () => this.#startedAt + (isAnswered() ? timeoutMs : Math.min(timeoutMs, FIRST_ANSWER_MS));
    const persistence = { kind: "read", until, firstTimeoutMs: ATTEMPT_MS, endSignal: signal } as const;
    const attempt = async (ends: AbortSignal): Promise<Reply> => {
      const either = new AbortController();
      const stopFollowing = follow([ends, signal], (reason) => either.abort(reason));
      try {
        return await send(either.signal);
      } catch (error) {
        throw storeFailure(error, { action, tableName: this.tableName });
      } finally {
        stopFollowing();
      }
    };
    return await persist(requests, persistence, attempt).catch((error: unknown) => {
      signal?.throwIfAborted();
      throw error;
    });
  }

  /** Waits before the table is described again. @throws {@link LockStoreError} when the time is over. */
  async pause(because: string): Promise<void> {
    const { requests, signal, timeoutMs } = this.#options;
    const { clock } = requests;
    const leftMs = Math.max(0, this.#startedAt + timeoutMs - clock.atMost());
    if (leftMs >= PAUSE_MS + LEAST_LOOK_MS) return await clock.sleep(PAUSE_MS, signal);
    await clock.sleep(leftMs, signal);
    const message = `Table ${this.tableName} is not ready after ${timeoutMs} ms: ${because}`;
    throw new LockStoreError(message, { transient: true });
  }
}

/** Whether the endpoint is an engine that does not have the operation that was asked of it. */
export const isNotImplemented = (error: unknown): boolean => isCausedBy(error, "UnknownOperationException");

/** Whether DynamoDB refused a request with one of these errors. */
export function isCausedBy(error: unknown, ...names: readonly string[]): boolean {
  return error instanceof LockStoreError && names.includes((error.cause as Partial<Error> | undefined)?.name ?? "");
}
