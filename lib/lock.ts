/// <reference lib="esnext.disposable" preserve="true" />
import type { TransactWriteItem } from "@aws-sdk/client-dynamodb";
import {
  checkMinRemaining,
  type GuardOptions,
  guardOptions,
  type TransactWriteOptions,
  transactWriteOptions,
} from "./call-options.js";
import { LockError, LockLostError } from "./errors.js";
import type { DocumentGuard } from "./guard.js";
import { sendGuarded } from "./guarded-write.js";
import type { Host } from "./host.js";
import type { Lease, Renewal } from "./lease.js";
import { copyOf, type LockData } from "./lock-info.js";
import { LossSignal } from "./loss-signal.js";
import { checkData } from "./operation-options.js";
import type { Guard } from "./store.js";

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

/** One section's handle over a lease, which may have served other sections before and may serve others after. */
export class HeldLock implements Lock {
  readonly uuid: string;
  readonly owner: string;
  readonly acquired: Date;
  /** There on a fenced lock, and not on any other. */
  declare readonly fencingToken?: bigint;
  readonly tick: number | undefined;
  #data: LockData | undefined;
  readonly #host: Host;
  readonly #lease: Lease;
  readonly #signal: LossSignal;
  readonly #end: (lease: Lease) => Promise<void>;
  #over: { readonly done: Promise<void>; readonly lost: LockLostError | undefined } | undefined;

  constructor(section: {
    readonly host: Host;
    readonly lease: Lease;
    readonly owner: string;
    readonly acquired: number;
    readonly tick?: number | undefined;
    /** What becomes of the lease when the section is over. */
    readonly end: (lease: Lease) => Promise<void>;
  }) {
    const { uuid, fence } = section.lease;
    this.uuid = uuid;
    this.owner = section.owner;
    if (fence !== undefined) this.fencingToken = fence;
    this.acquired = new Date(section.acquired);
    this.tick = section.tick;
    this.#data = section.lease.data;
    this.#host = section.host;
    this.#lease = section.lease;
    this.#end = section.end;
    this.#signal = new LossSignal(() => this.lost);
    section.lease.begin(this.#signal);
  }

  get name(): string {
    return this.#lease.name;
  }

  get expires(): Date {
    return new Date(this.#lease.expires);
  }

  get signal(): AbortSignal {
    return this.#signal.signal;
  }

  get held(): boolean {
    return this.#over === undefined && this.#lease.held;
  }

  get remainingMs(): number {
    return this.#over === undefined ? this.#lease.remainingMs : 0;
  }

  assertHeld(minRemainingMs = 0): void {
    checkMinRemaining(minRemainingMs);
    this.#throwIfNotHeld();
    if (this.remainingMs < minRemainingMs) throw new LockLostError(this.name, this.uuid, "expired");
  }

  async extend(): Promise<void> {
    this.#throwIfNotHeld();
    throwUnlessRenewed(await this.#lease.renew());
  }

  get data(): LockData | undefined {
    return this.#data;
  }

  async replaceData(data: LockData): Promise<void> {
    checkData(data);
    this.#lease.admit(data);
    // As it is now: a later attempt must send the same as the first.
    const copy = copyOf(data);
    this.#throwIfNotHeld();
    // One write at a time, those that were asked for first first. While they run the section may end.
    for (let { writing } = this.#lease; writing !== undefined; writing = this.#lease.writing) {
      await writing;
      this.#throwIfNotHeld();
    }
    throwUnlessRenewed(await this.#lease.replaceData(copy));
    this.#data = copy;
  }

  unlock(): Promise<void> {
    if (this.#over === undefined) {
      const lost = this.lost;
      const done = this.#end(this.#lease).catch((error: unknown) => {
        // A loss that showed only at the release, when no section ran on the lease any more.
        this.#signal.abort(error);
        throw error;
      });
      this.#over = { done, lost };
    }
    return this.#over.done;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.unlock();
  }

  guard(options?: { readonly document?: false | undefined }): Promise<TransactWriteItem>;
  guard(options: { readonly document: true }): Promise<DocumentGuard>;
  async guard(options: GuardOptions = {}): Promise<TransactWriteItem | DocumentGuard> {
    const { document } = guardOptions(options);
    const guard = await this.#guard();
    const { store } = this.#host;
    return document ? store.documentGuard(guard) : store.guard(guard);
  }

  async transactWrite(items: readonly TransactWriteItem[], options: TransactWriteOptions = {}): Promise<void> {
    const { withinMs } = transactWriteOptions(options);
    this.#host.store.admitItems(this.name, items);
    const write = { items, guard: await this.#guard(), withinMs, isOver: () => this.#over !== undefined };
    const outcome = await sendGuarded(this.#host, this.#lease, write).catch((error) => {
      throw this.lost ?? error;
    });
    switch (outcome.kind) {
      case "committed":
        return;
      case "unguarded":
        // After the section the lease is another's, and its uuid too.
        if (this.#over === undefined) throw this.#lease.unguarded(outcome.row);
        this.#throwIfNotHeld();
        return;
      case "refused":
        throw outcome.error;
      default:
        outcome satisfies never;
    }
  }

  async #guard(): Promise<Guard> {
    this.#throwIfNotHeld();
    try {
      return await this.#lease.guard();
    } finally {
      // The section may have ended meanwhile: then what came is not its own.
      this.#throwIfNotHeld();
    }
  }

  /** Lets `signal` abort ours as well, which is no loss; the answer ends that. */
  follow(signal: AbortSignal | undefined): () => void {
    if (signal === undefined) return () => undefined;
    const follow = (): void => this.#signal.abort(signal.reason);
    if (signal.aborted) follow();
    else signal.addEventListener("abort", follow, { once: true });
    return () => signal.removeEventListener("abort", follow);
  }

  /** The loss of this section: one that came after its end is another's. */
  get lost(): LockLostError | undefined {
    return this.#over === undefined ? this.#lease.lost : this.#over.lost;
  }

  #throwIfNotHeld(): void {
    const lost = this.lost;
    if (lost !== undefined) throw lost;
    if (this.held) return;
    const name = JSON.stringify(this.name);
    throw new LockError("LOCK_RELEASED", `Lock ${name} has been unlocked: take it again before you rely on it`);
  }
}

function throwUnlessRenewed(renewal: Renewal): void {
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
