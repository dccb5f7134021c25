/// <reference lib="esnext.disposable" preserve="true" />
import { LockConfigError, LockLostError } from "./errors.js";
import type { Lease } from "./lease.js";

/** A lock that is held, until it is unlocked or lost. */
export interface Lock extends AsyncDisposable {
  readonly name: string;
  /** This acquisition's identity. */
  readonly uuid: string;
  readonly owner: string;
  /** When the lease ends unless it is renewed, on the table's clock. Rely on `remainingMs`, which trusts no clock. */
  readonly expires: Date;
  readonly acquired: Date;
  /** Aborts when the lock is lost, with the {@link LockLostError} as its reason. Give it to whatever the section awaits. */
  readonly signal: AbortSignal;
  /** Whether the lock is held at this moment. */
  readonly held: boolean;
  /** How long the lock is certainly held if no renewal gets through any more, in ms; 0 once it is not. */
  readonly remainingMs: number;
  /**
   * Call it right before what must not happen twice.
   * @param minRemainingMs how much of the lease has to be left: default 0.
   * @throws {@link LockLostError} if the lock is lost, or has less time left.
   */
  assertHeld(minRemainingMs?: number): void;
  /**
   * Renews the lease now: for `autoRenew: false`, or before something that must not be interrupted.
   * @throws {@link LockLostError} if the lock is lost.
   * @throws the store's error if the table did not answer; the lease then lasts as long as it did before.
   */
  extend(): Promise<void>;
  /**
   * Releases the lock. Further calls get the same answer.
   * @throws {@link LockLostError} if it had been lost, the same error as `signal.reason`.
   */
  unlock(): Promise<void>;
}

/** A handle over a lease. */
export class HeldLock implements Lock {
  readonly owner: string;
  readonly #lease: Lease;

  constructor(lease: Lease, owner: string) {
    this.#lease = lease;
    this.owner = owner;
  }

  get name(): string {
    return this.#lease.name;
  }

  get uuid(): string {
    return this.#lease.uuid;
  }

  get expires(): Date {
    return new Date(this.#lease.expires);
  }

  get acquired(): Date {
    return new Date(this.#lease.acquired);
  }

  get signal(): AbortSignal {
    return this.#lease.signal.signal;
  }

  get held(): boolean {
    return this.#lease.held;
  }

  get remainingMs(): number {
    return this.#lease.remainingMs;
  }

  assertHeld(minRemainingMs = 0): void {
    if (!(minRemainingMs >= 0)) {
      throw new LockConfigError("minRemainingMs", minRemainingMs, "must be a number of milliseconds, 0 or more");
    }
    const notHeld = this.#lease.notHeld();
    if (notHeld !== undefined) throw notHeld;
    if (this.remainingMs < minRemainingMs) throw new LockLostError(this.name, this.uuid, "expired");
  }

  async extend(): Promise<void> {
    const notHeld = this.#lease.notHeld();
    if (notHeld !== undefined) throw notHeld;
    const renewal = await this.#lease.renew();
    switch (renewal.kind) {
      case "renewed":
        return;
      case "lost":
        throw renewal.error;
      case "unknown":
        throw renewal.cause;
      default:
        renewal satisfies never;
    }
  }

  async unlock(): Promise<void> {
    await this.#lease.release();
  }

  /** Lets `signal` abort ours as well, which is no loss; the answer ends that. */
  follow(signal: AbortSignal | undefined): () => void {
    if (signal === undefined) return () => undefined;
    const follow = (): void => this.#lease.signal.abort(signal.reason);
    if (signal.aborted) follow();
    else signal.addEventListener("abort", follow, { once: true });
    return () => signal.removeEventListener("abort", follow);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#lease.release();
  }
}
