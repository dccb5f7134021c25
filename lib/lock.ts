/// <reference lib="esnext.disposable" preserve="true" />
import type { TransactWriteItem } from "@aws-sdk/client-dynamodb";
import type { LockError, LockLostError } from "./errors.js";
import type { LockData } from "./lock-info.js";
import type { ExtendOptions, HandOffOptions, TransactWriteOptions } from "./options/calls.js";
import type { DocumentGuard } from "./store.js";

/**
 * A guard, as an item of a transaction. It has a name of its own so that the types of your functions that return one need not name
 * the AWS SDK, which your package may not depend on itself.
 */
export interface Guard extends TransactWriteItem {}

/** What `JSON.stringify()`, `console.log()` and `util.inspect()` show of a lock. */
export interface LockJson {
  readonly name: string;
  readonly held: boolean;
  readonly owner: string;
  readonly uuid: string;
  readonly acquired: Date;
  readonly expires: Date;
  readonly tick?: number;
  readonly attempt?: number;
  readonly permit?: number;
  /** Present only if it holds several. */
  readonly permits?: readonly number[];
  /** In decimal digits: JSON has no bigint. */
  readonly fencingToken?: string;
}

/** A lock that was granted. It is held until it is unlocked or lost. */
export interface Lock extends AsyncDisposable {
  readonly name: string;
  /**
   * Identifies the acquisition, which is one lease on the row. Sections of one process that hand it over share it, one after
   * the other; with `fencing`, and after a guard, the next section has a uuid of its own.
   */
  readonly uuid: string;
  readonly owner: string;
  /** When the lease ends unless it is renewed, on the table's clock. Prefer `remainingMs`, which needs no clock. */
  readonly expires: Date;
  readonly acquired: Date;
  /**
   * The tick that this lock was granted for: with `once` the one given, with `everyMs` the beginning of the period, in
   * epoch ms on the table's clock. Undefined without either.
   */
  readonly tick: number | undefined;
  /** Which run of its tick this is, from 1, in a `tryRun()` with `untilSuccess`; undefined without. */
  readonly attempt: number | undefined;
  /** Your own attributes on the row, as last written by `lock()` or `replaceData()`. */
  readonly data: LockData | undefined;
  /** Aborts when the lock is lost, with the {@link LockLostError} as its reason. Pass it to what the section awaits. */
  readonly signal: AbortSignal;
  /** Whether the lock is held at this moment. */
  readonly held: boolean;
  /** How long the lock is certainly held without another renewal, in ms. 0 if it is not held. */
  readonly remainingMs: number;
  /**
   * Whether another host has waited for this lock for `handOverMs` at least, as far as this host knows. A hint for a critical section
   * that can end early and lock again: a batch between two items, a leader. Reading it sends no request. The waiting host sets a
   * flag on the row, and the holder learns of it with its next renewal or `extend()`: at most `renewEveryMs` later, or later still with
   * `autoRenew: false`. A flag that was on the row when the lock was taken may come from this host itself, so it counts only
   * after `handOverMs`. The value may become false again, because a waiting host may give up. It is always false for a lock that
   * is not held, and on the shared side of a shared mutex.
   *
   * A process that ends its section while this is true leaves the lock to the other hosts for as long as the slowest of them needs,
   * at most 5 s, before it takes it again.
   *
   * @example
   * for (const item of items) {
   *   if (lock.wanted) break; // the next run goes on from here
   *   await work(item, lock.signal);
   * }
   */
  readonly wanted: boolean;
  /**
   * Checks that the lock is held. Call it right before an action that must not happen twice.
   * @param minRemainingMs the least that `remainingMs` has to be, in ms. Default 0.
   * @throws {@link LockLostError} if the lock is lost; also if `remainingMs` is less, although the lock is then still held.
   */
  assertHeld(minRemainingMs?: number): void;
  /**
   * Renews the lease now: with `autoRenew: false`, or before an action that must not be interrupted.
   * @param options.signal ends the call, and not the lock.
   * @throws {@link LockLostError} if the lock is lost.
   * @throws {@link LockStoreError} if the table did not answer. The end of the lease is then the same as before.
   * @throws the reason of `signal`. The lock is then held as before, and for longer if the renewal under way is still applied.
   */
  extend(options?: ExtendOptions): Promise<void>;
  /**
   * Replaces your own attributes on the row, for example to show the progress of the section to `inspect()`. It also
   * renews the lease. A lock whose data was replaced is released at the end of its section, and not handed over to the
   * next section of this process.
   * @throws {@link LockConfigError} for data that DynamoDB cannot store. Nothing was sent.
   * @throws {@link LockLostError} if the lock is lost.
   * @throws {@link LockStoreError} if the table refuses the data, or has not answered in half of the time that was left of the
   * lease. The lock is still held, and renewed without them. Without an answer, the row may have the old data or the new.
   *
   * @example
   * await lock.replaceData({ ...lock.data, done: 350 });
   */
  replaceData(data: LockData): Promise<void>;
  /**
   * Releases the lock. Further calls have the same outcome.
   * @throws {@link LockLostError} if it was lost: the same error as `signal.reason`.
   */
  unlock(): Promise<void>;
  /**
   * A condition for a transaction of your own: DynamoDB applies it only if this section holds the lock at that moment,
   * independent of all clocks. A lock that has not been renewed yet is renewed first.
   *
   * A transaction that this condition refuses does not report the loss of the lock. {@link Lock.transactWrite} does.
   *
   * @param options.document whether to return the form that a DocumentClient takes.
   * @throws {@link LockConfigError} on a table of several Regions, as the clock's `regionSkewMs` says: it has no transactions; and on a
   * lock of several permits.
   * @throws {@link LockLostError} if the lock is lost; {@link LockError} with the code `LOCK_RELEASED` after `unlock()`.
   * @throws {@link LockStoreError} if the lock has to be renewed first and the table does not answer.
   *
   * @example
   * await client.send(new TransactWriteItemsCommand({ TransactItems: [debit, credit, await lock.guard()] }));
   * @example
   * const guard = await lock.guard({ document: true });
   * await documentClient.send(new TransactWriteCommand({ TransactItems: [debit, credit, guard] }));
   */
  guard(options?: { readonly document?: false | undefined }): Promise<Guard>;
  guard(options: { readonly document: true }): Promise<DocumentGuard>;
  /**
   * Applies your writes, all or none, and only if this lock is still held when DynamoDB applies them. A section that has
   * lost the lock therefore cannot write what it computed under it. A request without a reply is retried, and the writes
   * are applied at most once.
   *
   * @param items at most 99, on tables of the lock's account and region, and none on the lock's own row.
   * @throws {@link LockLostError} if the lock is lost; `lock.signal` aborts as well. Nothing was written, unless the
   * reason is `expired` and a request was in flight.
   * @throws {@link LockStoreError} if no answer came within `timeoutMs`. The writes may have been applied or not.
   * @throws {@link LockConfigError} for items that cannot be sent, and on a lock of several permits.
   * @throws DynamoDB's own error, unchanged, if it refuses your items: a `TransactionCanceledException`, whose
   * `CancellationReasons` are those of your items in order, followed by one for the guard.
   *
   * @example
   * const { Item } = await client.send(new GetItemCommand({ TableName, Key, ConsistentRead: true }));
   * const next = compute(Item);
   * await lock.transactWrite([{ Put: { TableName, Item: next } }]);
   */
  transactWrite(items: readonly TransactWriteItem[], options?: TransactWriteOptions): Promise<void>;
  /** What `JSON.stringify()` writes, and what `console.log()` shows. Your own attributes are not in it. */
  toJSON(): LockJson;
}

/** A lock that another process can go on with: that of a mutex, and a permit of a semaphore. */
export interface TransferableLock extends Lock {
  /**
   * Ends this section without releasing the lock, and returns a token with which {@link Mutex.resume} goes on with it, in any
   * process: in the next step of a workflow, or wherever a queue delivers the token. In between nobody has the lock and nobody
   * else gets it. After `validForMs` it is free.
   *
   * The section is over when the call begins: `held` is false, and `unlock()` does nothing. If the call rejects with a
   * {@link LockStoreError}, the lock was released, or this process goes on releasing it for `validForMs`: the message says which.
   *
   * The token is a secret: whoever has it can go on with the lock, once. What others see of the lock, its uuid included, is of no
   * use for that.
   *
   * @param options.validForMs for how long the lock waits to be resumed, in ms.
   * @throws {@link LockLostError} if the lock is lost; {@link LockError} with the code `LOCK_RELEASED` after `unlock()`.
   * @throws {@link LockStoreError} if the table did not answer.
   * @throws {@link LockConfigError} if an option cannot work, in a run with `untilSuccess`, whose end has to be recorded, and on a
   * lock of several permits.
   *
   * @example
   * const token = await lock.handOff({ validForMs: 15 * 60_000 });
   * await queue.send(JSON.stringify({ order, token }));
   */
  handOff(options: HandOffOptions): Promise<string>;
}

/** A lock of a mutex with `fencing: true`. */
export interface FencedLock extends TransferableLock {
  /**
   * Greater than the token of every earlier section under this name, on all hosts. Send it with each write to a storage
   * that refuses a token less than the greatest it has seen.
   */
  readonly fencingToken: bigint;
}

/** One permit of a semaphore, or several that come and go together: losing one of them is losing all. */
export interface Permit extends TransferableLock {
  /**
   * Its number, from 0: no other holder has the same at the same time. For a slot, a port, one of several licences. Of several,
   * the first.
   */
  readonly permit: number;
  /** The numbers of all that it holds, in ascending order: as many as were asked for. */
  readonly permits: readonly number[];
}
