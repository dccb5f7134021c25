/// <reference lib="esnext.disposable" preserve="true" />
import type { TransactWriteItem } from "@aws-sdk/client-dynamodb";
import type { LockError, LockLostError } from "./errors.js";
import type { LockData } from "./lock-info.js";
import type { TransactWriteOptions } from "./options/calls.js";
import type { DocumentGuard } from "./store.js";

/** A lock that is held, until it is unlocked or lost. */
export interface Lock extends AsyncDisposable {
  readonly name: string;
  /** This acquisition's identity. */
  readonly uuid: string;
  readonly owner: string;
  /** When the lease ends unless it is renewed, on the table's clock. Rely on `remainingMs`, which trusts no clock. */
  readonly expires: Date;
  readonly acquired: Date;
  /**
   * The tick that was asked for with `once`; with `everyMs` the beginning of the period, in epoch ms on the table's
   * clock. Undefined without either.
   */
  readonly tick: number | undefined;
  /** Your own attributes, as they were last put on the row: with `lock()`, or with `replaceData()`. */
  readonly data: LockData | undefined;
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
   * Puts other attributes of your own on the row, in the place of those that are there: how far the section has come, for
   * those who `inspect()`. It is a renewal as well, and the lock of a section that called it is not passed on to the next
   * section of this process, but released.
   * @throws {@link LockConfigError} for what DynamoDB cannot store; nothing is sent then.
   * @throws {@link LockLostError} if the lock is lost.
   * @throws the store's error if the table did not answer; which of the two the row shows is not known then.
   *
   * @example
   * await lock.replaceData({ ...lock.data, done: 350 });
   */
  replaceData(data: LockData): Promise<void>;
  /**
   * Releases the lock. Further calls get the same answer.
   * @throws {@link LockLostError} if it had been lost, the same error as `signal.reason`.
   */
  unlock(): Promise<void>;
  /**
   * A condition for a transaction of your own, which DynamoDB then applies only if this lock is held at that instant, by
   * this section, whatever any clock shows. A lock that has not been renewed yet is renewed first.
   *
   * It cannot tell you of a loss that it meets: {@link Lock.transactWrite} does.
   *
   * @param options.document - the form that a DocumentClient takes.
   * @throws {@link LockLostError} if the lock is lost; {@link LockError} with the code `LOCK_RELEASED` after `unlock()`.
   * @throws {@link LockStoreError} if the lock has to be renewed first and the table does not answer.
   *
   * @example
   * await client.send(new TransactWriteItemsCommand({ TransactItems: [debit, credit, await lock.guard()] }));
   * @example
   * const guard = await lock.guard({ document: true });
   * await documentClient.send(new TransactWriteCommand({ TransactItems: [debit, credit, guard] }));
   */
  guard(options?: { readonly document?: false | undefined }): Promise<TransactWriteItem>;
  guard(options: { readonly document: true }): Promise<DocumentGuard>;
  /**
   * Applies your writes, all or none, and only if this lock is still held when DynamoDB applies them: what was read and
   * computed under the lock cannot be written by a section that has lost it. A reply that does not come is asked for
   * again, and the writes are applied once.
   *
   * @param items - at most 99, in the tables of the lock's account and region, and none on the lock's own row.
   * @throws {@link LockLostError} if the lock is lost: nothing was written, unless its reason is `expired` and an answer
   * was under way. `lock.signal` aborts as well.
   * @throws {@link LockStoreError} if no answer came within `withinMs`: the writes may have been applied or not.
   * @throws {@link LockConfigError} for items that cannot be sent.
   * @throws DynamoDB's own error, unchanged, if it refuses your items: a `TransactionCanceledException`, whose
   * `CancellationReasons` are those of your items in their order, and one for the guard after them.
   *
   * @example
   * const { Item } = await client.send(new GetItemCommand({ TableName, Key, ConsistentRead: true }));
   * const next = compute(Item);
   * await lock.transactWrite([{ Put: { TableName, Item: next } }]);
   */
  transactWrite(items: readonly TransactWriteItem[], options?: TransactWriteOptions): Promise<void>;
}

/** A lock of a mutex with `fencing: true`. */
export interface FencedLock extends Lock {
  /**
   * Greater than the token of every earlier section under this name, on whatever host. Send it along with what you
   * write: whoever stores it refuses a token that is less than one it has seen.
   */
  readonly fencingToken: bigint;
}
