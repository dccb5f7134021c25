import type { LockData } from "../lock-info.js";
import type { Check } from "../protocol/writes.js";
import type { Session } from "../session/session.js";
import { guardOf, isHalfGone, lossOf, type RowLease } from "../taking/row-lease.js";
import { type Outcome, reissue, renew, type Trying, type Written } from "../taking/row-writes.js";
import type { Wait } from "../taking/wait.js";
import type { LeaseControl } from "./lease-control.js";

/** How a lock's lease and a place's differ: in their diagnostics channels, and in what a close does to them. */
export interface LeaseEvents {
  /** Whether a caller's section runs on the lease. A closing table revokes such a lease, and releases a place. */
  readonly hasSection: boolean;
  renewed(row: RowLease, remainingMs: number): void;
  renewalFailed(row: RowLease, cause: unknown): void;
}

/** What has run under the present uuid: nothing ever, nothing since a reissue, a section, a section with a guard. */
type Usage = "unused" | "reissued" | "used" | "guarded";

/** If a process has this many leases or more, their renewals are spread. */
const MANY = 16;

/** Where renewals leave together, they are due at this many moments in each `renewEveryMs`, and stay on these moments. */
const MOMENTS_PER_PERIOD = 8;

/** How soon a renewal follows one that got no answer, or that did not move the end of the lease. */
const RENEW_AGAIN_MS = 50;

const nothing = (): void => undefined;

/**
 * The renewals of one lease, by a timer and on demand. One write of the row is in flight at a time.
 *
 * 1. Every `renewEveryMs`, counted from when the last renewal was sent (sooner where the lease is shorter than `ttlMs`),
 *    a renewal stamps a later `expires`.
 * 2. A reply moves the end of the lease. No reply leaves it where it was.
 * 3. A refusal shows that the row is not ours: the lease is lost.
 */
export class Renewals {
  readonly #session: Session;
  readonly #lease: LeaseControl;
  readonly #events: LeaseEvents;
  /** Why the last renewal got no answer, if it got none. */
  lastFailure: unknown;
  /** Whether the row carries data of its section, or may: such a lease serves that section alone. */
  mayHaveData: boolean;
  #usage: Usage = "unused";
  #cancelTimer: () => void = nothing;
  #writing: { readonly done: Promise<Outcome>; readonly end: AbortController; readonly hasData: boolean } | undefined;

  constructor(session: Session, lease: LeaseControl, events: LeaseEvents) {
    this.#session = session;
    this.#lease = lease;
    this.#events = events;
    this.mayHaveData = lease.row.data !== undefined;
  }

  /** The write of the row that is in flight. */
  get writing(): Promise<unknown> | undefined {
    return this.#writing?.done;
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
    if (!this.#lease.row.settings.autoRenew) this.stop();
  }

  stop(): void {
    this.#cancelTimer();
  }

  /** Ends the retries of the write in flight. @returns when that write is over, so that no other overlaps with it. */
  async settle(): Promise<void> {
    this.#writing?.end.abort();
    await this.#writing?.done;
  }

  /** Renews now, or joins the renewal in flight. If that fails with the data of a caller, a renewal without them follows. */
  async renew(): Promise<Outcome> {
    for (;;) {
      const { lost } = this.#lease;
      if (lost !== undefined) return { kind: "lost", why: lost.reason };
      if (this.#writing === undefined) return await this.#write((row, trying) => renew(this.#session, row, trying));
      const { done, hasData } = this.#writing;
      const outcome = await done;
      if (!hasData || outcome.kind !== "unknown") return outcome;
    }
  }

  /** Like {@link renew}, but it rejects if the row was not renewed. @throws the loss, or why the renewal got no answer. */
  async extend(): Promise<void> {
    this.#throwIfNotRenewed(await this.renew());
  }

  /**
   * Renews with other data. The caller has waited until no write is {@link writing}, and has renewed after a failure: the table
   * may not take the data, however often they are sent, and that must not cost the lease. For the same reason the second half of
   * the time that is left is for a renewal without them.
   * @throws the loss, why the table has refused the data, or that it has not answered.
   */
  async replaceData(data: LockData): Promise<void> {
    const { lost, deadline } = this.#lease;
    if (lost !== undefined) throw lost;
    this.mayHaveData = true;
    const giveUpAt = (this.#session.clock.atMost() + deadline) / 2;
    const send = (row: RowLease, trying: Trying) => renew(this.#session, row, trying, data);
    this.#throwIfNotRenewed(await this.#write(send, { until: () => giveUpAt, hasData: true }));
  }

  /**
   * Renews the lease before a section relies on it, if the take was slow and half of the lease is gone. @returns whether it stands.
   *
   * @param wait the call that the lease is for: the renewal is tried for no longer than that call waits.
   * @param mayLapse whether the lease may have been over for a moment. Nobody else has taken a row that is still ours, but an
   * observer may have acted on the end of its lease. So the row gets a new uuid: a uuid whose lease was over is never used again.
   */
  async secure(
    wait: Pick<Wait, "endSignal" | "until">,
    { mayLapse }: { readonly mayLapse: boolean } = { mayLapse: true },
  ): Promise<boolean> {
    // A writer that has waited for readers may have a renewal in flight.
    if (this.#writing !== undefined) await this.settle();
    const session = this.#session;
    const { clock } = session;
    const { row } = this.#lease;
    const tryingUntil = (end: number): Trying => ({
      until: () => Math.min(end, wait.until()),
      endSignal: wait.endSignal,
    });
    if (this.#lease.stands) {
      if (!isHalfGone(session, row)) return true;
      const { usableUntil } = this.#lease;
      const renewed = await renew(session, row, tryingUntil(usableUntil));
      this.#lease.row = renewed.lease;
      if (renewed.kind === "lost") return false;
      // The process may have been suspended: then an answer may be handled before the timer that bounds its request.
      if (clock.atMost() < usableUntil) return true;
    }
    if (!mayLapse) return false;
    const { ttlMs, safetyMarginMs } = row.settings;
    const reissued = await reissue(session, this.#lease.row, tryingUntil(clock.atMost() + ttlMs - safetyMarginMs));
    this.#lease.row = reissued.lease;
    return reissued.kind === "ok" && this.#lease.stands;
  }

  /**
   * Prepares the lease for the next section: by a new uuid if two sections must not share one, by a renewal if half of
   * the lease is gone, and without a request otherwise. @returns whether the lease may be passed on.
   */
  async renewForNext(): Promise<boolean> {
    const { settings } = this.#lease;
    const mustReissue = this.#usage === "guarded" || (this.#usage === "used" && settings.fencing);
    if (!mustReissue && !isHalfGone(this.#session, this.#lease.row)) return this.#lease.stands;
    // No other write begins meanwhile: the timer is off, and the section's own calls are over.
    await this.settle();
    if (!this.#lease.stands) return false;
    const giveUpAt = Math.min(this.#session.clock.atMost() + settings.releaseWithinMs, this.#lease.usableUntil);
    const write = mustReissue ? reissue : renew;
    const send = (row: RowLease, trying: Trying) => write(this.#session, row, trying);
    const { kind } = await this.#write(send, { until: () => giveUpAt });
    if (mustReissue && kind === "ok") this.#usage = "reissued";
    return kind === "ok" && this.#lease.stands;
  }

  /**
   * The guard: a condition that ties the section's own writes to the lease. A late copy of such a write must not be applied under
   * the next section, so the lease changes its uuid between the two. @throws why a renewal that the guard needs has failed.
   */
  async guard(): Promise<Check> {
    this.#usage = "guarded";
    for (;;) {
      const guard = guardOf(this.#lease.row);
      if (guard !== undefined) return guard;
      await this.extend();
    }
  }

  /** Sends a write of the row. One is in flight at a time; other callers wait for it. */
  async #write(
    send: (row: RowLease, trying: Trying) => Promise<Written>,
    { until = () => this.#lease.deadline, hasData = false } = {},
  ): Promise<Outcome> {
    const end = new AbortController();
    const { row, usableUntil } = this.#lease;
    const onFailure = (cause: unknown): void => {
      this.lastFailure = cause;
      this.#events.renewalFailed(this.#lease.row, cause);
    };
    const done = this.#judged(send(row, { until, endSignal: end.signal, onFailure }), usableUntil).finally(() => {
      this.#writing = undefined;
    });
    this.#writing = { done, end, hasData };
    return await done;
  }

  /** @param usableUntil when the lease would have ended, as known when the write left. */
  async #judged(sent: Promise<Written>, usableUntil: number): Promise<Outcome> {
    const written = await sent;
    const lease = this.#lease;
    lease.row = written.lease;
    if (written.kind === "ok") this.lastFailure = undefined;
    // The deadline may have passed while the request was in flight: then no reply brings the lease back. If the process was
    // suspended, the reply may be handled before the deadline's timer, and has moved the deadline.
    const isOver = this.#session.clock.atMost() >= usableUntil;
    if (isOver && lease.inUseSince !== undefined) lease.markLost("expired", this.lastFailure);
    const { lost } = lease;
    if (lost !== undefined) return { kind: "lost", why: lost.reason };
    switch (written.kind) {
      case "ok":
        if (isOver) return { kind: "unknown", cause: lossOf(lease.row, "expired") };
        this.#events.renewed(lease.row, lease.deadline - this.#session.clock.atMost());
        lease.renewed();
        return written;
      case "lost":
        return { kind: "lost", why: lease.hasRunOut ? "expired" : lease.markLost(written.why).reason };
      case "unknown":
        return written;
      default:
        return written satisfies never;
    }
  }

  /** In how many ms the next renewal is due. Counted from the lease's end: a lease may be shorter than `ttlMs`. */
  #dueIn(): number {
    const { validUntil, settings } = this.#lease.row;
    return Math.max(0, validUntil - (settings.ttlMs - settings.renewEveryMs) - this.#session.clock.atMost());
  }

  #arm(ms: number): void {
    this.#cancelTimer();
    const gridMs = this.#lease.row.settings.renewEveryMs / MOMENTS_PER_PERIOD;
    this.#cancelTimer = this.#session.agenda.alarm(ms, () => void this.#renewOnTime(), gridMs);
  }

  /** Never rejects. A release waits for it. */
  async #renewOnTime(): Promise<void> {
    const { validUntil, settings } = this.#lease.row;
    const { kind } = await this.renew();
    if (kind === "lost" || !this.#lease.held || (this.haveServed && !settings.autoRenew)) return;
    const isLonger = kind === "ok" && this.#lease.row.validUntil > validUntil;
    this.#arm(Math.max(isLonger ? 0 : RENEW_AGAIN_MS, this.#dueIn()));
  }

  #throwIfNotRenewed(outcome: Outcome): void {
    if (outcome.kind === "lost") throw this.#lease.lost ?? lossOf(this.#lease.row, outcome.why);
    if (outcome.kind === "unknown") throw outcome.cause;
  }
}
