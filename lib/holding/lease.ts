import { publish } from "../diagnostics.js";
import { LockLostError, type LossReason } from "../errors.js";
import type { LockData } from "../lock-info.js";
import type { MutexSettings } from "../options/mutex.js";
import { Hold } from "../protocol/hold.js";
import { RENEW_AGAIN_MS } from "../session/retry.js";
import type { Host } from "../session/session.js";
import type { Guard, Row } from "../store.js";
import type { Grant, Target } from "../taking/grant.js";
import { HeldRow, type Stamping, type Trying } from "./held-row.js";
import type { LossSignal } from "./loss-signal.js";

/** What one renewal came to. After `unknown` the old deadline still bounds us. */
export type Renewal =
  | { readonly kind: "renewed" }
  | { readonly kind: "lost"; readonly error: LockLostError }
  | { readonly kind: "unknown"; readonly cause: unknown };

/** From how many locks of one process on their renewals are spread. */
const MANY = 16;

/**
 * Keeps one acquisition: renews its row in time, watches until when it may be relied on, and tells when it may not.
 *
 * 1. Every `renewEveryMs`, counted from when the last renewal was sent (sooner where the lease is shorter than `ttlMs`),
 *    a renewal stamps a later `expires`.
 * 2. A reply moves the deadline to the end of the new lease less the safety margin. No reply leaves it where it was.
 * 3. At the deadline, or when a refusal shows another holder, the lease is lost, once and for ever.
 * 4. `release()` stops the renewing, waits for one that is under way, and deletes the row where it is still ours, or leaves it
 *    parked until the end of its hold.
 */
export class Lease {
  readonly acquired: number;
  /** When this process took it, on `atLeast`. */
  readonly takenAt: number;
  /** The tick that it was taken for. */
  readonly tick: number | undefined;
  readonly settings: MutexSettings;
  readonly #host: Host;
  readonly #row: HeldRow;
  #hold: Hold | undefined;
  #data: LockData | undefined;
  #mayHaveData: boolean;
  /** When the present section has held for `maxHoldMs`, on `atMost`. */
  #holdEnds = Number.POSITIVE_INFINITY;
  /** Told of the loss: the section that runs at that moment. */
  #section: LossSignal | undefined;
  #onLost: () => void = () => undefined;
  /** Whether a section counts on the lease: from its beginning until its end. */
  #isRelied = false;
  #wasUsed = false;
  /** Whether no section has run under the present uuid. */
  #isFresh = true;
  /** Whether the section has made a guard. */
  #isGuarded = false;
  #lost: LockLostError | undefined;
  #released: Promise<void> | undefined;
  #renewing: { readonly done: Promise<Renewal>; readonly enough: AbortController } | undefined;
  #cancelDeadline: (() => void) | undefined;
  #cancelRenewal: (() => void) | undefined;

  constructor(host: Host, target: Target, grant: Grant) {
    this.acquired = grant.acquired;
    this.takenAt = host.clock.atLeast();
    this.#data = grant.data;
    this.#mayHaveData = grant.data !== undefined;
    this.tick = grant.tick;
    this.settings = target.settings;
    this.#host = host;
    this.#row = new HeldRow(host, target, grant);
  }

  get name(): string {
    return this.#row.name;
  }

  get uuid(): string {
    return this.#row.uuid;
  }

  get expires(): number {
    return this.#row.expires;
  }

  /** The fencing token of the section that runs, on a fenced mutex. */
  get fence(): bigint | undefined {
    return this.#row.fence;
  }

  /** The caller's attributes that are known to be on the row. */
  get data(): LockData | undefined {
    return this.#data;
  }

  /** Whether the row carries data of its section's, or may do so: such a lease serves one section. */
  get mayHaveData(): boolean {
    return this.#mayHaveData;
  }

  /** The write of the row that is under way, if there is one. */
  get writing(): Promise<unknown> | undefined {
    return this.#renewing?.done;
  }

  /** The loss, which is looked for whenever somebody asks, because a blocked event loop runs no timers. */
  get lost(): LockLostError | undefined {
    if (this.#isRelied && this.#lost === undefined && this.#host.clock.atMost() >= this.#deadline) {
      this.#lose(this.#leaseEnds >= this.#holdEnds ? "max-hold" : "expired", this.#row.lastFailure);
    }
    return this.#lost;
  }

  get held(): boolean {
    return this.#isRelied && this.lost === undefined;
  }

  get remainingMs(): number {
    return this.held ? Math.max(0, this.#deadline - this.#host.clock.atMost()) : 0;
  }

  /** Whether a section may begin on the lease. */
  get stands(): boolean {
    return this.#lost === undefined && this.#released === undefined && this.#host.clock.atMost() < this.#leaseEnds;
  }

  /** Whether the row stays taken when the lease ends: such a lease serves one section. */
  get isHolding(): boolean {
    return this.#hold !== undefined;
  }

  /** From now on the lock stays taken for so long, however soon the lease is released; 0 for no longer than that. */
  holdAtLeast(ms: number): void {
    this.#hold = ms > 0 ? new Hold(this.#host.clock, ms) : undefined;
  }

  /** Whether the first stamp is good as it is, and the lease stands. */
  get isSecure(): boolean {
    return this.#row.isSecure && this.#host.clock.atMost() < this.#leaseEnds;
  }

  /** Makes the first stamp good, before anybody relies on it. @returns whether the lease stands. */
  async secure(): Promise<boolean> {
    const stamping = await this.#row.secure();
    return stamping.kind !== "refused" && this.#host.clock.atMost() < this.#leaseEnds;
  }

  /** From here on the lease is released when the table closes. */
  keep(onLost: () => void = () => undefined): void {
    this.#onLost = onLost;
    this.#host.hold(this);
  }

  /**
   * A section begins, the first on this lease, or the next that it is passed on to: somebody relies on the lease. It is
   * renewed, and its deadline watched.
   */
  begin(section: LossSignal): void {
    this.#isRelied = true;
    this.#section = section;
    this.#holdEnds = this.#host.clock.atMost() + this.settings.maxHoldMs;
    this.#armDeadline();
    if (this.settings.autoRenew) this.#armRenewal(this.#renewalDueIn() * (this.#wasUsed ? 1 : this.#spread()));
    this.#wasUsed = true;
    this.#isFresh = false;
  }

  /** The section is over, in time. Until the next one begins nobody relies on the lease, so nobody loses it. */
  endSection(): void {
    this.#isRelied = false;
    this.#section = undefined;
    this.#stopTimers();
  }

  /**
   * Makes the lease good for the next section: by a fresh uuid where two sections must not share one, by a renewal where
   * half of the lease is gone, by no request otherwise.
   *
   * @returns whether the lease may be passed on.
   */
  async renewForNext(): Promise<boolean> {
    const mustReissue = !this.#isFresh && (this.settings.fencing || this.#isGuarded);
    if (!mustReissue && !this.#row.isHalfGone) return this.stands;
    // One write of this row at a time. No other begins meanwhile: the timer is off, and the section's own calls are over.
    this.#renewing?.enough.abort();
    await this.#renewing?.done;
    if (!this.stands) return false;
    const giveUpAt = Math.min(this.#host.clock.atMost() + this.settings.releaseWithinMs, this.#leaseEnds);
    const renewal = await this.#write(
      (trying) => (mustReissue ? this.#row.reissue(trying) : this.#row.renew(trying)),
      () => giveUpAt,
    );
    if (mustReissue && renewal.kind === "renewed") {
      this.#isFresh = true;
      this.#isGuarded = false;
    }
    return renewal.kind === "renewed" && this.stands;
  }

  /** Renews now, or joins the renewal that is under way. */
  async renew(): Promise<Renewal> {
    const { lost } = this;
    if (lost !== undefined) return { kind: "lost", error: lost };
    if (this.#renewing !== undefined) return await this.#renewing.done;
    return await this.#write(
      (trying) => this.#row.renew(trying),
      () => this.#deadline,
    );
  }

  /** @throws {@link LockConfigError} naming what the table could not store. */
  admit(data: LockData): void {
    this.#host.store.admit(data);
  }

  /**
   * Renews now, with other data, which was admitted. Joining a renewal that is under way would lose the data: the caller
   * sees to it that none is.
   */
  async replaceData(data: LockData): Promise<Renewal> {
    const { lost } = this;
    if (lost !== undefined) return { kind: "lost", error: lost };
    this.#mayHaveData = true;
    const renewal = await this.#write(
      (trying) => this.#row.renew(trying, data),
      () => this.#deadline,
    );
    if (renewal.kind === "renewed") this.#data = data;
    return renewal;
  }

  /**
   * What ties writes of the section's own to the lease. Its late writes must not pass under the next section, so the
   * lease changes its uuid between the two.
   *
   * @throws {@link LockLostError} if the lease is lost; the store's error if it could not be renewed first.
   */
  async guard(): Promise<Guard> {
    this.#isGuarded = true;
    for (;;) {
      const { guard } = this.#row;
      if (guard !== undefined) return guard;
      const renewal = await this.renew();
      if (renewal.kind === "lost") throw renewal.error;
      if (renewal.kind === "unknown") throw renewal.cause;
    }
  }

  /** The table has refused a guard: the loss that the next renewal would have found is known now. */
  unguarded(row: Row | undefined): LockLostError {
    return this.lost ?? this.#lose(this.#row.reasonOf(row));
  }

  /**
   * Ends the lease. Every call gets the same answer.
   * @throws {@link LockLostError} if it had been lost before.
   */
  release(): Promise<void> {
    if (this.#released === undefined) {
      const { lost } = this;
      this.#isRelied = false;
      this.#stopTimers();
      this.#released = this.#end(lost);
      // Whoever calls handles it; a lease that only the closing table releases is handled there.
      this.#released.catch(() => undefined);
    }
    return this.#released;
  }

  /** Takes the lease from the section that runs on it, which hears `reason`. */
  async revoke(reason: unknown): Promise<void> {
    const release = this.release();
    this.#section?.abort(reason);
    await release;
  }

  /** Sends the one write of the row that is under way at a time, which everybody else waits for. */
  async #write(send: (trying: Trying) => Promise<Stamping>, until: () => number): Promise<Renewal> {
    const enough = new AbortController();
    const done = this.#judged(send({ until, enough: enough.signal })).finally(() => {
      this.#renewing = undefined;
    });
    this.#renewing = { done, enough };
    return await done;
  }

  async #judged(sent: Promise<Stamping>): Promise<Renewal> {
    const stamping = await sent;
    // The deadline may have passed while the request was under way: then no reply brings the lease back.
    const { lost } = this;
    if (lost !== undefined) return { kind: "lost", error: lost };
    switch (stamping.kind) {
      case "stamped":
        if (this.#isRelied) this.#armDeadline();
        return { kind: "renewed" };
      case "refused":
        return { kind: "lost", error: this.#hasRunOut ? this.#endedBy("expired") : this.#lose(stamping.reason) };
      case "unanswered":
        return { kind: "unknown", cause: stamping.cause };
      default:
        return stamping satisfies never;
    }
  }

  async #end(lost: LockLostError | undefined): Promise<void> {
    try {
      // Renewal and release never overlap: no further attempt, and the one under way is awaited.
      if (this.#renewing !== undefined) {
        this.#renewing.enough.abort();
        await this.#renewing.done;
      }
      await (lost === undefined ? this.#releaseHeld() : this.#releaseLost(lost));
    } finally {
      this.#host.drop(this);
    }
  }

  async #releaseHeld(): Promise<void> {
    const { clock } = this.#host;
    if (this.#lost !== undefined) throw this.#lost;
    const giveUpAt = Math.min(clock.atMost() + this.settings.releaseWithinMs, this.#row.end);
    const release = await this.#row.release(this.#hasRunOut ? undefined : giveUpAt, this.#hold?.rest());
    if (release.kind === "refused" && !this.#hasRunOut) {
      throw this.#lose(this.#row.reasonOf(release.row));
    }
  }

  /** The section on a lost lease has ended: the row was left alone until now, and goes where it is still ours. */
  async #releaseLost(lost: LockLostError): Promise<void> {
    if (lost.reason === "expired" || lost.reason === "max-hold") await this.#row.release(undefined, this.#hold?.rest());
    throw lost;
  }

  /** Over by itself, when no section counted on it any more: that is nobody's loss, whoever has the row since. */
  get #hasRunOut(): boolean {
    return !this.#isRelied && this.#host.clock.atMost() >= this.#leaseEnds;
  }

  #endedBy(reason: LossReason, cause?: unknown): LockLostError {
    return new LockLostError(this.name, this.uuid, reason, cause === undefined ? undefined : { cause });
  }

  #lose(reason: LossReason, cause?: unknown): LockLostError {
    if (this.#lost !== undefined) return this.#lost;
    const { name, uuid } = this;
    const error = this.#endedBy(reason, cause);
    this.#lost = error;
    this.#stopTimers();
    this.#renewing?.enough.abort();
    publish("dynamutex:lost", { name, uuid, reason, cause });
    this.#section?.abort(error);
    this.#onLost();
    return error;
  }

  /** Until when the row is ours, less the margin that covers clocks which run at different rates. */
  get #leaseEnds(): number {
    return this.#row.end - this.settings.safetyMarginMs;
  }

  get #deadline(): number {
    return Math.min(this.#leaseEnds, this.#holdEnds);
  }

  /** Counted from the lease's end: a first stamp that a slow clock guessed makes a shorter lease. */
  #renewalDueIn(): number {
    const { ttlMs, renewEveryMs } = this.settings;
    return Math.max(0, this.#row.end - (ttlMs - renewEveryMs) - this.#host.clock.atMost());
  }

  /**
   * Many locks that were taken at once would be renewed at once for ever. So the first renewal of one among many comes
   * early by chance, and the period keeps them apart from then on.
   */
  #spread(): number {
    return this.#host.holding < MANY ? 1 : 0.5 + this.#host.random() / 2;
  }

  #armRenewal(ms: number): void {
    this.#cancelRenewal?.();
    this.#cancelRenewal = this.#host.clock.alarm(ms, () => {
      this.#host.detach(this.#renewAndArm());
    });
  }

  async #renewAndArm(): Promise<void> {
    const renewal = await this.renew();
    if (renewal.kind === "lost" || !this.held) return;
    this.#armRenewal(Math.max(renewal.kind === "unknown" ? RENEW_AGAIN_MS : 0, this.#renewalDueIn()));
  }

  #armDeadline(): void {
    this.#cancelDeadline?.();
    const ms = Math.max(0, this.#deadline - this.#host.clock.atMost());
    this.#cancelDeadline = this.#host.clock.alarm(Math.ceil(ms), () => {
      // A timer may ring early by a fraction of a millisecond, and must not end the watch.
      if (this.held) this.#armDeadline();
    });
  }

  #stopTimers(): void {
    this.#cancelDeadline?.();
    this.#cancelRenewal?.();
    this.#cancelDeadline = undefined;
    this.#cancelRenewal = undefined;
  }
}
