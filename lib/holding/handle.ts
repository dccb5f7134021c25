/// <reference lib="esnext.disposable" preserve="true" />
import type { InspectOptions } from "node:util";
import type { TransactWriteItem } from "@aws-sdk/client-dynamodb";
import { LockConfigError, LockError, LockLostError } from "../errors.js";
import type { Guard, LockJson, TransferableLock } from "../lock.js";
import { copyOf, type LockData } from "../lock-info.js";
import type { ExtendOptions, GuardOptions, HandOffOptions, TransactWriteOptions } from "../options/calls.js";
import { checkData, checkMinRemaining, extendOptions, guardOptions, handOffOptions } from "../options/calls.js";
import { NONE } from "../options/check.js";
import { permitOf } from "../protocol/addresses.js";
import type { NamedResult } from "../protocol/writes.js";
import { retraced } from "../retraced.js";
import { awaitShared, follow } from "../session/abort-listening.js";
import { rowsOf, type Session } from "../session/session.js";
import { SHOWN, shownAs } from "../shown.js";
import type { DocumentGuard } from "../store.js";
import { guardFor, transactUnder } from "./guarded-writes.js";
import { tokenOf } from "./hand-off-token.js";
import type { Lease } from "./lease.js";
import { LossSignal } from "./loss-signal.js";
import { recordSuccess } from "./record-success.js";
import { SectionEvents } from "./section-events.js";
import type { LeaseUser } from "./term.js";

/** One section's handle over a lease, which may have served other sections before and may serve others after. */
export class HeldLock implements TransferableLock {
  readonly uuid: string;
  readonly owner: string;
  readonly acquired: Date;
  /** Present only on a fenced lock. */
  declare readonly fencingToken?: bigint;
  /** Present only on permits of a semaphore. */
  declare readonly permit?: number;
  declare readonly permits?: readonly number[];
  readonly tick: number | undefined;
  readonly attempt: number | undefined;
  readonly #session: Session;
  readonly #lease: Lease;
  /** Created when it is first read or aborted. */
  #lossSignal: LossSignal | undefined;
  readonly #end: (lease: Lease, section: LeaseUser) => Promise<void>;
  readonly #mayHandOff: boolean;
  readonly #events: SectionEvents;
  /** Called if the lease ends before the section does. @internal */
  onLost: () => void = () => undefined;
  #over: { readonly done: Promise<void>; readonly lost: LockLostError | undefined } | undefined;

  constructor(section: {
    readonly session: Session;
    readonly lease: Lease;
    readonly acquired: number;
    readonly tick?: number | undefined;
    /** What becomes of the lease when the section is over. Default: it is released. */
    readonly end?: (lease: Lease, section: LeaseUser) => Promise<void>;
    /** Whether the lock may be handed off. Default true. */
    readonly mayHandOff?: boolean;
  }) {
    const { uuid, fence } = section.lease.row;
    this.uuid = uuid;
    this.owner = section.session.owner;
    if (fence !== undefined) this.fencingToken = fence;
    this.acquired = new Date(section.acquired);
    this.tick = section.tick;
    this.attempt = section.lease.row.attempt;
    this.#session = section.session;
    this.#lease = section.lease;
    this.#end = section.end ?? (({ exit }) => exit.release());
    this.#mayHandOff = section.mayHandOff ?? true;
    if (section.lease.row.permits !== undefined) {
      this.permits = rowsOf(section.lease.row).map(({ at }) => permitOf(at.sort) ?? 0);
      this.permit = this.permits[0] ?? 0;
    }
    this.#events = new SectionEvents(section.session, section.lease, this);
    this.#events.beganAt = section.lease.begin(this);
  }

  /** The caller has the lock: from here on the events of its section are published. @internal */
  delivered(wait: { readonly call: number; readonly waitedMs: number }): void {
    if (this.tick !== undefined) this.#lease.exit.hasBegun = true;
    this.#events.delivered(wait);
  }

  /** Runs the function of its section. @internal */
  runs<T>(fn: () => T | Promise<T>): Promise<T> {
    return this.#session.sectionStack.run(fn);
  }

  /** @internal */
  renewed(): void {
    this.#events.renewed();
  }

  /** Makes the release write the result of a single flight to the row. @internal */
  names(result: NamedResult): void {
    this.#lease.exit.result = result;
  }

  get wanted(): boolean {
    return this.held && this.#lease.turnLeftMs <= 0;
  }

  get name(): string {
    return this.#lease.row.at.name;
  }

  get expires(): Date {
    return new Date(Math.min(...rowsOf(this.#lease.row).map(({ expires }) => expires)));
  }

  get signal(): AbortSignal {
    // Reading it checks the deadline, so that a caller who reads it after a loss finds it aborted.
    void this.lost;
    return this.#signal.signal;
  }

  get #signal(): LossSignal {
    this.#lossSignal ??= new LossSignal(() => this.lost);
    return this.#lossSignal;
  }

  /** The lease has ended before the section did. @internal */
  abort(reason: unknown): void {
    this.#abort(reason);
    this.onLost();
    if (reason instanceof LockLostError) this.#events.lost(reason);
  }

  #abort(reason: unknown): void {
    this.#events.stopWatching();
    this.#signal.abort(reason);
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
    const { remainingMs } = this;
    if (remainingMs >= minRemainingMs) return;
    const because = `${Math.floor(remainingMs)} ms of its lease are left, and ${minRemainingMs} were asked for`;
    throw new LockLostError(this.name, this.uuid, "expired", { because });
  }

  async extend(options: ExtendOptions = NONE): Promise<void> {
    const { signal } = extendOptions(options);
    await this.#renew(() => {
      signal?.throwIfAborted();
      // Others may have joined the renewal, and its answer counts for the lease: it goes on without this caller.
      const renewed = this.#lease.renewals.extend();
      return signal === undefined ? renewed : awaitShared(signal, renewed);
    });
  }

  get data(): LockData | undefined {
    return this.#lease.row.data;
  }

  async replaceData(data: LockData): Promise<void> {
    checkData(data);
    this.#session.store.admit(data);
    const copy = copyOf(data);
    const lease = this.#lease;
    this.#throwIfNotHeld();
    // One write at a time, in the order of the calls. The section may end meanwhile.
    for (;;) {
      if (lease.writing !== undefined) await lease.writing.done;
      else if (lease.lastFailure !== undefined) await this.extend();
      else break;
    }
    await this.#renew(() => lease.renewals.replaceData(copy));
  }

  async #renew(send: () => Promise<void>): Promise<void> {
    this.#throwIfNotHeld();
    try {
      await send();
    } catch (error) {
      // The release of the section ends a renewal that has not left, or that waits for its next attempt.
      this.#throwIfNotHeld();
      throw retraced(error);
    }
  }

  unlock(): Promise<void> {
    // To ask for the loss may tell of it, and a listener may unlock.
    const { lost } = this;
    this.#over ??= { done: this.#endSection(), lost };
    return this.#over.done;
  }

  async #endSection(): Promise<void> {
    this.#events.ended();
    try {
      await this.#end(this.#lease, this);
    } catch (error) {
      // Only the release has found this loss, when no section relied on the lease any more.
      this.abort(error);
      throw retraced(error);
    } finally {
      this.#events.tellEnd();
    }
  }

  /**
   * Says that this run has not begun, because the command could not be started: it is shown as no
   * run, and with `untilSuccess` it counts as no attempt. @internal
   */
  uncountAttempt(): void {
    this.#lease.exit.hasBegun = false;
  }

  /**
   * Until when a step between the end of the function and the release is tried, on `atMost`: as long as a release, or until the
   * lease as it is now would end. It is fixed now. Renewals go on meanwhile and do not move it, so no such step holds the lock
   * for longer. @internal
   */
  untilStepEnds(): () => number {
    const leftMs = this.#lease.deadline - this.#session.clock.atMost();
    return this.#session.untilClosed(Math.max(this.#lease.settings.releaseWithinMs, leftMs));
  }

  /**
   * Records that the tick of its section has succeeded, also after a loss, because the row may be ours to the end of its lease.
   * @throws {@link LockStoreError} if it was not recorded, or if that is not known. @internal
   */
  async recordSuccess(): Promise<void> {
    const { attempt, tick } = this;
    if (tick === undefined || attempt === undefined) return;
    this.#lease.exit.hasBegun = true;
    const recorded = recordSuccess(this.#session, this.#lease.row, { tick, attempt }, this.untilStepEnds());
    // Detach it, because a close does not wait for a lease that was lost.
    this.#session.detach(recorded);
    await recorded;
  }

  /** Its end is told before the next section on its lease tells its beginning. @internal */
  tellEnd(): void {
    this.#events.tellEnd();
  }

  async handOff(options: HandOffOptions): Promise<string> {
    const { validForMs } = handOffOptions(options);
    let remedy: string | undefined;
    if (this.#lease.row.others !== undefined)
      remedy =
        "must not be called on a lock of several permits: take one permit, or a mutex, for work that another process ends";
    if (this.attempt !== undefined) remedy = "must not be called in a run with `untilSuccess`: its end is recorded";
    if (!this.#mayHandOff)
      remedy =
        "must be an exclusive lock of a row of its own, and not that of singleFlight(): neither that nor those of a shared mutex can be handed off";
    if (remedy !== undefined) throw new LockConfigError("handOff()", this.name, remedy);
    if (this.#over !== undefined) this.#throwIfNotHeld();
    // From here on the section is over, whatever the outcome of the hand-off, and also if the lock was lost before.
    const handed = this.#lease.exit.handOff(validForMs, this.tick);
    handed.catch(() => undefined); // awaited below, after the section's end
    const { lost } = this.#lease;
    const done = this.#endSection();
    this.#over = { done, lost };
    // Abort the signal with a loss before that loss is thrown.
    await done.catch(() => undefined);
    try {
      return tokenOf(this.#session.table, this.#lease.row.at, await handed);
    } catch (error) {
      throw retraced(error);
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.unlock();
  }

  guard(options?: { readonly document?: false | undefined }): Promise<Guard>;
  guard(options: { readonly document: true }): Promise<DocumentGuard>;
  async guard(options: GuardOptions = {}): Promise<Guard | DocumentGuard> {
    const { document } = guardOptions(options);
    const { store } = this.#session;
    const guard = await guardFor(this.#session, this.#lease, this);
    return document ? store.documentGuard(guard) : store.guard(guard);
  }

  async transactWrite(items: readonly TransactWriteItem[], options: TransactWriteOptions = {}): Promise<void> {
    await transactUnder(this.#session, this.#lease, this, items, options);
  }

  toJSON(): LockJson {
    const { name, held, owner, uuid, acquired, expires, tick, attempt, permit, permits = [], fencingToken } = this;
    return {
      ...{ name, held, owner, uuid, acquired, expires },
      ...(tick !== undefined && { tick }),
      ...(attempt !== undefined && { attempt }),
      ...(permit !== undefined && { permit }),
      ...(permits.length > 1 && { permits }),
      ...(fencingToken !== undefined && { fencingToken: `${fencingToken}` }),
    };
  }

  /** @internal */
  [SHOWN](_depth: number, options: InspectOptions): string {
    return shownAs("Lock", this.toJSON(), options);
  }

  /** Lets `signal` abort the signal of this lock as well, which is no loss, until the returned function is called. */
  follow(signal: AbortSignal | undefined): () => void {
    return follow([signal], (reason) => this.#abort(reason));
  }

  /** Whether its caller has ended it. @internal */
  get isOver(): boolean {
    return this.#over !== undefined;
  }

  /** The loss of this section. A loss after its end is not its own. */
  get lost(): LockLostError | undefined {
    return this.#over === undefined ? this.#lease.lost : this.#over.lost;
  }

  #throwIfNotHeld(): void {
    if (this.held) return;
    // Reading `held` may have been the first look after the deadline.
    const { lost } = this;
    if (lost !== undefined) throw retraced(lost);
    const name = JSON.stringify(this.name);
    throw new LockError("LOCK_RELEASED", `Lock ${name} has been unlocked: take it again before you rely on it`);
  }
}
