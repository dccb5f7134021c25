/// <reference lib="esnext.disposable" preserve="true" />

import type { LockLostError } from "./errors.js";
import { HeldLock } from "./holding/handle.js";
import { Lease } from "./holding/lease.js";
import { LossSignal } from "./holding/loss-signal.js";
import type { Lock } from "./lock.js";
import { copyOf } from "./lock-info.js";
import type { LockOptions } from "./options/calls.js";
import type { Host } from "./session/session.js";
import { acquireAll, tryAcquireAll, withdrawAll } from "./taking/claim-set.js";
import type { Grant, Target } from "./taking/grant.js";
import { Wait } from "./taking/wait.js";

/** Several locks that were taken at once. Losing one of them is losing the set. */
export interface LockSet extends AsyncDisposable {
  /** In the order in which they were asked for. */
  readonly names: readonly string[];
  /** A handle for each name. One may be unlocked alone; the others stay. */
  readonly locks: ReadonlyMap<string, Lock>;
  /** Aborts when the first of the locks is lost, with its {@link LockLostError} as the reason. */
  readonly signal: AbortSignal;
  /** Whether all of them are held at this moment. */
  readonly held: boolean;
  /** How long all of them are certainly held if no renewal gets through any more, in ms. */
  readonly remainingMs: number;
  /** @throws {@link LockLostError} if one of them is lost, or has less time left, in ms. */
  assertHeld(minRemainingMs?: number): void;
  /** Renews all of them now. @throws as `Lock.extend()` does, after all of them have been tried. */
  extend(): Promise<void>;
  /**
   * Releases every lock, also if one of the releases fails. Further calls get the same answer.
   * @throws {@link LockLostError} if one of them had been lost, the same error as `signal.reason`.
   */
  unlock(): Promise<void>;
}

/** Takes all of these locks, which are as many names of one kind of mutex. */
export async function lockAll(host: Host, targets: readonly Target[], options: LockOptions): Promise<LockSet> {
  const { signal, holdAtLeastMs = 0 } = options;
  const { waitMs = targets[0]?.settings.waitMs ?? Number.POSITIVE_INFINITY } = options;
  signal?.throwIfAborted();
  host.assertOpen();
  host.store.admit(options.data);
  const data = options.data && copyOf(options.data);
  const names = targets.map(({ name }) => name);
  const wait = new Wait(host, names.join(", "), { patient: waitMs > 0 });
  const work = async (deliver: (set: LockSet) => boolean): Promise<void> => {
    for (;;) {
      const take = waitMs > 0 ? acquireAll : tryAcquireAll;
      const grants = await take(host, targets, data, wait);
      if (grants === undefined) throw wait.timeout();
      const leases = await secured(host, targets, grants);
      if (leases !== undefined && !wait.isOver) {
        for (const lease of leases) {
          lease.keep();
          lease.holdAtLeast(holdAtLeastMs);
        }
        if (deliver(new HeldLockSet(host, leases))) return;
      }
      // Nothing has run on them.
      for (const lease of leases ?? []) {
        lease.holdAtLeast(0);
        host.detach(lease.release());
      }
      wait.throwIfEnough();
    }
  };
  return await wait.run(work, { signal, waitMs: waitMs > 0 ? waitMs : Number.POSITIVE_INFINITY });
}

/** Makes the first stamps good. @returns undefined, and takes everything back, if one of the leases does not stand. */
async function secured(
  host: Host,
  targets: readonly Target[],
  grants: readonly Grant[],
): Promise<readonly Lease[] | undefined> {
  const leases = partsOf(targets, grants).map(({ target, grant }) => new Lease(host, target, grant));
  const stand = await Promise.all(leases.map((lease) => lease.secure()));
  if (stand.every((stands) => stands)) return leases;
  const parts = partsOf(targets, grants).map(({ target, grant }, index) => ({
    target,
    // A corrected stamp stands under a uuid of its own.
    grant: { ...grant, uuid: leases[index]?.uuid ?? grant.uuid },
  }));
  host.detach(withdrawAll(host, parts, { certain: true }));
  return undefined;
}

function partsOf(
  targets: readonly Target[],
  grants: readonly Grant[],
): readonly { readonly target: Target; readonly grant: Grant }[] {
  return targets.map((target, index) => ({ target, grant: grants[index] as Grant }));
}

class HeldLockSet implements LockSet {
  readonly names: readonly string[];
  readonly locks: ReadonlyMap<string, HeldLock>;
  readonly #signal: LossSignal;
  #lost: LockLostError | undefined;
  #over: Promise<void> | undefined;

  constructor(host: Host, leases: readonly Lease[]) {
    this.#signal = new LossSignal(() => this.#lookForLoss());
    const { owner } = host;
    const locks = leases.map((lease) => {
      const { acquired } = lease;
      return new HeldLock({ host, lease, owner, acquired, end: (ended) => ended.release() });
    });
    this.names = locks.map(({ name }) => name);
    this.locks = new Map(locks.map((lock) => [lock.name, lock]));
    for (const lock of locks) {
      lock.signal.addEventListener("abort", () => this.#aborted(lock), { once: true });
    }
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

  assertHeld(minRemainingMs = 0): void {
    this.#lookForLoss();
    if (this.#lost !== undefined) throw this.#lost;
    for (const lock of this.#all) lock.assertHeld(minRemainingMs);
  }

  async extend(): Promise<void> {
    await settled(this.#all.map((lock) => lock.extend()));
  }

  unlock(): Promise<void> {
    this.#over ??= this.#unlock();
    return this.#over;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.unlock();
  }

  async #unlock(): Promise<void> {
    this.#lookForLoss();
    const lost = this.#lost;
    const released = settled(this.#all.map((lock) => lock.unlock()));
    await released.catch((error: unknown) => {
      throw lost ?? error;
    });
  }

  get #all(): readonly HeldLock[] {
    return [...this.locks.values()];
  }

  /** Looking at a lock's signal is looking at its clock, and the listener hears what there is. */
  #lookForLoss(): void {
    for (const lock of this.#all) if (lock.signal.aborted) this.#aborted(lock);
  }

  #aborted({ signal, lost }: HeldLock): void {
    this.#lost ??= lost;
    this.#signal.abort(signal.reason);
  }
}

/** Waits for all of them, and throws what the first of those that failed has thrown. */
async function settled(all: readonly Promise<unknown>[]): Promise<void> {
  for (const outcome of await Promise.allSettled(all)) if (outcome.status === "rejected") throw outcome.reason;
}
