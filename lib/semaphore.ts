/// <reference lib="esnext.disposable" preserve="true" />

import type { InspectOptions as ShownOptions } from "node:util";
import { resume } from "./holding/resume.js";
import type { Resource } from "./kinds/kind.js";
import type { Permit } from "./lock.js";
import type { SemaphoreState } from "./lock-info.js";
import type { Lockable, LockableJson, TryRun } from "./lockable.js";
import { forceUnlockIn } from "./operations/force-unlock.js";
import { inspectSemaphore } from "./operations/inspect.js";
import {
  checkWeight,
  type ForceUnlockOptions,
  type InspectOptions,
  type PermitOptions,
  permitOptions,
  type ResumeOptions,
  type TryPermitOptions,
  tryPermitOptions,
} from "./options/calls.js";
import { NONE } from "./options/check.js";
import type { SemaphoreSettings } from "./options/semaphore.js";
import { type Address, PERMITS, permitAt, permitOf } from "./protocol/addresses.js";
import type { Sections } from "./queues/sections.js";
import { SectionCalls } from "./section-calls.js";
import type { Session } from "./session/session.js";
import { SHOWN, shownAs } from "./shown.js";

/**
 * A named semaphore: at most so many hold a permit at once. Making one sends nothing. Each permit is a lock of its own, with
 * a lease, a signal, renewals and a loss, as that of a mutex; a mutex of the same name has nothing to do with it.
 */
export class Semaphore implements Lockable<Permit> {
  readonly name: string;
  /** How many permits there are. */
  readonly permits: number;
  readonly #session: Session;
  readonly #resource: Resource;
  readonly #calls: SectionCalls<Permit>;

  /** @internal Made by `LockTable.semaphore()`. */
  constructor(sections: Sections, name: string, { permits, settings }: SemaphoreSettings) {
    this.name = name;
    this.permits = permits;
    this.#session = sections.session;
    this.#resource = { name, kind: sections.kinds.semaphore, at: permitAt(name, 0), settings, permits, weight: 1 };
    this.#calls = new SectionCalls<Permit>(sections, this.#resource, {
      checkLock: permitOptions,
      checkTry: tryPermitOptions,
      resourceFor: ({ permits: weight = 1 }: TryPermitOptions) => {
        if (weight === 1) return this.#resource;
        checkWeight(weight, permits, this.#session.clock.regionSkewMs);
        return { ...this.#resource, weight };
      },
    });
  }

  /**
   * Waits for a permit and takes it, or several at once: all of them or none.
   *
   * @param options as for a mutex, and how many `permits`.
   * @throws {@link LockTimeoutError} after `waitMs`. It names one of the holders.
   * @throws the reason of `signal`.
   * @throws {@link LockStoreError} if the table cannot be used, has not answered once within 10 s, or not by `waitMs`.
   * @throws {@link LockConfigError} if an option cannot work.
   *
   * @example
   * const semaphore = locks.semaphore("crm-api", { permits: 4 });
   * await using permit = await semaphore.lock({ waitMs: 5_000 });
   * await callApi({ connection: permit.permit, signal: permit.signal });
   * @example
   * await using memory = await locks.semaphore("memory", { permits: 16 }).lock({ permits: 4 });
   * console.log(`permits ${memory.permits}`);
   */
  async lock(options: PermitOptions = NONE): Promise<Permit> {
    return await this.#calls.lock(options);
  }

  /**
   * Takes a permit, or several at once, if so many are free.
   *
   * @returns null if they are not. `await using` accepts null.
   * @throws {@link LockStoreError} if the table cannot be used, or does not answer within 10 s.
   * @throws the reason of `options.signal`.
   * @throws {@link LockConfigError} if an option cannot work.
   *
   * @example
   * await using permit = await semaphore.tryLock();
   * if (permit === null) return respond(429);
   */
  async tryLock(options: TryPermitOptions = NONE): Promise<Permit | null> {
    return await this.#calls.tryLock(options);
  }

  /**
   * Waits for a permit, runs `fn`, and releases the permit whether `fn` succeeds or fails.
   *
   * @param options as for `lock()`. Its `signal` also aborts `permit.signal`.
   * @throws the same error as `fn`, or, if `fn` succeeds but the permit was lost, a {@link LockLostError}.
   * @throws the errors of `lock()`.
   *
   * @example
   * const customer = await semaphore.run(async (permit) => await fetchCustomer({ signal: permit.signal }));
   */
  async run<T>(fn: (permit: Permit) => T | Promise<T>, options: PermitOptions = NONE): Promise<T> {
    return await this.#calls.run(fn, options);
  }

  /**
   * Runs `fn` if a permit is free, or as many as it asks for.
   *
   * @param options as for `tryLock()`. Its `signal` also aborts `permit.signal`.
   * @throws the same error as `fn`, or, if `fn` succeeds but the permit was lost, a {@link LockLostError}.
   * @throws the errors of `tryLock()`.
   *
   * @example
   * const result = await semaphore.tryRun(async () => await refresh());
   * if (!result.ran) console.log("busy");
   */
  async tryRun<T>(fn: (permit: Permit) => T | Promise<T>, options: TryPermitOptions = NONE): Promise<TryRun<T>> {
    return await this.#calls.tryRun(fn, options);
  }

  /**
   * Goes on with a permit that {@link TransferableLock.handOff} has handed off, as {@link Mutex.resume} does with a mutex.
   *
   * @throws {@link LockLostError} if the token was used before, or its time is over.
   * @throws {@link LockConfigError} for a token of another table or lock, or something else.
   * @throws {@link LockStoreError} if the table cannot be used, or does not answer within 10 s.
   * @throws the reason of `signal`.
   *
   * @example
   * await using permit = await semaphore.resume(token);
   */
  async resume(token: string, options: ResumeOptions = NONE): Promise<Permit> {
    const { settings, permits } = this.#resource;
    const isOurs = ({ name, sort }: Address): boolean => name === this.name && permitOf(sort) !== undefined;
    const lock = await resume(this.#session, token, options, isOurs, (at) => ({ at, settings, permits }));
    return lock as unknown as Permit;
  }

  /**
   * Reads who holds the permits, by a consistent query of them all. For a fair semaphore, another reads the waiters.
   *
   * A holder that has died is returned until its permit is taken again, with an `expires` in the past.
   *
   * @throws {@link LockStoreError} if the table cannot be used, or does not answer within 10 s.
   * @throws the reason of `options.signal`.
   *
   * @example
   * const { holders, permits } = await semaphore.inspect();
   * const taken = holders.flatMap((holder) => holder.permits);
   * console.log(`${taken.length} of ${permits} permits are taken, by ${holders.length} holders`);
   */
  async inspect(options: InspectOptions = NONE): Promise<SemaphoreState> {
    return await inspectSemaphore(this.#session, this.#resource, options);
  }

  /**
   * Ends the acquisition with this uuid, if it still holds a permit, with all of its permits, as {@link Mutex.forceUnlock} does with a mutex.
   *
   * @param uuid as returned by `inspect()` or `list()`.
   * @returns whether that acquisition held a permit until now.
   * @throws {@link LockStoreError} if the table cannot be used, or does not answer within 10 s. The permit may have been
   * unlocked all the same.
   * @throws the reason of `options.signal`: it may have been unlocked as well.
   * @throws {@link LockConfigError} if an argument cannot work.
   *
   * @example
   * const { holders } = await semaphore.inspect();
   * for (const { uuid, owner } of holders) {
   *   if (uuid !== undefined && owner === "host-7") await semaphore.forceUnlock(uuid);
   * }
   */
  async forceUnlock(uuid: string, options: ForceUnlockOptions = NONE): Promise<boolean> {
    return await forceUnlockIn(this.#session, this.name, PERMITS, uuid, options);
  }

  /** What `JSON.stringify()` writes, and what `console.log()` shows. */
  toJSON(): LockableJson {
    return this.#calls.toJSON();
  }

  /** @internal */
  [SHOWN](_depth: number, options: ShownOptions): string {
    return shownAs("Semaphore", this.toJSON(), options);
  }
}
