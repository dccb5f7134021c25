import { addAbortListener } from "node:events";
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { LockStoreError } from "../../errors.js";
import { persist, type Requests, Scheduler } from "../../session/requests.js";
import type { Clock } from "../../time/clock.js";
import { storeFailure } from "../failures.js";

const ATTEMPT_MS = 5_000;
/** A wrong endpoint is told of after this, however long the caller would wait for the table. */
const FIRST_ANSWER_MS = 10_000;
const PAUSE_MS = 500;

/** Requests about a table as a whole: bounded each and together, and tried again while there is time. */
export class ControlPlane {
  readonly #client: DynamoDBClient;
  readonly #tableName: string;
  readonly #clock: Clock;
  readonly #requests: Requests;
  readonly #signal: AbortSignal | undefined;
  readonly #timeoutMs: number;
  readonly #startedAt: number;
  #answered = false;

  constructor(options: {
    readonly client: DynamoDBClient;
    readonly tableName: string;
    readonly clock: Clock;
    readonly signal?: AbortSignal | undefined;
    readonly timeoutMs: number;
  }) {
    this.#client = options.client;
    this.#tableName = options.tableName;
    this.#clock = options.clock;
    const { clock } = options;
    this.#requests = { clock, scheduler: new Scheduler(clock), random: Math.random };
    this.#signal = options.signal;
    this.#timeoutMs = options.timeoutMs;
    this.#startedAt = options.clock.atMost();
  }

  /**
   * @param send one attempt, with the signal that ends it.
   * @throws {@link LockStoreError}, or the reason of the caller's signal.
   */
  async ask<Reply>(
    action: string,
    send: (client: DynamoDBClient, options: { abortSignal: AbortSignal }) => Promise<Reply>,
  ): Promise<Reply> {
    this.#signal?.throwIfAborted();
    try {
      return await persist(
        this.#requests,
        {
          kind: "read",
          until: () => this.#startedAt + Math.min(this.#timeoutMs, this.#answered ? Infinity : FIRST_ANSWER_MS),
          attemptMs: ATTEMPT_MS,
          enough: this.#signal,
        },
        (ends) => this.#attempt(action, ends, send),
      );
    } catch (error) {
      this.#signal?.throwIfAborted();
      throw error;
    }
  }

  /** Waits before the next look. @throws {@link LockStoreError} when the time is over. */
  async pause(because: string): Promise<void> {
    const left = this.#startedAt + this.#timeoutMs - this.#clock.atMost();
    if (left <= 0) {
      const message = `Table ${this.#tableName} is not ready after ${this.#timeoutMs} ms: ${because}`;
      throw new LockStoreError(message, { transient: true });
    }
    await this.#clock.sleep(Math.min(PAUSE_MS, left), this.#signal);
  }

  async #attempt<Reply>(
    action: string,
    ends: AbortSignal,
    send: (client: DynamoDBClient, options: { abortSignal: AbortSignal }) => Promise<Reply>,
  ): Promise<Reply> {
    const either = new AbortController();
    const signals = this.#signal === undefined ? [ends] : [ends, this.#signal];
    const listeners = signals.map((signal) => addAbortListener(signal, () => either.abort(signal.reason)));
    try {
      const reply = await send(this.#client, { abortSignal: either.signal });
      this.#answered = true;
      return reply;
    } catch (error) {
      const failure = storeFailure(error, { action, tableName: this.#tableName });
      this.#answered ||= failure.answered;
      throw failure;
    } finally {
      for (const listener of listeners) listener[Symbol.dispose]();
    }
  }
}

/** Whether DynamoDB gave a failure this name. */
export function isCausedBy(error: unknown, name: string): boolean {
  return error instanceof LockStoreError && (error.cause as Partial<Error> | undefined)?.name === name;
}

/** Whether somebody else has created the table, or is changing it just now. */
export function isInUse(error: unknown): boolean {
  return isCausedBy(error, "ResourceInUseException");
}
