import { CHANNELS, publish } from "../diagnostics.js";
import type { LockData } from "../lock-info.js";
import type { Check } from "../protocol/writes.js";
import { NotSent } from "../session/backlog.js";
import { answeredWithin } from "../session/overdue.js";
import { noAnswer } from "../session/retry.js";
import type { Session } from "../session/session.js";
import type { Bid } from "../taking/bid.js";
import { coversPeriod, guardOf, isHalfGone, lossOf, type RowLease } from "../taking/row-lease.js";
import { type Outcome, reissue, renew, type Trying } from "../taking/row-writes.js";
import type { LeaseEvents, Term } from "./term.js";

/** What has run under the present uuid: nothing ever, nothing since a reissue, a section, a section with a guard. */
type Usage = "unused" | "reissued" | "used" | "guarded";

/** What the channels tell of the renewals of a lock. */
export const LOCK_EVENTS: LeaseEvents = {
  hasSection: true,
  renewed: ({ at, uuid }, remainingMs) => {
    if (CHANNELS["dynamutex:renewed"].hasSubscribers)
      publish("dynamutex:renewed", { name: at.name, uuid, remainingMs });
  },
  renewalFailed: ({ at, uuid }, cause) => publish("dynamutex:renewal-failed", { name: at.name, uuid, cause }),
};

/** If a process has this many leases or more, their renewals are spread. */
const MANY = 16;

/** Where renewals leave together, they are due at this many moments in each `renewEveryMs`, and stay on these moments. */
const MOMENTS_PER_PERIOD = 8;

/** How soon a renewal follows one that got no answer, or that did not move the end of the lease. */
const RENEW_AGAIN_MS = 50;

/**
 * The renewals of one lease, on demand and by a timer: every `renewEveryMs`, counted from when the last renewal was sent (sooner
 * where the lease is shorter than `ttlMs`), a renewal stamps a later `expires`. What its reply means, the {@link Term} says.
 */
export class Renewals {
  readonly #session: Session;
  readonly #term: Term;
  /** Whether the row carries data of its section, or may: such a lease serves that section alone. */
  mayHaveData: boolean;
  #usage: Usage = "unused";

  constructor(session: Session, term: Term) {
    this.#session = session;
    this.#term = term;
    this.mayHaveData = term.row.data !== undefined;
  }

  /** Whether a section has begun on the lease. */
  get haveServed(): boolean {
    return this.#usage !== "unused";
  }

  /** Sets the timer of the next renewal. @param share after which share of the time until it is due: see {@link spread}. */
  start(share = 1): void {
    this.#arm(this.#dueIn() * share);
  }

  /** Spreads the renewals of many locks that were taken at once: the first renewal of each comes early by a random amount. */
  spread(): number {
    return this.haveServed || this.#session.leases.size < MANY ? 1 : 0.5 + this.#session.random() / 2;
  }

  /** A section begins on the lease. */
  serve(): void {
    this.#usage = "used";
    if (!this.#term.row.settings.autoRenew) this.#term.stopRenewing();
  }

  /** Renews now, or joins the renewal in flight. If that fails with the data of a caller, a renewal without them follows. */
  async renew(): Promise<Outcome> {
    for (;;) {
      const { lost } = this.#term;
      if (lost !== undefined) return { kind: "lost", why: lost.reason };
      const { writing } = this.#term;
      if (writing === undefined) return await this.#term.write((row, trying) => renew(this.#session, row, trying));
      const outcome = await writing.done;
      // If the lease was left meanwhile, its last write is that of its exit.
      if (!writing.hasData || outcome.kind !== "unknown" || this.#term.isOver) return outcome;
    }
  }

  /** Like {@link renew}, but it rejects if the row was not renewed. @throws the loss, or why the renewal got no answer. */
  async extend(): Promise<void> {
    this.#throwIfNotRenewed(await this.renew());
  }

  /**
   * Renews with other data. The caller has waited until no write is in flight, and has renewed after a failure: the table
   * may not take the data, however often they are sent, and that must not cost the lease. For the same reason the second half of
   * the time that is left is for a renewal without them.
   * @throws the loss, why the table has refused the data, or that it has not answered.
   */
  async replaceData(data: LockData): Promise<void> {
    const { lost, deadline } = this.#term;
    if (lost !== undefined) throw lost;
    this.mayHaveData = true;
    const giveUpAt = (this.#session.clock.atMost() + deadline) / 2;
    const send = (row: RowLease, trying: Trying) => renew(this.#session, row, trying, data);
    this.#throwIfNotRenewed(await this.#term.write(send, { until: () => giveUpAt, hasData: true }));
  }

  /**
   * Renews the lease before a section relies on it, if the take was slow and half of the lease is gone, or too little is left for the
   * period of a rate. @returns whether it stands.
   *
   * @param bid of the call that the lease is for: the renewal is a request of its try, and is tried for no longer than that allows. It
   * hears of it if the lease does not stand because the table has not answered.
   * @param mayLapse whether the lease may have been over for a moment. Nobody else has taken a row that is still ours, but an
   * observer may have acted on the end of its lease. So the row gets a new uuid: a uuid whose lease was over is never used again.
   */
  async secure(
    bid: Pick<Bid, "withdrawn" | "requestEnds" | "requestFailed">,
    { mayLapse }: { readonly mayLapse: boolean } = { mayLapse: true },
  ): Promise<boolean> {
    if (this.#term.writing === undefined && this.#isReady) return true;
    const outcome = await this.#secure({ until: bid.requestEnds(), endSignal: bid.withdrawn }, mayLapse);
    if (outcome.kind === "unknown" && !(outcome.cause instanceof NotSent) && !bid.withdrawn.aborted)
      bid.requestFailed(outcome.cause);
    return outcome.kind === "ok";
  }

  /** Whether enough of the lease is left for a section to rely on it. */
  get #isReady(): boolean {
    const { stands, row } = this.#term;
    return stands && !isHalfGone(this.#session, row) && coversPeriod(this.#session, row);
  }

  async #secure({ until, endSignal }: Trying, mayLapse: boolean): Promise<Outcome> {
    const session = this.#session;
    const { clock } = session;
    // A writer that has waited for readers may have a renewal in flight, which is tried for longer than its call waits.
    if (this.#term.writing !== undefined) {
      const mostMs = until() - clock.atMost();
      await answeredWithin(clock, mostMs, this.#term.endWriting());
      if (this.#term.writing !== undefined) return { kind: "unknown", cause: noAnswer(mostMs) };
    }
    const { row, lastFailure } = this.#term;
    const tryingUntil = (end: number): Trying => ({ endSignal, until: () => Math.min(end, until()) });
    const expired = { kind: "lost", why: "expired" } as const;
    let ended: Outcome = lastFailure === undefined ? expired : { kind: "unknown", cause: lastFailure };
    if (this.#term.stands) {
      if (this.#isReady) return { kind: "ok" };
      const { usableUntil } = this.#term;
      const renewed = await renew(session, row, tryingUntil(usableUntil));
      this.#term.row = renewed.lease;
      if (renewed.kind === "lost") return renewed;
      // The process may have been suspended: then an answer may be handled before the timer that bounds its request.
      if (clock.atMost() < usableUntil && coversPeriod(session, renewed.lease)) return { kind: "ok" };
      if (renewed.kind === "unknown") ended = renewed;
    }
    if (!mayLapse) return ended;
    const { ttlMs, safetyMarginMs } = row.settings;
    const reissued = await reissue(session, this.#term.row, tryingUntil(clock.atMost() + ttlMs - safetyMarginMs));
    this.#term.row = reissued.lease;
    if (reissued.kind === "unknown" && reissued.cause instanceof NotSent) return ended;
    if (reissued.kind !== "ok") return reissued;
    return this.#term.stands && coversPeriod(session, reissued.lease) ? reissued : expired;
  }

  /**
   * Prepares the lease for the next section: by a new uuid if two sections must not share one, by a renewal if half of
   * the lease is gone, and without a request otherwise. @returns whether the lease may be passed on.
   *
   * @param until by when that has to be done, on `atMost`.
   */
  async renewForNext(until: number): Promise<boolean> {
    const { settings } = this.#term;
    const mustReissue = this.#usage === "guarded" || (this.#usage === "used" && settings.fencing);
    if (!mustReissue && !isHalfGone(this.#session, this.#term.row)) return this.#term.stands;
    // No other write begins meanwhile: the timer is off, and the section's own calls are over.
    await answeredWithin(this.#session.clock, until - this.#session.clock.atMost(), this.#term.endWriting());
    if (this.#term.writing !== undefined || !this.#term.stands) return false;
    const giveUpAt = Math.min(until, this.#term.usableUntil);
    const write = mustReissue ? reissue : renew;
    const send = (row: RowLease, trying: Trying) => write(this.#session, row, trying);
    const { kind } = await this.#term.write(send, { until: () => giveUpAt, isReissue: mustReissue });
    if (mustReissue && kind === "ok") this.#usage = "reissued";
    return kind === "ok" && this.#term.stands;
  }

  /**
   * The guard: a condition that ties the section's own writes to the lease. A late copy of such a write must not be applied under
   * the next section, so the lease changes its uuid between the two. @throws why a renewal that the guard needs has failed.
   */
  async guard(): Promise<Check> {
    this.#usage = "guarded";
    for (;;) {
      const guard = guardOf(this.#term.row);
      if (guard !== undefined) return guard;
      await this.extend();
    }
  }

  /** In how many ms the next renewal is due. Counted from the lease's end: a lease may be shorter than `ttlMs`. */
  #dueIn(): number {
    const { validUntil, settings } = this.#term.row;
    return Math.max(0, validUntil - (settings.ttlMs - settings.renewEveryMs) - this.#session.clock.atMost());
  }

  #arm(ms: number): void {
    const gridMs = this.#term.row.settings.renewEveryMs / MOMENTS_PER_PERIOD;
    this.#term.renewIn(ms, () => void this.#renewOnTime(), gridMs);
  }

  /** Never rejects. */
  async #renewOnTime(): Promise<void> {
    const { validUntil, settings } = this.#term.row;
    const { kind } = await this.renew();
    if (kind === "lost" || !this.#term.held || (this.haveServed && !settings.autoRenew)) return;
    const isLonger = kind === "ok" && this.#term.row.validUntil > validUntil;
    this.#arm(Math.max(isLonger ? 0 : RENEW_AGAIN_MS, this.#dueIn()));
  }

  #throwIfNotRenewed(outcome: Outcome): void {
    if (outcome.kind === "lost") throw this.#term.lost ?? lossOf(this.#term.row, outcome.why);
    if (outcome.kind === "unknown") throw outcome.cause;
  }
}
