import { LOSS, type LockLostError, LockStoreError, type LossReason } from "../errors.js";
import type { MutexSettings } from "../options/mutex.js";
import { rowsOf, type Session } from "../session/session.js";
import { lossOf, type RowLease } from "../taking/row-lease.js";
import type { Outcome, Trying, Written } from "../taking/row-writes.js";

/** Who relies on a lease: a section, a place in a queue, or a writer that waits for readers. It is told once if the lease ends first. */
export interface LeaseUser {
  abort(reason: unknown): void;
  /** The lease was renewed, which may have shown that others wait for its row. */
  renewed?(): void;
}

/** How a lock's lease and a place's differ: in their diagnostics channels, and in what a close does to them. */
export interface LeaseEvents {
  /** Whether a caller's section runs on the lease. A closing table revokes such a lease, and releases a place. */
  readonly hasSection: boolean;
  renewed(row: RowLease, remainingMs: number): void;
  renewalFailed(row: RowLease, cause: unknown): void;
}

type State =
  /** No section relies on it: it was just taken, or the section before has ended. */
  | { readonly kind: "idle" }
  /** Sections rely on it: it is renewed, and its deadline watched. */
  | {
      readonly kind: "in-use";
      /** When the last of them began, on `atLeast`. */
      since: number;
      /** When the first of them has held for `maxHoldMs`, on `atMost`. */
      maxHoldEnds: number;
      cancelDeadline: () => void;
    }
  /** Lost, for good, while the section may still run; or left by its exit. */
  | { readonly kind: "over"; readonly error: LockLostError | undefined };

/** A process that did not run for less than this share of a lease is no reason for its loss. */
const STALL_SHARE = 1 / 10;

const nothing = (): void => undefined;

/** A write of the row that is in flight. */
interface Writing {
  readonly done: Promise<Outcome>;
  readonly end: AbortController;
  readonly hasData: boolean;
  /** Whether it changes the uuid. */
  readonly isReissue: boolean;
}

/**
 * The term of a lease: who relies on it, until when, and how it ended.
 *
 * 1. One write of the row is in flight at a time. Its reply replaces `row`, which moves the deadline. No reply leaves it where it was.
 * 2. At the deadline, or when a refusal shows that the row is not ours, the lease is lost, for good.
 * 3. While no section relies on it, nothing is lost: it may run out, or the row may go.
 */
export abstract class Term {
  readonly settings: MutexSettings;
  /** Why the last renewal got no answer, if it got none. */
  lastFailure: unknown;
  protected readonly session: Session;
  protected readonly events: LeaseEvents;
  /** One, or none; several on the shared side of a shared mutex. */
  protected readonly users: Set<LeaseUser> = new Set();
  #row: RowLease;
  #state: State = { kind: "idle" };
  #writing: Writing | undefined;
  #cancelRenewal: () => void = nothing;

  constructor(session: Session, row: RowLease, events: LeaseEvents) {
    this.settings = row.settings;
    this.session = session;
    this.events = events;
    this.#row = row;
  }

  /** The row as the last write has left it. */
  get row(): RowLease {
    return this.#row;
  }

  set row(row: RowLease) {
    const before = this.#row;
    this.#row = row;
    if (row.uuid !== before.uuid || row.others !== undefined) this.onNewUuid(before);
  }

  /** Called once, when it is lost. @param wasInUse whether it has sections to tell. */
  protected abstract onLost(error: LockLostError, wasInUse: boolean): void;

  /** Called when the row may have another uuid. @param before the row with the uuid before. */
  protected abstract onNewUuid(before: RowLease): void;

  /** The loss, if any. Every read checks the deadline, because a blocked event loop runs no timers. */
  get lost(): LockLostError | undefined {
    const state = this.#state;
    if (state.kind === "over") return state.error;
    if (state.kind === "in-use" && this.session.clock.atMost() >= this.deadline) {
      return this.markLost(this.usableUntil >= state.maxHoldEnds ? "max-hold" : "expired", this.lastFailure);
    }
    return undefined;
  }

  /** Whether a section relies on it, and it has not been lost. */
  get held(): boolean {
    return this.#state.kind === "in-use" && this.lost === undefined;
  }

  get remainingMs(): number {
    return this.held ? Math.max(0, this.deadline - this.session.clock.atMost()) : 0;
  }

  /** Until when the row is ours, less the margin that covers clocks which run at different rates, on `atMost`. */
  get usableUntil(): number {
    return this.row.validUntil - this.settings.safetyMarginMs;
  }

  /** The first of what ends it, if no renewal gets through any more, on `atMost`. */
  get deadline(): number {
    return this.#state.kind === "in-use" ? Math.min(this.usableUntil, this.#state.maxHoldEnds) : this.usableUntil;
  }

  /** Whether a section may begin on it. */
  get stands(): boolean {
    return this.#state.kind !== "over" && this.session.clock.atMost() < this.usableUntil;
  }

  /** Whether it ended while no section relied on it: that is no loss, even if another process holds the row by now. */
  get hasRunOut(): boolean {
    return this.#state.kind !== "in-use" && this.session.clock.atMost() >= this.usableUntil;
  }

  /** Since when the last of the sections that rely on it runs, on `atLeast`; undefined if none does. */
  get inUseSince(): number | undefined {
    return this.#state.kind === "in-use" ? this.#state.since : undefined;
  }

  get hasSections(): boolean {
    return this.users.size > 0;
  }

  get isIdle(): boolean {
    return this.#state.kind === "idle";
  }

  get isOver(): boolean {
    return this.#state.kind === "over";
  }

  /** In how many ms this process has to let others in: 0 for now, Infinity if nobody is known to wait. */
  get turnLeftMs(): number {
    const { contention } = this.session;
    if (contention === undefined) return Number.POSITIVE_INFINITY;
    return Math.min(...rowsOf(this.row).map(({ at }) => contention.turnLeftMs(at, this.settings.handOverMs)));
  }

  /** A section relies on it from here on, and its deadline is watched. @returns whether no other did. */
  protected use(user: LeaseUser): boolean {
    this.users.add(user);
    if (this.#state.kind === "in-use") return false;
    const since = this.session.clock.atLeast();
    this.#state = { kind: "in-use", since, maxHoldEnds: Number.POSITIVE_INFINITY, cancelDeadline: nothing };
    this.#watchDeadline();
    return true;
  }

  /**
   * A section begins to run.
   * @param joins whether it joins others, which began before, so that `maxHoldMs` counts from there.
   * @returns when it began, on `atLeast`.
   */
  protected countHold({ joins }: { readonly joins: boolean }): number {
    const { clock } = this.session;
    const since = clock.atLeast();
    if (this.#state.kind !== "in-use") return since;
    this.#state.since = since;
    if (!joins) this.#state.maxHoldEnds = clock.atMost() + this.settings.maxHoldMs;
    // Otherwise the alarm of `use` is for the deadline.
    if (this.#state.maxHoldEnds < this.usableUntil) this.#watchDeadline();
    return since;
  }

  /**
   * A section has ended in time. Until the next one begins, no section relies on the lease, so none can lose it.
   * @returns whether no other section relies on the lease.
   */
  endUse(user: LeaseUser): boolean {
    this.users.delete(user);
    if (this.users.size > 0) return false;
    if (this.#state.kind === "in-use") this.#become({ kind: "idle" });
    return true;
  }

  /** Ends it as lost, for good. @returns the loss that was found first. */
  markLost(reason: LossReason, cause?: unknown): LockLostError {
    const { kind } = this.#state;
    if (this.#state.kind === "over" && this.#state.error !== undefined) return this.#state.error;
    const because = reason === "expired" ? this.#whyExpired(cause) : undefined;
    const error = lossOf(this.row, reason, { cause, because });
    this.#become({ kind: "over", error });
    this.#writing?.end.abort();
    this.onLost(error, kind === "in-use");
    return error;
  }

  /**
   * That the process did not run, or that renewals were refused, if that may have cost the lease.
   * @param cause why the last renewal failed.
   */
  #whyExpired(cause: unknown): string | undefined {
    const { ttlMs } = this.settings;
    if (cause instanceof LockStoreError && !cause.transient)
      return `${LOSS.expired}. The last one failed: ${cause.message}`;
    const ms = this.session.agenda.stalledMs(this.row.validUntil - ttlMs);
    if (ms < ttlMs * STALL_SHARE) return undefined;
    return (
      `${LOSS.expired}. This process did not run for ${(ms / 1_000).toFixed(1)} s: its event loop was busy, its host was suspended, ` +
      "or its clock was set forward. Compute in a worker thread or in shorter steps, or set a longer ttlMs"
    );
  }

  /** Ends it as left: from here on no section relies on it, nothing renews it, and what happens to the row is no loss. */
  leave(): void {
    this.#become({ kind: "over", error: this.lost });
    this.#writing?.end.abort();
  }

  /** Sets the alarm of the next renewal, in place of the one before. It is off once no section relies on the lease. */
  renewIn(ms: number, renew: () => void, gridMs: number): void {
    this.#cancelRenewal();
    this.#cancelRenewal = this.session.agenda.alarm(ms, renew, gridMs);
  }

  /** Renews no more by an alarm. */
  stopRenewing(): void {
    this.#cancelRenewal();
  }

  /** The write of the row that is in flight. */
  get writing(): Pick<Writing, "done" | "hasData" | "isReissue"> | undefined {
    return this.#writing;
  }

  /** Ends the retries of the write in flight. @returns when its last attempt is over, so that no other write overlaps with it. */
  async endWriting(): Promise<void> {
    this.#writing?.end.abort();
    await this.#writing?.done;
  }

  /** Sends a write of the row, while none is in flight, and judges its reply. */
  async write(
    send: (row: RowLease, trying: Trying) => Promise<Written>,
    {
      until = () => this.deadline,
      hasData = false,
      isReissue = false,
    }: { until?: () => number; hasData?: boolean; isReissue?: boolean } = {},
  ): Promise<Outcome> {
    const end = new AbortController();
    const { row, usableUntil } = this;
    const onFailure = (cause: unknown): void => {
      this.lastFailure = cause;
      this.events.renewalFailed(this.row, cause);
    };
    const done = this.#judged(send(row, { until, endSignal: end.signal, onFailure }), usableUntil).finally(() => {
      this.#writing = undefined;
    });
    this.#writing = { done, end, hasData, isReissue };
    return await done;
  }

  /** @param usableUntil when the lease would have ended, as known when the write left. */
  async #judged(sent: Promise<Written>, usableUntil: number): Promise<Outcome> {
    const written = await sent;
    this.row = written.lease;
    if (written.kind === "ok") this.lastFailure = undefined;
    // The deadline may have passed while the request was in flight: then no reply brings the lease back. If the process was
    // suspended, the reply may be handled before the deadline's timer, and has moved the deadline.
    const isLate = this.session.clock.atMost() >= usableUntil;
    if (isLate && this.#state.kind === "in-use") this.markLost("expired", this.lastFailure);
    const { lost } = this;
    if (lost !== undefined) return { kind: "lost", why: lost.reason };
    // Its release has left meanwhile, and tells what became of the row.
    if (this.isOver) return { kind: "unknown", cause: lossOf(this.row, "deleted") };
    switch (written.kind) {
      case "ok":
        if (isLate) return { kind: "unknown", cause: lossOf(this.row, "expired") };
        this.events.renewed(this.row, this.deadline - this.session.clock.atMost());
        // It may have found a mark.
        if (this.turnLeftMs < Number.POSITIVE_INFINITY) for (const user of this.users) user.renewed?.();
        return written;
      case "lost":
        return { kind: "lost", why: this.hasRunOut ? "expired" : this.markLost(written.why).reason };
      case "unknown":
        return written;
      default:
        return written satisfies never;
    }
  }

  /** Sets an alarm for the present deadline. If renewals have moved the deadline by then, sets the next alarm. */
  #watchDeadline(): void {
    const state = this.#state;
    if (state.kind !== "in-use") return;
    state.cancelDeadline();
    const ms = Math.max(0, this.deadline - this.session.clock.atMost());
    state.cancelDeadline = this.session.agenda.alarm(Math.ceil(ms), () => {
      if (this.held) this.#watchDeadline();
    });
  }

  #become(state: State): void {
    if (this.#state.kind === "in-use") this.#state.cancelDeadline();
    this.#cancelRenewal();
    this.#state = state;
  }
}
