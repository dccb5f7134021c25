/// <reference lib="esnext.disposable" preserve="true" />
import type { InspectOptions } from "node:util";
import { HeldLock } from "../holding/handle.js";
import type { Lease } from "../holding/lease.js";
import { LossSignal } from "../holding/loss-signal.js";
import type { LockJson, TransferableLock } from "../lock.js";
import type { ExtendOptions } from "../options/calls.js";
import type { Session } from "../session/session.js";
import { SHOWN, shownAs } from "../shown.js";

/** Several locks that were taken at once. Losing one of them is losing the set. */
export interface LockSet extends AsyncDisposable {
  /** In the order in which they were asked for. */
  readonly names: readonly string[];
  /** A handle for each name. One may be unlocked alone; the others stay. */
  readonly locks: ReadonlyMap<string, TransferableLock>;
  /** Aborts when the first of the locks is lost, with its {@link LockLostError} as the reason. */
  readonly signal: AbortSignal;
  /** Whether all of them are held at this moment. */
  readonly held: boolean;
  /** How long all of them are certainly held if no renewal gets through any more, in ms. */
  readonly remainingMs: number;
  /** Whether another host has waited for one of them for `handOverMs`: see {@link Lock.wanted}. */
  readonly wanted: boolean;
  /**
   * Checks that all of them are held.
   * @param minRemainingMs the least that `remainingMs` has to be, in ms. Default 0.
   * @throws {@link LockLostError} if one of them is lost, or `remainingMs` is less.
   */
  assertHeld(minRemainingMs?: number): void;
  /**
   * Renews all of them now.
   * @throws as `Lock.extend()` does, after all of them have been tried; {@link LockLostError}, if one of them is lost by then.
   */
  extend(options?: ExtendOptions): Promise<void>;
  /** What `JSON.stringify()` writes, and what `console.log()` shows. */
  toJSON(): { readonly held: boolean; readonly locks: readonly LockJson[] };
  /**
   * Releases every lock, also if one of the releases fails. Further calls get the same answer.
   * @throws {@link LockLostError} if one of them had been lost, the same error as `signal.reason`.
   */
  unlock(): Promise<void>;
}

/** @internal */
export class HeldLockSet implements LockSet {
  readonly names: readonly string[];
  readonly locks: ReadonlyMap<string, HeldLock>;
  readonly #signal: LossSignal;
  #over: Promise<void> | undefined;

  constructor(session: Session, leases: readonly Lease[]) {
    this.#signal = new LossSignal(() => this.#look());
    const locks = leases.map((lease) => new HeldLock({ session, lease, acquired: lease.row.acquired }));
    this.names = locks.map(({ name }) => name);
    this.locks = new Map(locks.map((lock) => [lock.name, lock]));
    for (const lock of locks) lock.signal.addEventListener("abort", () => this.#look(), { once: true });
  }

  get signal(): AbortSignal {
    return this.#signal.signal;
  }

  get held(): boolean {
    return this.#all.every((lock) => lock.held);
  }

  get remainingMs(): number {
    return Math.min(...this.#all.map((lock) => lock.remainingMs));
  }

  get wanted(): boolean {
    return this.#all.some((lock) => lock.wanted);
  }

  assertHeld(minRemainingMs = 0): void {
    this.signal.throwIfAborted();
    for (const lock of this.#all) lock.assertHeld(minRemainingMs);
  }

  async extend(options?: ExtendOptions): Promise<void> {
    await this.#each((lock) => lock.extend(options));
    this.signal.throwIfAborted();
  }

  unlock(): Promise<void> {
    this.#over ??= this.#unlock();
    return this.#over;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.unlock();
  }

  toJSON(): { readonly held: boolean; readonly locks: readonly LockJson[] } {
    return { held: this.held, locks: this.#all.map((lock) => lock.toJSON()) };
  }

  /** @internal */
  [SHOWN](_depth: number, options: InspectOptions): string {
    return shownAs("LockSet", this.toJSON(), options);
  }

  async #unlock(): Promise<void> {
    this.#look();
    await this.#each((lock) => lock.unlock());
  }

  /** If several fail, throws the loss that was found first. */
  async #each(act: (lock: HeldLock) => Promise<void>): Promise<void> {
    await settled(this.#all.map(act)).catch((error: unknown) => {
      this.signal.throwIfAborted();
      throw error;
    });
  }

  get #all(): readonly HeldLock[] {
    return [...this.locks.values()];
  }

  /** Reading a lock's signal checks its deadline. The first loss that is found is that of the set. */
  #look(): void {
    for (const { signal } of this.#all) if (signal.aborted) this.#signal.abort(signal.reason);
  }
}

/** Waits for all of them, and throws the error of the first one that failed. */
async function settled(all: readonly Promise<unknown>[]): Promise<void> {
  for (const outcome of await Promise.allSettled(all)) if (outcome.status === "rejected") throw outcome.reason;
}
