import { CHANNELS, publish } from "../diagnostics.js";
import type { LockLostError, LossReason } from "../errors.js";
import type { LockInfo } from "../lock-info.js";
import type { MutexSettings } from "../options/mutex.js";
import type { Row } from "../protocol/row.js";
import type { HeldLease, Session } from "../session/session.js";
import { infoOfLease, lossOf, type RowLease, reasonOf } from "../taking/row-lease.js";
import { Exit } from "./exit.js";
import type { LeaseControl } from "./lease-control.js";
import { type LeaseEvents, Renewals } from "./renewals.js";

/** A section that relies on a lease. It is told once if the lease ends first, and publishes that loss. */
export interface Section {
  abort(reason: unknown): void;
  /** The lease was renewed, which may have shown that others wait for its row. */
  renewed?(): void;
}

const LOCK_EVENTS: LeaseEvents = {
  hasSection: true,
  renewed: ({ at, uuid }, remainingMs) => {
    if (CHANNELS["dynamutex:renewed"].hasSubscribers)
      publish("dynamutex:renewed", { name: at.name, uuid, remainingMs });
  },
  renewalFailed: ({ at, uuid }, cause) => publish("dynamutex:renewal-failed", { name: at.name, uuid, cause }),
};

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

const nothing = (): void => undefined;

/**
 * Keeps the lease of one row: checks its deadline, and reports its loss.
 *
 * 1. Its {@link Renewals} move its deadline: to the end of the row's new lease less the safety margin.
 * 2. At the deadline, or when a refusal shows that the row is not ours, it is lost, for good.
 * 3. Its {@link Exit} ends it: no renewal overlaps with the last write of the row.
 */
export class Lease implements LeaseControl, HeldLease {
  readonly settings: MutexSettings;
  /** When this process took it, on `atLeast`. */
  readonly takenAt: number;
  row: RowLease;
  readonly renewals: Renewals;
  readonly exit: Exit;
  readonly #session: Session;
  readonly #events: LeaseEvents;
  /** One, or none; several on the shared side of a shared mutex. */
  readonly #sections = new Set<Section>();
  #state: State = { kind: "idle" };
  #onLost: () => void = nothing;

  constructor(session: Session, row: RowLease, events: LeaseEvents = LOCK_EVENTS) {
    this.settings = row.settings;
    this.takenAt = session.clock.atLeast();
    this.#session = session;
    this.row = row;
    this.#events = events;
    this.renewals = new Renewals(session, this, events);
    this.exit = new Exit(session, this, this.renewals);
  }

  /** The loss, if any. Every read checks the deadline, because a blocked event loop runs no timers. */
  get lost(): LockLostError | undefined {
    const state = this.#state;
    if (state.kind === "over") return state.error;
    if (state.kind === "in-use" && this.#session.clock.atMost() >= this.deadline) {
      return this.markLost(this.usableUntil >= state.maxHoldEnds ? "max-hold" : "expired", this.renewals.lastFailure);
    }
    return undefined;
  }

  get held(): boolean {
    return this.#state.kind === "in-use" && this.lost === undefined;
  }

  get remainingMs(): number {
    return this.held ? Math.max(0, this.deadline - this.#session.clock.atMost()) : 0;
  }

  get usableUntil(): number {
    return this.row.validUntil - this.settings.safetyMarginMs;
  }

  get deadline(): number {
    return this.#state.kind === "in-use" ? Math.min(this.usableUntil, this.#state.maxHoldEnds) : this.usableUntil;
  }

  get stands(): boolean {
    return this.#state.kind !== "over" && this.#session.clock.atMost() < this.usableUntil;
  }

  get info(): LockInfo {
    return infoOfLease(this.#session, this.row);
  }

  /** In how many ms this process has to let others in: 0 for now, Infinity if nobody is known to wait. */
  get turnLeftMs(): number {
    return this.#session.contention?.turnLeftMs(this.row.at, this.settings.handOverMs) ?? Number.POSITIVE_INFINITY;
  }

  get hasRunOut(): boolean {
    return this.#state.kind !== "in-use" && this.#session.clock.atMost() >= this.usableUntil;
  }

  get inUseSince(): number | undefined {
    return this.#state.kind === "in-use" ? this.#state.since : undefined;
  }

  /** From here on a closing table waits for the lease. */
  keep(onLost: () => void = nothing): void {
    this.#onLost = onLost;
    this.#session.keepLease(this);
  }

  /**
   * A section begins to rely on the lease: the first, the next one that it passes to, or one that joins others.
   * @returns when it began, on `atLeast`.
   */
  begin(section: Section): number {
    const { clock } = this.#session;
    const joins = this.renewals.haveServed && this.#sections.size > 0;
    if (!this.renewals.haveServed) this.#session.contention?.begins(this.row.at, this.takenAt);
    this.watch(section, this.renewals.spread());
    this.renewals.serve();
    const since = clock.atLeast();
    if (this.#state.kind !== "in-use") return since;
    this.#state.since = since;
    if (!joins) this.#state.maxHoldEnds = clock.atMost() + this.settings.maxHoldMs;
    this.#watchDeadline();
    return since;
  }

  /**
   * Renews the lease and watches its deadline from before its first section begins, even without `autoRenew`.
   * @param share after which share of the time until it is due the first renewal is sent.
   */
  watch(section: Section, share = 1): void {
    this.#sections.add(section);
    if (this.#state.kind === "in-use") return;
    const since = this.#session.clock.atLeast();
    this.#state = { kind: "in-use", since, maxHoldEnds: Number.POSITIVE_INFINITY, cancelDeadline: nothing };
    this.#watchDeadline();
    this.renewals.start(share);
  }

  /**
   * A section has ended in time. Until the next one begins, no section relies on the lease, so none can lose it.
   * @returns whether no other section relies on the lease.
   */
  endSection(section: Section): boolean {
    this.#sections.delete(section);
    if (this.#sections.size > 0) return false;
    if (this.#state.kind === "in-use") this.#settle({ kind: "idle" });
    return true;
  }

  /** The table has refused a guard: the loss that the next renewal would have found is known now. */
  unguarded(row: Row | undefined): LockLostError {
    return this.lost ?? this.markLost(reasonOf(this.#session, this.row, row));
  }

  /** The row is known not to be ours any more. The lease is lost between two sections as well: it must not be passed on. */
  lose(reason: LossReason): void {
    if (this.#state.kind !== "over") this.markLost(reason);
  }

  markLost(reason: LossReason, cause?: unknown): LockLostError {
    const { kind } = this.#state;
    if (this.#state.kind === "over" && this.#state.error !== undefined) return this.#state.error;
    const error = lossOf(this.row, reason, cause);
    this.#settle({ kind: "over", error });
    void this.renewals.settle();
    // A close does not wait for a section that has lost its lock before: nobody may be there to end that section.
    if (kind === "in-use" && reason !== "closed") this.forget();
    if (kind === "in-use") for (const section of this.#sections) section.abort(error);
    this.#onLost();
    return error;
  }

  leave(): void {
    this.#settle({ kind: "over", error: this.lost });
    this.#session.keepLease(this);
  }

  forget(): void {
    this.#session.forgetLease(this);
  }

  /** The table has closed, so no other section begins on it. */
  endIfIdle(): void {
    if (this.#state.kind === "idle") void this.exit.release();
  }

  /**
   * The table has closed, and its drain is over. The row of a section that runs is left alone until the section ends: nobody
   * gets in beside it. @returns the loss of that section, if there is one.
   */
  revoke(): LockLostError | undefined {
    // The section or the lease may be over already.
    if (!this.held) return undefined;
    // Only a lease with a section is revoked. A place is released, and so is the row of a writer that still waits for readers
    // to leave: its caller has had its answer.
    if (this.#events.hasSection && this.renewals.haveServed) return this.markLost("closed");
    void this.exit.release();
    return undefined;
  }

  renewed(): void {
    if (this.turnLeftMs === Number.POSITIVE_INFINITY) return;
    for (const section of this.#sections) section.renewed?.();
  }

  /** Sets an alarm for the present deadline. If renewals have moved the deadline by then, sets the next alarm. */
  #watchDeadline(): void {
    const state = this.#state;
    if (state.kind !== "in-use") return;
    state.cancelDeadline();
    const ms = Math.max(0, this.deadline - this.#session.clock.atMost());
    state.cancelDeadline = this.#session.agenda.alarm(Math.ceil(ms), () => {
      if (this.held) this.#watchDeadline();
    });
  }

  /** No section relies on it any more. */
  #settle(state: State): void {
    if (this.#state.kind === "in-use") this.#state.cancelDeadline();
    this.renewals.stop();
    this.#state = state;
  }
}
