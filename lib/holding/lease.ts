import { CHANNELS, publish } from "../diagnostics.js";
import { LockLostError, type LossReason } from "../errors.js";
import type { LockData } from "../lock-info.js";
import type { MutexSettings } from "../options/mutex.js";
import { leftAfter, type MinimumHold, minimumHold } from "../protocol/lease-time.js";
import type { Row } from "../protocol/row.js";
import type { Check, Left } from "../protocol/writes.js";
import { RENEW_AGAIN_MS } from "../session/retry.js";
import type { Session } from "../session/session.js";
import { giveBack, untilGivenBack } from "../taking/abandoned-claims.js";
import type { Acquisition, Stamping, Trying } from "../taking/acquisition.js";
import type { Wait } from "../taking/wait.js";
import { boundsOf } from "../time/clock.js";
import { uuidOf } from "./hand-off-token.js";

/** What one renewal came to. After `unknown` the old deadline still bounds us. */
export type Renewal =
  | { readonly kind: "renewed" }
  | { readonly kind: "lost"; readonly error: LockLostError }
  | { readonly kind: "unknown"; readonly cause: unknown };

/** What relies on a lease. It is told once if the lease ends first, and publishes that. */
export interface Section {
  abort(reason: unknown): void;
}

/** What a lock's lease and a place's differ in: their diagnostics channels, and what a close does to them. */
export interface LeaseEvents {
  /** Whether a caller's section runs on it, which a closing table revokes. A place it releases. */
  readonly hasSection: boolean;
  renewed(row: Acquisition, remainingMs: number): void;
  renewalFailed(row: Acquisition, cause: unknown): void;
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
      readonly kind: "relied";
      /** When the last of them began, on `atLeast`. */
      since: number;
      /** When the first of them has held for `maxHoldMs`, on `atMost`. */
      maxHoldEnds: number;
      cancelDeadline: () => void;
      cancelRenewal: () => void;
    }
  /** Once and for ever; the section may still run. */
  | { readonly kind: "lost"; readonly error: LockLostError }
  | { readonly kind: "released"; readonly done: Promise<void>; readonly error: LockLostError | undefined };

/** What has run under the present uuid: nothing ever, nothing since a reissue, a section, a section with a guard. */
type Usage = "unused" | "reissued" | "used" | "guarded";

/** From how many leases of one process on their renewals are spread. */
const MANY = 16;

/** Where renewals leave together, they are due at so many moments of `renewEveryMs`: once on them, they stay there. */
const SLOTS = 8;

const nothing = (): void => undefined;

/**
 * Keeps one acquisition: renews its row in time, checks its deadline, and reports its loss.
 *
 * 1. Every `renewEveryMs`, counted from when the last renewal was sent (sooner where the lease is shorter than `ttlMs`),
 *    a renewal stamps a later `expires`.
 * 2. A reply moves the deadline to the end of the new lease less the safety margin. No reply leaves it where it was.
 * 3. At the deadline, or when a refusal shows that the row is not ours, the lease is lost, once and for ever.
 * 4. `release()` stops the renewing, waits for one in flight, and deletes the row if it is still ours, or leaves it held until
 *    the end of its minimum hold.
 */
export class Lease {
  readonly settings: MutexSettings;
  /** When this process took it, on `atLeast`. */
  readonly takenAt: number;
  readonly #session: Session;
  readonly row: Acquisition;
  readonly #events: LeaseEvents;
  /** One, or none; several on the shared side of a shared mutex. */
  readonly #sections = new Set<Section>();
  #state: State = { kind: "idle" };
  #usage: Usage = "unused";
  #isKept = false;
  #isGivenBack = false;
  #onLost: () => void = nothing;
  #minimumHold: MinimumHold | undefined;
  /** The write of the row that is under way: one at a time. */
  #writing: { readonly done: Promise<Renewal>; readonly enough: AbortController } | undefined;

  constructor(session: Session, acquisition: Acquisition, events: LeaseEvents = LOCK_EVENTS) {
    this.settings = acquisition.settings;
    this.takenAt = session.clock.atLeast();
    this.#session = session;
    this.row = acquisition;
    this.#events = events;
  }

  /** The write of the row that is in flight. */
  get writing(): Promise<unknown> | undefined {
    return this.#writing?.done;
  }

  /** The loss, if any. Every read checks the deadline, because a blocked event loop runs no timers. */
  get lost(): LockLostError | undefined {
    const state = this.#state;
    if (state.kind === "lost" || state.kind === "released") return state.error;
    if (state.kind === "relied" && this.#session.clock.atMost() >= this.deadline) {
      return this.#lose(this.#leaseEnds >= state.maxHoldEnds ? "max-hold" : "expired", this.row.lastFailure);
    }
    return undefined;
  }

  get held(): boolean {
    return this.#state.kind === "relied" && this.lost === undefined;
  }

  get remainingMs(): number {
    return this.held ? Math.max(0, this.deadline - this.#session.clock.atMost()) : 0;
  }

  /** Until when it may be relied on without another renewal, on `atMost`. */
  get deadline(): number {
    const state = this.#state;
    return state.kind === "relied" ? Math.min(this.#leaseEnds, state.maxHoldEnds) : this.#leaseEnds;
  }

  /** Whether a section may begin on it. */
  get stands(): boolean {
    const { kind } = this.#state;
    return (kind === "idle" || kind === "relied") && this.#session.clock.atMost() < this.#leaseEnds;
  }

  /** Since when the last of the sections that rely on it runs, on `atLeast`; undefined if none does. */
  get reliedSince(): number | undefined {
    return this.#state.kind === "relied" ? this.#state.since : undefined;
  }

  /** Whether a section has begun on it. The next one gets it passed on. */
  get hasServed(): boolean {
    return this.#usage !== "unused";
  }

  /** Whether the row stays taken after its release: such a lease serves one section. */
  get hasMinimumHold(): boolean {
    return this.#minimumHold !== undefined;
  }

  /** From now on the lock stays taken for so long, however soon the lease is released; 0 for no longer than that. */
  holdAtLeast(ms: number): void {
    const { clock } = this.#session;
    this.#minimumHold = ms > 0 ? minimumHold(ms, clock.atLeast(), boundsOf(clock)) : undefined;
  }

  /** The lock stays taken for as long as this hold lasts, which began elsewhere. */
  holdOn(hold: MinimumHold | undefined): void {
    this.#minimumHold = hold;
  }

  /**
   * Renews it before a section relies on it, if the take was slow: half of it is gone. @returns whether it stands.
   *
   * @param wait of the call that it is for: the renewal is tried for no longer.
   * @param mayLapse whether it may have been over for a moment. A row that is still ours has let nobody else take it, but who
   * only looks at it may have acted on that. So it goes on under a new uuid: one whose lease was over has nobody behind it,
   * ever.
   */
  async secure(
    wait: Pick<Wait, "enough" | "until">,
    { mayLapse }: { readonly mayLapse: boolean } = { mayLapse: true },
  ): Promise<boolean> {
    // A writer that has waited is renewed, and its loss noticed.
    if (this.#state.kind === "relied") {
      if (this.row.isHalfGone) await this.renew();
      return this.held;
    }
    const { ttlMs, safetyMarginMs } = this.settings;
    const { clock } = this.#session;
    const tryingUntil = (end: number): Trying => ({ until: () => Math.min(end, wait.until()), enough: wait.enough });
    if (this.stands) {
      if (!this.row.isHalfGone) return true;
      const ends = this.#leaseEnds;
      const stamping = await this.row.renew(tryingUntil(ends));
      if (stamping.kind === "refused") return false;
      // An answer may be heard before the timer that bounds its request: the process was suspended.
      if (clock.atMost() < ends) return true;
    }
    if (!mayLapse) return false;
    const stamping = await this.row.reissue(tryingUntil(clock.atMost() + ttlMs - safetyMarginMs));
    return stamping.kind === "stamped" && this.stands;
  }

  /** From here on a closing table waits for the lease. */
  keep(onLost: () => void = nothing): void {
    this.#isKept = true;
    this.#onLost = onLost;
    this.#session.leases.add(this);
  }

  /**
   * A section begins to rely on it: the first on this lease, the next that it is passed on to, or one more.
   * @returns when that is, on `atLeast`.
   */
  begin(section: Section): number {
    const { clock } = this.#session;
    const isFirst = this.#usage === "unused";
    const joins = !isFirst && this.#sections.size > 0;
    this.watch(section, isFirst ? this.#spread() : 1);
    this.#usage = "used";
    const since = clock.atLeast();
    if (this.#state.kind !== "relied") return since;
    this.#state.since = since;
    if (!joins) this.#state.maxHoldEnds = clock.atMost() + this.settings.maxHoldMs;
    if (!this.settings.autoRenew) this.#state.cancelRenewal();
    this.#armDeadline();
    return since;
  }

  /** Renews it, whatever its sections want, and tells of its loss, before the first of them begins. */
  watch(section: Section, share = 1): void {
    this.#sections.add(section);
    if (this.#state.kind === "relied") return;
    const since = this.#session.clock.atLeast();
    const maxHoldEnds = Number.POSITIVE_INFINITY;
    this.#state = { kind: "relied", since, maxHoldEnds, cancelDeadline: nothing, cancelRenewal: nothing };
    this.#armDeadline();
    this.#armRenewal(this.#renewalDueIn() * share);
  }

  /**
   * A section has ended in time. Until the next one begins, no section relies on the lease, so none loses it.
   * @returns whether no other relies on it.
   */
  endSection(section: Section): boolean {
    this.#sections.delete(section);
    if (this.#sections.size > 0) return false;
    this.#stopTimers();
    if (this.#state.kind === "relied") this.#state = { kind: "idle" };
    return true;
  }

  /**
   * Prepares the lease for the next section: by a new uuid if two sections must not share one, by a renewal if half of
   * the lease is gone, and without a request otherwise. @returns whether the lease may be passed on.
   */
  async renewForNext(): Promise<boolean> {
    const mustReissue = this.#usage === "guarded" || (this.#usage === "used" && this.settings.fencing);
    if (!mustReissue && !this.row.isHalfGone) return this.stands;
    // One write of this row at a time. No other begins meanwhile: the timer is off, and the section's own calls are over.
    this.#writing?.enough.abort();
    await this.#writing?.done;
    if (!this.stands) return false;
    const giveUpAt = Math.min(this.#session.clock.atMost() + this.settings.releaseWithinMs, this.#leaseEnds);
    const send = (trying: Trying) => (mustReissue ? this.row.reissue(trying) : this.row.renew(trying));
    const renewal = await this.#write(send, () => giveUpAt);
    if (mustReissue && renewal.kind === "renewed") this.#usage = "reissued";
    return renewal.kind === "renewed" && this.stands;
  }

  /**
   * Renews now, with other data, if given, or joins the renewal that is in flight. A caller with data waits for that one
   * first, because joining it would lose the data.
   */
  async renew(data?: LockData): Promise<Renewal> {
    const { lost } = this;
    if (lost !== undefined) return { kind: "lost", error: lost };
    return await (this.#writing?.done ?? this.#write((trying) => this.row.renew(trying, data)));
  }

  /**
   * The condition that ties the section's own writes to the lease. Late copies of them must not pass under the next
   * section, so the lease changes its uuid between the two. @throws what a renewal before it came to.
   */
  async guard(): Promise<Check> {
    this.#usage = "guarded";
    for (;;) {
      const { guard } = this.row;
      if (guard !== undefined) return guard;
      const renewal = await this.renew();
      if (renewal.kind === "lost") throw renewal.error;
      if (renewal.kind === "unknown") throw renewal.cause;
    }
  }

  /** The table has refused a guard: the loss that the next renewal would have found is known now. */
  unguarded(row: Row | undefined): LockLostError {
    return this.lost ?? this.#lose(this.row.reasonOf(row));
  }

  /** Its row is known not to be ours any more. Between two sections the lease is lost as well: it must not be passed on. */
  lose(reason: LossReason): void {
    const { kind } = this.#state;
    if (kind === "idle" || kind === "relied") this.#lose(reason);
  }

  /**
   * Gives the row to whoever has the secret that this returns, for so long. No section relies on it any more, whatever comes of
   * it: where there is no answer, the row is released under either uuid.
   *
   * @param tick of the section that ends.
   * @throws {@link LockLostError} if it had been lost before. @throws the store's error.
   */
  handOff(withinMs: number, tick: number | undefined): Promise<string> {
    const { lost } = this;
    if (lost !== undefined) return Promise.reject(lost);
    this.#stopTimers();
    this.#state = { kind: "idle" };
    const handed = this.#handOff(withinMs, tick);
    const done = handed.then(nothing, (error: unknown) => {
      if (error instanceof LockLostError) throw error;
    });
    done.catch(nothing);
    this.#state = { kind: "released", done, error: undefined };
    return handed;
  }

  /** Ends the lease. Every call gets the same answer. @throws {@link LockLostError} if it had been lost before. */
  release(): Promise<void> {
    const { lost: error } = this;
    if (this.#state.kind === "released") return this.#state.done;
    this.#stopTimers();
    // From here on no section relies on it: what happens to the row is no loss.
    this.#state = error === undefined ? { kind: "idle" } : { kind: "lost", error };
    const done = this.#end(error);
    this.#state = { kind: "released", done, error };
    // The callers handle a rejection. This keeps it from counting as unhandled before they do.
    done.catch(() => undefined);
    return done;
  }

  /** Nobody has begun on it, and nobody will: meanwhile it excludes nobody in this process. */
  giveBack(): Promise<void> {
    this.#session.sightings.abandon(this.row.uuid);
    if (!this.#isKept) return giveBack(this.#session, this.row);
    // It may be renewed by now, and a close waits for it.
    this.#isGivenBack = true;
    return this.release();
  }

  /** The table has closed, so no other section begins on it. */
  endIfIdle(): void {
    if (this.#state.kind === "idle") void this.release();
  }

  /**
   * The table has closed, and its drain is over. The row of a section that runs is left alone until the section ends: nobody
   * gets in beside it. @returns the loss of that section, if there is one.
   */
  revoke(): LockLostError | undefined {
    // Its section may be over, or its lease.
    if (!this.held) return undefined;
    // What has served nobody yet waits for the readers to leave, and its caller has had its answer.
    if (this.#events.hasSection && this.hasServed) return this.#lose("closed");
    void this.release();
    return undefined;
  }

  /** Sends a write of the row. One is in flight at a time; other callers wait for it. */
  async #write(send: (trying: Trying) => Promise<Stamping>, until = (): number => this.deadline): Promise<Renewal> {
    const enough = new AbortController();
    const onFailure = (cause: unknown): void => this.#events.renewalFailed(this.row, cause);
    const leaseEnds = this.#leaseEnds;
    const done = this.#judged(send({ until, enough: enough.signal, onFailure }), leaseEnds).finally(() => {
      this.#writing = undefined;
    });
    this.#writing = { done, enough };
    return await done;
  }

  /** @param leaseEnds when the lease ended as it was when the write left. */
  async #judged(sent: Promise<Stamping>, leaseEnds: number): Promise<Renewal> {
    const stamping = await sent;
    // The deadline may have passed while the request was in flight: then no reply brings the lease back. No timer may have
    // rung since, where the process was suspended; and the reply, which is there before, has moved the deadline.
    const isOver = this.#session.clock.atMost() >= leaseEnds;
    if (isOver && this.#state.kind === "relied") this.#lose("expired", this.row.lastFailure);
    const { lost } = this;
    if (lost !== undefined) return { kind: "lost", error: lost };
    switch (stamping.kind) {
      case "stamped":
        if (isOver) return { kind: "unknown", cause: this.#errorOf("expired") };
        this.#armDeadline();
        this.#events.renewed(this.row, this.deadline - this.#session.clock.atMost());
        return { kind: "renewed" };
      case "refused":
        return { kind: "lost", error: this.#hasRunOut ? this.#errorOf("expired") : this.#lose(stamping.reason) };
      case "unanswered":
        return { kind: "unknown", cause: stamping.cause };
      default:
        return stamping satisfies never;
    }
  }

  #end(lost: LockLostError | undefined): Promise<void> {
    return this.#last(() => (lost === undefined ? this.#releaseHeld() : this.#releaseLost(lost)));
  }

  /** The last that is done with the row. A close waits for it. */
  async #last<T>(work: () => Promise<T>): Promise<T> {
    this.#session.leases.add(this);
    try {
      // Renewal and release never overlap: no further attempt, and the one in flight is awaited.
      if (this.#writing !== undefined) {
        this.#writing.enough.abort();
        await this.#writing.done;
      }
      return await work();
    } finally {
      this.#leave();
    }
  }

  #handOff(withinMs: number, tick: number | undefined): Promise<string> {
    return this.#last(async () => {
      const { clock, uuid } = this.#session;
      const hold = this.#minimumHold;
      const secret = uuid();
      const handOff = {
        uuid: uuidOf(secret),
        ...(tick !== undefined && { tick }),
        ...(hold && { heldUntil: hold.expires, heldForMs: Math.ceil(hold.ms) }),
      };
      // It stays taken for as long as it was to be, also where nobody goes on with it.
      const heldMs = hold === undefined ? 0 : Math.ceil(hold.ms - (clock.atLeast() - hold.startedAt));
      const giveUpAt = Math.min(clock.atMost() + this.settings.releaseWithinMs, this.#leaseEnds);
      const trying: Trying = { until: () => giveUpAt };
      // Only what was renewed under its uuid is handed on: a late copy of its take cannot bring that back.
      let stamping: Stamping = this.row.guard === undefined ? await this.row.renew(trying) : { kind: "stamped" };
      if (stamping.kind === "stamped") stamping = await this.row.transfer(handOff, Math.max(withinMs, heldMs), trying);
      switch (stamping.kind) {
        case "stamped":
          return secret;
        case "refused":
          throw this.#lose(this.#hasRunOut ? "expired" : stamping.reason);
        case "unanswered": {
          const { cause } = stamping;
          await this.row.release(this.#releaseUntil(), this.#left());
          throw this.#hasRunOut ? this.#lose("expired", cause) : cause;
        }
        default:
          return stamping satisfies never;
      }
    });
  }

  /** A close waits for it no longer. */
  #leave(): void {
    if (this.#session.leases.delete(this)) this.#session.onLeaseLeft?.();
  }

  async #releaseHeld(): Promise<void> {
    const state = this.#state;
    // A renewal that was in flight has found that the row is not ours.
    if (state.kind === "released" && state.error !== undefined) throw state.error;
    const release = await this.row.release(this.#releaseUntil(), this.#left());
    if (release.kind === "refused" && !this.#hasRunOut) throw this.#lose(this.row.reasonOf(release.row));
  }

  /** The section on a lost lease has ended. Only now is the row released, if it is still ours. */
  async #releaseLost(lost: LockLostError): Promise<void> {
    // A revoked lease lasts for as long as it was renewed last: it would be in everybody's way.
    if (lost.reason === "closed") await this.row.release(this.#releaseUntil(), this.#left());
    if (lost.reason === "expired" || lost.reason === "max-hold") await this.row.release(undefined, this.#left());
    throw lost;
  }

  /** Until when a release is tried; undefined, for one attempt, if the lease is over. */
  #releaseUntil(): (() => number) | undefined {
    if (this.#hasRunOut) return undefined;
    if (this.#isGivenBack) return untilGivenBack(this.#session, this.row);
    const giveUpAt = Math.min(this.#session.clock.atMost() + this.settings.releaseWithinMs, this.row.end);
    return () => giveUpAt;
  }

  #left(): Left | undefined {
    const { clock } = this.#session;
    return this.#minimumHold && leftAfter(this.#minimumHold, clock.atLeast(), clock.wall());
  }

  /** Whether the lease ended while no section relied on it: that is no loss, whoever holds the row since. */
  get #hasRunOut(): boolean {
    return this.#state.kind !== "relied" && this.#session.clock.atMost() >= this.#leaseEnds;
  }

  #errorOf(reason: LossReason, cause?: unknown): LockLostError {
    return new LockLostError(this.row.at.name, this.row.uuid, reason, cause === undefined ? undefined : { cause });
  }

  #lose(reason: LossReason, cause?: unknown): LockLostError {
    const state = this.#state;
    if ((state.kind === "lost" || state.kind === "released") && state.error !== undefined) return state.error;
    const error = this.#errorOf(reason, cause);
    this.#stopTimers();
    this.#state = state.kind === "released" ? { ...state, error } : { kind: "lost", error };
    this.#writing?.enough.abort();
    // A close waits for no section that lost its lock before: nobody may be there to end it.
    if (state.kind === "relied" && reason !== "closed") this.#leave();
    if (state.kind === "relied") for (const section of this.#sections) section.abort(error);
    this.#onLost();
    return error;
  }

  /** Until when the row is ours, less the margin that covers clocks which run at different rates. */
  get #leaseEnds(): number {
    return this.row.end - this.settings.safetyMarginMs;
  }

  /** In ms. Counted from the lease's end: a lease may be shorter than `ttlMs`. */
  #renewalDueIn(): number {
    const { ttlMs, renewEveryMs } = this.settings;
    return Math.max(0, this.row.end - (ttlMs - renewEveryMs) - this.#session.clock.atMost());
  }

  /** Spreads the renewals of many locks that were taken at once: the first renewal of each comes early by chance. */
  #spread(): number {
    return this.#session.leases.size < MANY ? 1 : 0.5 + this.#session.random() / 2;
  }

  #armRenewal(ms: number): void {
    const state = this.#state;
    if (state.kind !== "relied") return;
    state.cancelRenewal();
    const gridMs = this.settings.renewEveryMs / SLOTS;
    state.cancelRenewal = this.#session.agenda.alarm(ms, () => void this.#renewOnTime(), gridMs);
  }

  /** Never rejects. A release waits for it. */
  async #renewOnTime(): Promise<void> {
    const { end } = this.row;
    const renewal = await this.renew();
    if (renewal.kind === "lost" || !this.held || (this.hasServed && !this.settings.autoRenew)) return;
    const isLonger = renewal.kind === "renewed" && this.row.end > end;
    this.#armRenewal(Math.max(isLonger ? 0 : RENEW_AGAIN_MS, this.#renewalDueIn()));
  }

  #armDeadline(): void {
    const state = this.#state;
    if (state.kind !== "relied") return;
    state.cancelDeadline();
    const ms = Math.max(0, this.deadline - this.#session.clock.atMost());
    state.cancelDeadline = this.#session.clock.alarm(Math.ceil(ms), () => {
      // A timer may ring early by a fraction of a millisecond, and must not end the watch.
      if (this.held) this.#armDeadline();
    });
  }

  #stopTimers(): void {
    if (this.#state.kind !== "relied") return;
    this.#state.cancelDeadline();
    this.#state.cancelRenewal();
  }
}
