/// <reference lib="esnext.disposable" preserve="true" />

import type { InspectOptions as ShownOptions } from "node:util";
import { Election } from "./election.js";
import { Flights } from "./flights/flights.js";
import { resume } from "./holding/resume.js";
import type { Resource } from "./kinds/kind.js";
import type { TransferableLock } from "./lock.js";
import { copyOf, type LockInfo, type LockState } from "./lock-info.js";
import type { Lockable, LockableJson, TryRun } from "./lockable.js";
import { forceUnlock } from "./operations/force-unlock.js";
import { inspect } from "./operations/inspect.js";
import { observe } from "./operations/observe.js";
import type {
  ElectOptions,
  ForceUnlockOptions,
  InspectOptions,
  LockOptions,
  ObserveOptions,
  ResumeOptions,
  SingleFlightOptions,
  TryLockOptions,
  TryRunOptions,
} from "./options/calls.js";
import { electOptions, observeOptions, singleFlightOptions, tryLockOptions, tryRunOptions } from "./options/calls.js";
import { NONE } from "./options/check.js";
import type { SetMember } from "./options/lock-all.js";
import type { MutexSettings } from "./options/mutex.js";
import { type Address, lockAt } from "./protocol/addresses.js";
import type { Sections } from "./queues/sections.js";
import { checkFunction, SectionCalls } from "./section-calls.js";
import type { Session } from "./session/session.js";
import { SHOWN, shownAs } from "./shown.js";

/**
 * A named mutex. Making one sends nothing. Several with the same name, in one process or many, exclude one another.
 *
 * @typeParam Held the type of its locks: {@link FencedLock} with `fencing: true`.
 */
export class Mutex<Held extends TransferableLock = TransferableLock> implements Lockable<Held> {
  readonly name: string;
  readonly #session: Session;
  readonly #resource: Resource;
  readonly #calls: SectionCalls<Held>;
  readonly #flights: Flights;

  /** @internal Made by `LockTable.mutex()`. */
  constructor(sections: Sections, name: string, settings: MutexSettings, flights: Flights = new Flights(sections)) {
    this.name = name;
    this.#session = sections.session;
    this.#resource = { name, kind: sections.kinds.mutex, at: lockAt(name), settings, permits: 1, weight: 1 };
    this.#flights = flights;
    this.#calls = new SectionCalls<Held>(sections, this.#resource, {
      checkTry: tryLockOptions,
      checkTryRun: tryRunOptions,
    });
  }

  /** What a set needs to know of a mutex of this session; undefined for anything else. @internal */
  static of(value: unknown, session: Session): SetMember | undefined {
    const isOurs = typeof value === "object" && value !== null && #session in value && value.#session === session;
    return isOurs ? { name: value.name, settings: value.#resource.settings } : undefined;
  }

  /**
   * Waits for the lock and takes it.
   *
   * @param options.signal ends the waiting. It does not affect a lock that was granted.
   * @param options.waitMs how long to wait for others, in ms. Default: the mutex's `waitMs`.
   * @param options.data your own attributes for the row.
   * @param options.holdAtLeastMs how long the lock stays taken at least, in ms. Default 0.
   * @throws {@link LockTimeoutError} after `waitMs`. It names the holder.
   * @throws the reason of `signal`.
   * @throws {@link LockStoreError} if the table cannot be used, has not answered once within 10 s, or not by `waitMs`.
   * @throws {@link LockConfigError} if an option cannot work.
   *
   * @example
   * await using lock = await mutex.lock({ waitMs: 5_000 });
   * await charge(customer, { signal: lock.signal });
   */
  async lock(options: LockOptions = NONE): Promise<Held> {
    return await this.#calls.lock(options);
  }

  /**
   * Takes the lock if it is free.
   *
   * @param options.data your own attributes for the row.
   * @param options.holdAtLeastMs how long the lock stays taken at least, in ms. Default 0.
   * @param options.once a tick, for which the lock is granted at most once.
   * @param options.everyMs the same, for each period of this many ms on the table's clock.
   * @returns the lock; null if it is held, or the tick was already granted. `await using` accepts null.
   * @throws {@link LockStoreError} if the table cannot be used, or does not answer within 10 s.
   * @throws the reason of `options.signal`.
   * @throws {@link LockConfigError} if an option cannot work.
   *
   * @example
   * await using lock = await mutex.tryLock();
   * if (lock === null) return; // held by another host
   */
  async tryLock(options: TryLockOptions = NONE): Promise<Held | null> {
    return await this.#calls.tryLock(options);
  }

  /**
   * Waits for the lock, runs `fn`, and releases the lock whether `fn` succeeds or fails.
   *
   * @param options as for `lock()`. Its `signal` also aborts `lock.signal`.
   * @throws the same error as `fn`, or, if `fn` succeeds but the lock was lost, a {@link LockLostError}.
   * @throws the errors of `lock()`.
   *
   * @example
   * const report = await mutex.run(async (lock) => await buildReport(lock.signal));
   */
  async run<T>(fn: (lock: Held) => T | Promise<T>, options: LockOptions = NONE): Promise<T> {
    return await this.#calls.run(fn, options);
  }

  /**
   * Runs `fn` if the lock is free: for a job that several hosts have on the same schedule.
   *
   * @param options as for `tryLock()`. Its `signal` also aborts `lock.signal`.
   * @param options.untilSuccess whether the tick is due until a run of it succeeds, rather than granted once.
   * @throws the same error as `fn`, or, if `fn` succeeds but the lock was lost, a {@link LockLostError}.
   * @throws {@link LockStoreError} with `untilSuccess` if `fn` succeeded and that could not be recorded: it says so.
   * @throws the errors of `tryLock()`.
   *
   * @example
   * const result = await mutex.tryRun(async () => await sendInvoices());
   * if (!result.ran) console.log(`left to ${result.holder?.owner}`);
   *
   * @example
   * // Called on every host every minute, this runs once an hour on one of them, even if their clocks differ.
   * await mutex.tryRun((lock) => sendReport(lock.signal), { everyMs: 3_600_000 });
   *
   * @example
   * // The same, but where it throws or its host dies, the next host that asks runs the hour again, three times at most.
   * await mutex.tryRun((lock) => sendReport(lock.signal), { everyMs: 3_600_000, untilSuccess: { maxAttempts: 3 } });
   */
  async tryRun<T>(fn: (lock: Held) => T | Promise<T>, options: TryRunOptions = NONE): Promise<TryRun<T>> {
    return await this.#calls.tryRun(fn, options);
  }

  /**
   * Runs `fn` on one host at a time, and gives its result to all who wait for it: a token that is refreshed, a cache that is filled, a
   * report that is built, once for the whole fleet.
   *
   * A result counts once its lock was released in time. If `fn` throws, only its own caller gets the error, and the next in line
   * runs. So does the next after a loss of the lock or a death of the host. A result may rest on what `fn` has read before this call
   * began, unless this call runs it.
   *
   * @param fn what to run, if it has to; it may be async. Its value is whatever DynamoDB can store in a map, at most 350 KB, or
   * undefined. What others get of it is a copy, of the same types. A value that cannot be shared goes to its own caller alone: the
   * channel `dynamutex:not-shared` and a process warning say why.
   * @param options.freshMs how old a result may be, in ms. Default 0: only that of a run that was not over when this call began.
   * @param options.signal ends the waiting, and aborts `lock.signal` where this call runs `fn`.
   * @param options.waitMs how long to wait for a result or for the lock, in ms. Default: the mutex's `waitMs`.
   * @returns the result.
   * @throws the same error as `fn`, or, if `fn` succeeds but the lock was lost, a {@link LockLostError}.
   * @throws the errors of `lock()`; {@link LockConfigError} for a table without a sort key.
   *
   * @example
   * const rates = await mutex.singleFlight(async (lock) => await fetchRates(lock.signal), { freshMs: 60_000 });
   */
  async singleFlight<T>(fn: (lock: Held) => T | Promise<T>, options: SingleFlightOptions = NONE): Promise<T> {
    const { freshMs = 0, signal, waitMs = this.#resource.settings.waitMs } = singleFlightOptions(options);
    checkFunction("fn", fn);
    signal?.throwIfAborted();
    this.#session.assertOpen();
    return await this.#flights.call(this.#resource, fn, { freshMs, signal, waitMs });
  }

  /**
   * Stands for leader: waits for the lock, runs `lead` while it holds it, and releases it when `lead` has ended. After a loss of the
   * lock or an error of `lead` it pauses and campaigns again. The election ends when `lead` returns, by
   * `resign()`, by `signal`, or when the table is closed.
   *
   * At no time two leaders hold the lock. It does not stop a `lead` that ignores `lock.signal`: such a one may run beside the
   * next leader. Guard what a leader writes with `lock.transactWrite()`, `lock.guard()` or a fencing token.
   *
   * @param lead what the leader does; it may be async. It has to end when `lock.signal` aborts, because the lock was lost or
   * the election ends. Nobody campaigns or releases before it has. What it throws is a process warning, and on the channel
   * `dynamutex:election`.
   * @param options.signal ends the candidacy, as `resign()` does.
   * @param options.data your own attributes for the row while it leads, for those who observe: its address, say.
   * @returns the election, which runs by itself. `waitMs` does not end it.
   * @throws {@link LockConfigError} if an argument cannot work.
   * @throws {@link LockError} with the code `LOCK_CLOSED` if the table is closed.
   *
   * @example
   * await using election = mutex.elect(async (lock) => {
   *   while (!lock.signal.aborted) await work(lock);
   * });
   * await election.done;
   */
  elect(lead: (lock: Held) => unknown, options: ElectOptions = NONE): Election<Held> {
    const { signal, data } = electOptions(options);
    checkFunction("lead", lead);
    this.#session.assertOpen();
    this.#session.store.admit(data);
    const copy = data && copyOf(data);
    return new Election<Held>({
      session: this.#session,
      name: this.name,
      campaign: (led, ends) =>
        this.#calls.campaign(led, { signal: ends, data: copy, waitMs: Number.POSITIVE_INFINITY }),
      observe: (observed) => this.observe(observed),
      lead,
      signal,
    });
  }

  /**
   * Yields who holds the lock, null for nobody, and then each change of it, as far as it sees them: a holder for less than
   * `pollMs` may be missed. The order is that of the table, and nothing that was over comes back. While a section of this
   * process holds the lock, nothing is read; otherwise it is one consistent read a poll.
   *
   * It looks only while you wait for the next: to who is busy for long it yields the present holder, and not those in between.
   * A holder that has died is shown until its lease is over. Data that a holder replaces are a change as well.
   *
   * @param options.signal ends the observation.
   * @param options.pollMs the pause between two reads, in ms. Default 1 000.
   * @throws {@link LockStoreError} while iterating, if the table cannot be used, or its first answer takes longer than 10 s.
   * Later outages are waited out.
   * @throws the reason of `signal`, while iterating; {@link LockError} with the code `LOCK_CLOSED` once the table is closed.
   * @throws {@link LockConfigError} if an option cannot work.
   *
   * @example
   * for await (const leader of mutex.observe()) console.log(leader?.owner ?? "nobody");
   */
  observe(options: ObserveOptions = NONE): AsyncIterableIterator<LockInfo | null> {
    const how = observeOptions(options);
    this.#session.assertOpen();
    return observe(this.#session, this.#resource, how);
  }

  /**
   * Goes on with a lock that {@link TransferableLock.handOff} has handed off, in this process or another. It does not wait: the
   * lock is there, or its token is of no use any more. With `fencing` it draws the next token.
   *
   * @param token counts once: of two that resume one gets the lock, and the other a {@link LockLostError}. So does who gets
   * the same message of a queue twice.
   * @throws {@link LockLostError} if the token was used before, or its time is over.
   * @throws {@link LockConfigError} for a token of another table or lock, or something else.
   * @throws {@link LockStoreError} if the table cannot be used, or does not answer within 10 s. The lock is then released if
   * it was taken; else the token still counts.
   * @throws the reason of `signal`.
   *
   * @example
   * const { order, token } = JSON.parse(message);
   * await using lock = await mutex.resume(token);
   * await ship(order, { signal: lock.signal });
   */
  async resume(token: string, options: ResumeOptions = NONE): Promise<Held> {
    const { at, settings } = this.#resource;
    const isOurs = ({ name, sort }: Address): boolean => name === this.name && sort === at.sort;
    const lock: TransferableLock = await resume(this.#session, token, options, isOurs, () => ({ at, settings }));
    return lock as Held;
  }

  /**
   * Reads the lock with one consistent read; null if it is free. For a fair mutex, a query reads the waiters as well.
   *
   * A holder that has died is returned until the lock is taken again, with an `expires` in the past. A lock that nobody
   * holds but that cannot be taken yet has no `uuid`: its `holdAtLeastMs` has not passed, or it was unlocked by force.
   *
   * @throws {@link LockStoreError} if the table cannot be used, or does not answer within 10 s.
   * @throws the reason of `options.signal`.
   *
   * @example
   * const holder = await mutex.inspect();
   * if (holder !== null) console.log(`held by ${holder.owner} since ${holder.acquired.toISOString()}`);
   */
  async inspect(options: InspectOptions = NONE): Promise<LockState | null> {
    return await inspect(this.#session, this.#resource, options);
  }

  /**
   * Ends the acquisition with this uuid, if it still holds the lock.
   *
   * The holder learns of it at its next renewal, or at once if it is in this `LockTable`, and loses the lock with the reason
   * `forced`. Nobody else gets the lock before the old lease ends. With `{ now: true }` the lock is free at once, and two sections may run at the same time:
   * use it only if the holder is dead, or its work no longer matters.
   *
   * Sections of one process that hand a lock over share its uuid: if the section that you saw is over, this ends the one
   * that runs by now. With `fencing` each section has a uuid of its own.
   *
   * @param uuid as returned by `inspect()` or `list()`.
   * @returns whether that acquisition held the lock until now.
   * @throws {@link LockStoreError} if the table cannot be used, or does not answer within 10 s. The lock may have been
   * unlocked all the same.
   * @throws the reason of `options.signal`: it may have been unlocked as well.
   * @throws {@link LockConfigError} if an argument cannot work.
   *
   * @example
   * const holder = await mutex.inspect();
   * if (holder?.uuid !== undefined) await mutex.forceUnlock(holder.uuid);
   */
  async forceUnlock(uuid: string, options: ForceUnlockOptions = NONE): Promise<boolean> {
    return await forceUnlock(this.#session, this.#resource.at, uuid, options);
  }

  /** What `JSON.stringify()` writes, and what `console.log()` shows. */
  toJSON(): LockableJson {
    return this.#calls.toJSON();
  }

  /** @internal */
  [SHOWN](_depth: number, options: ShownOptions): string {
    return shownAs("Mutex", this.toJSON(), options);
  }
}
