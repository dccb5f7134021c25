import { publish } from "../diagnostics.js";
import { LockStoreError, LockTimeoutError } from "../errors.js";
import type { LockInfo } from "../lock-info.js";
import { infoOf } from "../protocol/row.js";
import { onAbort } from "../session/abort-listening.js";
import { type Persistence, persist, type Request } from "../session/retry.js";
import type { RequestKind } from "../session/scheduler.js";
import type { Host } from "../session/session.js";
import type { Row } from "../store.js";

/** How long a call waits for a first sign of life from the table, however long it would wait for the lock. */
const FIRST_ANSWER_MS = 10_000;

/**
 * The bounds of one call that wants a lock: its caller's signal, its time, the table's closing.
 *
 * The caller is answered at once when one of them is reached. Requests that are under way then go on in the
 * background, because what they take must be given back.
 */
export class Wait {
  readonly name: string;
  readonly #host: Host;
  readonly #startedAt: number;
  /** Since when this call, or one whose place it has taken, asks the table and has no answer, on `atMost`. */
  #asksSince: number;
  #enough: AbortController | undefined;
  #stopped: { readonly reason: unknown } | undefined;
  /** Whether outages are waited out once the table has answered. */
  readonly #patient: boolean;
  #waitMs = Number.POSITIVE_INFINITY;
  #answered = false;
  #inTheWay: Row | undefined;
  #localHolder: (() => LockInfo | undefined) | undefined;
  #lastFailure: unknown;

  constructor(host: Host, name: string, { patient }: { readonly patient: boolean }) {
    this.#host = host;
    this.name = name;
    this.#patient = patient;
    this.#startedAt = host.clock.atMost();
    this.#asksSince = this.#startedAt;
  }

  /** Aborts when the caller has had its answer without a lock. */
  get enough(): AbortSignal {
    // Made when first asked for: a lock that is free is taken without.
    this.#enough ??= new AbortController();
    if (this.#stopped !== undefined) this.#enough.abort(this.#stopped.reason);
    return this.#enough.signal;
  }

  /** Whether the caller has had its answer without a lock. */
  get isOver(): boolean {
    return this.#stopped !== undefined;
  }

  get waitedMs(): number {
    return this.#host.clock.atMost() - this.#startedAt;
  }

  /** How long this call would go on waiting. */
  get remainingMs(): number {
    return this.#waitMs - this.waitedMs;
  }

  /** Until when requests are sent again, on `atMost`. */
  readonly until = (): number =>
    this.#patient && this.#answered ? Number.POSITIVE_INFINITY : this.#asksSince + FIRST_ANSWER_MS;

  /** Until now others of this process asked in its place: without an answer since then, or undefined if they had one. */
  asksNow(silentSince: number | undefined): void {
    this.#asksSince = Math.max(this.#startedAt, silentSince ?? this.#host.clock.atMost());
  }

  /** Since when the table has not answered; undefined if it has. */
  get silentSince(): number | undefined {
    return this.#answered ? undefined : this.#asksSince;
  }

  /** Keeps the process alive, which an alarm for the end of the waiting does not; the answer ends that. */
  stay(): () => void {
    return this.#host.clock.stay?.() ?? (() => undefined);
  }

  throwIfEnough(): void {
    if (this.#stopped !== undefined) throw this.#stopped.reason;
  }

  /** Notes the row that is in the way. */
  saw(row: Row): void {
    this.#inTheWay = row;
  }

  /** Somebody of this process is in the way, who can be asked for it later. */
  sawLocally(holder: () => LockInfo | undefined): void {
    this.#localHolder = holder;
  }

  /** Sends a request until it is answered, within the bounds of this call and `until`. */
  async persist<T>(
    attemptMs: number,
    until: () => number,
    request: Request<T>,
    kind: RequestKind = "take",
  ): Promise<T> {
    const wait = this;
    const persistence: Persistence = {
      kind,
      until,
      attemptMs,
      get enough() {
        return wait.enough;
      },
      random: this.#host.random,
      onFailure: (cause) => this.#failed(cause),
    };
    const result = await persist(this.#host, persistence, request);
    this.#answered = true;
    return result;
  }

  /**
   * Runs `work`, which hands over its result with `deliver`, until it does, fails, or one of the bounds is reached.
   *
   * `deliver` answers false if the caller has had another answer in between: nothing happens between its asking and
   * its telling, so a lock is either handed out or taken back, never forgotten.
   */
  run<T>(
    work: (deliver: (result: T) => boolean) => Promise<void>,
    { signal, waitMs }: { readonly signal?: AbortSignal | undefined; readonly waitMs: number },
  ): Promise<T> {
    this.#waitMs = waitMs;
    return new Promise((resolve, reject) => {
      const stop = (reason: unknown): void => {
        if (this.#stopped !== undefined) return;
        end();
        this.#stopped = { reason };
        this.#enough?.abort(reason);
        reject(reason);
      };
      const unregister = this.#host.waiting(stop);
      const cancelTimer = Number.isFinite(waitMs)
        ? this.#host.clock.alarm(waitMs, () => stop(this.timeout()))
        : () => undefined;
      let ended = false;
      const end = (): void => {
        ended = true;
        unregister();
        cancelTimer();
        stopListening?.();
      };
      const stopListening = signal && onAbort(signal, () => stop(signal.reason));
      const deliver = (result: T): boolean => {
        if (ended) return false;
        end();
        resolve(result);
        return true;
      };
      const working = work(deliver).catch((error) => {
        if (!ended) end();
        reject(error);
      });
      this.#host.detach(working);
    });
  }

  /** Who is in the way, as last seen. */
  get holder(): LockInfo | undefined {
    return this.#inTheWay === undefined ? this.#localHolder?.() : infoOf(this.#inTheWay);
  }

  timeout(): LockTimeoutError {
    const options = this.#lastFailure === undefined ? undefined : { cause: this.#lastFailure };
    return new LockTimeoutError(this.name, this.waitedMs, this.holder, options);
  }

  #failed(cause: unknown): void {
    if (cause instanceof LockStoreError && cause.answered) this.#answered = true;
    this.#lastFailure = cause;
    publish("dynamutex:wait-failed", { name: this.name, cause });
  }
}
