import type { LockLostError } from "../errors.js";
import type { LockData } from "../lock-info.js";
import type { Check } from "../protocol/writes.js";
import type { Session } from "../session/session.js";
import type { Acquisition } from "../taking/acquisition.js";
import type { Stamping, Trying } from "../taking/taken.js";
import type { Wait } from "../taking/wait.js";
import type { LeaseControl } from "./lease-control.js";

/** The outcome of one renewal. After `unknown` the old deadline still bounds us. */
export type Renewal =
  | { readonly kind: "renewed" }
  | { readonly kind: "lost"; readonly error: LockLostError }
  | { readonly kind: "unknown"; readonly cause: unknown };

/** How a lock's lease and a place's differ: in their diagnostics channels, and in what a close does to them. */
export interface LeaseEvents {
  /** Whether a caller's section runs on the lease. A closing table revokes such a lease, and releases a place. */
  readonly hasSection: boolean;
  renewed(row: Acquisition, remainingMs: number): void;
  renewalFailed(row: Acquisition, cause: unknown): void;
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
  #usage: Usage = "unused";
  #cancelTimer: () => void = nothing;
  #writing: { readonly done: Promise<Renewal>; readonly end: AbortController; readonly hasData: boolean } | undefined;

  constructor(session: Session, lease: LeaseControl, events: LeaseEvents) {
    this.#session = session;
    this.#lease = lease;
    this.#events = events;
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
  async renew(): Promise<Renewal> {
    for (;;) {
      const { lost, row } = this.#lease;
      if (lost !== undefined) return { kind: "lost", error: lost };
      if (this.#writing === undefined) return await this.#write((trying) => row.renew(trying));
      const { done, hasData } = this.#writing;
      const renewal = await done;
      if (!hasData || renewal.kind !== "unknown") return renewal;
    }
  }

  /** Like {@link renew}, but it rejects if the row was not renewed. @throws the loss, or why the renewal got no answer. */
  async extend(): Promise<void> {
    throwIfNotRenewed(await this.renew());
  }

  /**
   * Renews with other data. The caller has waited until no write is {@link writing}, and has renewed after a failure: the table
   * may not take the data, however often they are sent, and that must not cost the lease. For the same reason the second half of
   * the time that is left is for a renewal without them.
   * @throws the loss, why the table has refused the data, or that it has not answered.
   */
  async replaceData(data: LockData): Promise<void> {
    const { lost, row, deadline } = this.#lease;
    if (lost !== undefined) throw lost;
    const giveUpAt = (this.#session.clock.atMost() + deadline) / 2;
    const send = (trying: Trying) => row.renew(trying, data);
    throwIfNotRenewed(await this.#write(send, { until: () => giveUpAt, hasData: true }));
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
    const { row } = this.#lease;
    // A writer that has waited for readers may have a renewal in flight.
    if (this.#writing !== undefined) await this.settle();
    const { clock } = this.#session;
    const tryingUntil = (end: number): Trying => ({
      until: () => Math.min(end, wait.until()),
      endSignal: wait.endSignal,
    });
    if (this.#lease.stands) {
      if (!row.isHalfGone) return true;
      const { ends } = this.#lease;
      const stamping = await row.renew(tryingUntil(ends));
      if (stamping.kind === "refused") return false;
      // The process may have been suspended: then an answer may be handled before the timer that bounds its request.
      if (clock.atMost() < ends) return true;
    }
    if (!mayLapse) return false;
    const { ttlMs, safetyMarginMs } = row.settings;
    const stamping = await row.reissue(tryingUntil(clock.atMost() + ttlMs - safetyMarginMs));
    return stamping.kind === "stamped" && this.#lease.stands;
  }

  /**
   * Prepares the lease for the next section: by a new uuid if two sections must not share one, by a renewal if half of
   * the lease is gone, and without a request otherwise. @returns whether the lease may be passed on.
   */
  async renewForNext(): Promise<boolean> {
    const { row } = this.#lease;
    const mustReissue = this.#usage === "guarded" || (this.#usage === "used" && row.settings.fencing);
    if (!mustReissue && !row.isHalfGone) return this.#lease.stands;
    // No other write begins meanwhile: the timer is off, and the section's own calls are over.
    await this.settle();
    if (!this.#lease.stands) return false;
    const giveUpAt = Math.min(this.#session.clock.atMost() + row.settings.releaseWithinMs, this.#lease.ends);
    const send = (trying: Trying) => (mustReissue ? row.reissue(trying) : row.renew(trying));
    const renewal = await this.#write(send, { until: () => giveUpAt });
    if (mustReissue && renewal.kind === "renewed") this.#usage = "reissued";
    return renewal.kind === "renewed" && this.#lease.stands;
  }

  /**
   * The guard: a condition that ties the section's own writes to the lease. A late copy of such a write must not be applied under
   * the next section, so the lease changes its uuid between the two. @throws why a renewal that the guard needs has failed.
   */
  async guard(): Promise<Check> {
    this.#usage = "guarded";
    for (;;) {
      const { guard } = this.#lease.row;
      if (guard !== undefined) return guard;
      await this.extend();
    }
  }

  /** Sends a write of the row. One is in flight at a time; other callers wait for it. */
  async #write(
    send: (trying: Trying) => Promise<Stamping>,
    { until = () => this.#lease.deadline, hasData = false } = {},
  ): Promise<Renewal> {
    const end = new AbortController();
    const { ends } = this.#lease;
    const onFailure = (cause: unknown): void => {
      this.lastFailure = cause;
      this.#events.renewalFailed(this.#lease.row, cause);
    };
    const done = this.#judged(send({ until, endSignal: end.signal, onFailure }), ends).finally(() => {
      this.#writing = undefined;
    });
    this.#writing = { done, end, hasData };
    return await done;
  }

  /** @param ends when the lease would have ended, as known when the write left. */
  async #judged(sent: Promise<Stamping>, ends: number): Promise<Renewal> {
    const stamping = await sent;
    if (stamping.kind === "stamped") this.lastFailure = undefined;
    const lease = this.#lease;
    // The deadline may have passed while the request was in flight: then no reply brings the lease back. If the process was
    // suspended, the reply may be handled before the deadline's timer, and has moved the deadline.
    const isOver = this.#session.clock.atMost() >= ends;
    if (isOver && lease.inUseSince !== undefined) lease.end("expired", this.lastFailure);
    const { lost } = lease;
    if (lost !== undefined) return { kind: "lost", error: lost };
    switch (stamping.kind) {
      case "stamped":
        if (isOver) return { kind: "unknown", cause: lease.row.loss("expired") };
        this.#events.renewed(lease.row, lease.deadline - this.#session.clock.atMost());
        lease.renewed();
        return { kind: "renewed" };
      case "refused":
        return { kind: "lost", error: lease.hasRunOut ? lease.row.loss("expired") : lease.end(stamping.reason) };
      case "unanswered":
        return { kind: "unknown", cause: stamping.cause };
      default:
        return stamping satisfies never;
    }
  }

  /** In how many ms the next renewal is due. Counted from the lease's end: a lease may be shorter than `ttlMs`. */
  #dueIn(): number {
    const { end, settings } = this.#lease.row;
    return Math.max(0, end - (settings.ttlMs - settings.renewEveryMs) - this.#session.clock.atMost());
  }

  #arm(ms: number): void {
    this.#cancelTimer();
    const gridMs = this.#lease.row.settings.renewEveryMs / MOMENTS_PER_PERIOD;
    this.#cancelTimer = this.#session.agenda.alarm(ms, () => void this.#renewOnTime(), gridMs);
  }

  /** Never rejects. A release waits for it. */
  async #renewOnTime(): Promise<void> {
    const { row } = this.#lease;
    const { end } = row;
    const renewal = await this.renew();
    if (renewal.kind === "lost" || !this.#lease.held || (this.haveServed && !row.settings.autoRenew)) return;
    const isLonger = renewal.kind === "renewed" && row.end > end;
    this.#arm(Math.max(isLonger ? 0 : RENEW_AGAIN_MS, this.#dueIn()));
  }
}

function throwIfNotRenewed(renewal: Renewal): void {
  if (renewal.kind === "lost") throw renewal.error;
  if (renewal.kind === "unknown") throw renewal.cause;
}
