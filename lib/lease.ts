import { publish } from "./diagnostics.js";
import { LockError, LockLostError, type LossReason } from "./errors.js";
import type { Grant, Target } from "./grant.js";
import type { Host } from "./host.js";
import type { LockData } from "./lock-info.js";
import type { LossSignal } from "./loss-signal.js";
import type { MutexSettings } from "./options.js";
import { releaseRow } from "./release.js";
import { persist } from "./retry.js";
import { attemptMs, isFarTooLate, leaseEnd, stampNow } from "./stamp.js";
import type { Row, WriteOutcome } from "./store.js";

/** What one renewal came to. After `unknown` the old deadline still bounds us. */
export type Renewal =
  | { readonly kind: "renewed" }
  | { readonly kind: "lost"; readonly error: LockLostError }
  | { readonly kind: "unknown"; readonly cause: unknown };

/** How soon an unanswered renewal is tried afresh. */
const RENEW_AGAIN_MS = 50;

/**
 * Keeps one acquisition: renews its row, knows until when it may be relied on, and tells when it may not.
 *
 * 1. Every `renewEveryMs`, counted from when the last renewal was sent, a renewal stamps a later `expires`.
 * 2. A reply moves the deadline to `leaseEnd` less the safety margin. No reply leaves it where it was.
 * 3. At the deadline, or when a refusal shows another holder, the lease is lost, once and for ever.
 * 4. `release()` stops the renewing, waits for one that is under way, and deletes the row where it is still ours.
 */
export class Lease {
  readonly name: string;
  readonly acquired: number;
  readonly data: LockData | undefined;
  readonly #host: Host;
  readonly #target: Target;
  readonly #kept: boolean;
  /** When the present section has held for `maxHoldMs`, on `atMost`. */
  #holdEnds: number;
  #uuid: string;
  /** The stamp that is known to be on the row. */
  #expires: number;
  /** The latest stamp that was ever sent: the next one lies after it. */
  #lastStamp: number;
  /** When the request that made the current stamp was first sent, on `atMost`. */
  #sentAt: number;
  /** Until when the row is certainly ours, on `atMost`; the safety margin is off it already. */
  #leaseEnds: number;
  /** Told of the loss: the section that runs at that moment. */
  #section: LossSignal | undefined;
  #onLost: () => void = () => undefined;
  /** Whether somebody counts on the lease: from the hand-out until the release begins. */
  #isRelied = false;
  #lost: LockLostError | undefined;
  #released: Promise<void> | undefined;
  #renewing: { readonly done: Promise<Renewal>; readonly enough: AbortController } | undefined;
  #lastFailure: unknown;
  #cancelDeadline: (() => void) | undefined;
  #cancelRenewal: (() => void) | undefined;

  constructor(host: Host, target: Target, grant: Grant) {
    this.#host = host;
    this.#target = target;
    this.name = target.name;
    this.acquired = grant.acquired;
    this.data = grant.data;
    this.#uuid = grant.uuid;
    this.#kept = grant.kept;
    this.#expires = grant.expires;
    this.#lastStamp = grant.expires;
    this.#sentAt = grant.sentAt;
    this.#holdEnds = grant.sentAt + target.settings.maxHoldMs;
    this.#leaseEnds = this.#endFor(grant.expires, grant.sentAt);
  }

  get settings(): MutexSettings {
    return this.#target.settings;
  }

  get uuid(): string {
    return this.#uuid;
  }

  get expires(): number {
    return this.#expires;
  }

  /** The loss, which is looked for whenever somebody asks, because a blocked event loop runs no timers. */
  get lost(): LockLostError | undefined {
    if (this.#isRelied && this.#lost === undefined && this.#host.clock.atMost() >= this.#deadline) {
      this.#lose(this.#leaseEnds >= this.#holdEnds ? "max-hold" : "expired", this.#lastFailure);
    }
    return this.#lost;
  }

  get held(): boolean {
    return this.#isRelied && this.lost === undefined;
  }

  get remainingMs(): number {
    return this.held ? Math.max(0, this.#deadline - this.#host.clock.atMost()) : 0;
  }

  /**
   * Makes the first stamp good before anybody relies on it: one that was guessed far too late is corrected under
   * a fresh uuid; a lease of which half is gone already, or that a slow clock stamped into the past, is renewed.
   * @returns whether the lease stands.
   */
  async secure(grant: Grant): Promise<boolean> {
    const { clock } = this.#host;
    const { ttlMs, safetyMarginMs } = this.#target.settings;
    if (grant.guessed && isFarTooLate(clock, this.#expires, ttlMs) && !(await this.#correct())) return false;
    if (this.isHalfGone) {
      const until = clock.atMost() + ttlMs - safetyMarginMs;
      await this.#sendRenewal(undefined, () => until);
    }
    return this.#lost === undefined && clock.atMost() < this.#deadline;
  }

  /** Whether less than half of the lease is left. */
  get isHalfGone(): boolean {
    const { ttlMs, safetyMarginMs } = this.#target.settings;
    return this.#leaseEnds + safetyMarginMs - this.#host.clock.atMost() < ttlMs / 2;
  }

  /** From here on somebody relies on the lease: it is renewed, and its deadline watched. */
  keep(onLost: () => void = () => undefined): void {
    this.#isRelied = true;
    this.#onLost = onLost;
    this.#host.hold(this);
    this.#armDeadline();
    if (this.#target.settings.autoRenew) this.#armRenewal(this.#renewalDueIn());
  }

  /** A section begins: the first on this lease, or the next that it is passed on to. */
  begin(section: LossSignal): void {
    this.#section = section;
    this.#holdEnds = this.#host.clock.atMost() + this.#target.settings.maxHoldMs;
    if (this.#isRelied) this.#armDeadline();
  }

  /** Renews now, or joins the renewal that is under way. */
  async renew(): Promise<Renewal> {
    const { lost } = this;
    if (lost !== undefined) return { kind: "lost", error: lost };
    if (this.#renewing !== undefined) return await this.#renewing.done;
    const enough = new AbortController();
    const done = this.#sendRenewal(enough.signal, () => this.#deadline).finally(() => {
      this.#renewing = undefined;
    });
    this.#renewing = { done, enough };
    return await done;
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
      const released = lost === undefined ? this.#releaseHeld() : this.#releaseLost(lost);
      this.#released = released.finally(() => this.#host.drop(this));
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

  async #sendRenewal(enough: AbortSignal | undefined, until: () => number): Promise<Renewal> {
    const { store, clock, random } = this.#host;
    const { ttlMs } = this.#target.settings;
    const { expires } = stampNow(clock, ttlMs, this.#lastStamp);
    this.#lastStamp = expires;
    // Read the stopwatch before the first copy leaves: a watcher may count the ttl from there.
    const sentAt = clock.atMost();
    const request = { name: this.name, uuid: this.#uuid, expires };
    const persistence = {
      until,
      attemptMs: attemptMs(ttlMs),
      enough,
      // Whatever the failure, the lease is all we have to lose by trying again: credentials come back, tables too.
      worthRetrying: () => true,
      onFailure: (cause: unknown) => this.#renewalFailed(cause),
      random,
    };
    let outcome: WriteOutcome;
    try {
      outcome = await persist(clock, persistence, (signal) => store.renew(request, signal));
    } catch (cause) {
      const { lost } = this;
      return lost === undefined ? { kind: "unknown", cause } : { kind: "lost", error: lost };
    }
    return this.#judgeRenewal(outcome, expires, sentAt);
  }

  #judgeRenewal(outcome: WriteOutcome, expires: number, sentAt: number): Renewal {
    // The refusing row with our uuid and exactly this stamp: an earlier copy got there, its reply was lost.
    const applied = outcome.kind === "applied" || (outcome.row?.uuid === this.#uuid && outcome.row.expires === expires);
    // The deadline may have passed while the request was under way: then no reply brings the lease back.
    const { lost } = this;
    if (lost !== undefined) return { kind: "lost", error: lost };
    if (!applied && outcome.row?.uuid === this.#uuid) {
      return { kind: "unknown", cause: new LockError("LOCK_STAMP", "The row carries a stamp that was not sent") };
    }
    if (!applied) return { kind: "lost", error: this.#lose(reasonOf(outcome.row, this.#expires)) };
    this.#stamped(expires, sentAt);
    return { kind: "renewed" };
  }

  #stamped(expires: number, sentAt: number): void {
    this.#lastFailure = undefined;
    this.#expires = expires;
    this.#sentAt = sentAt;
    this.#leaseEnds = this.#endFor(expires, sentAt);
    if (this.#isRelied) this.#armDeadline();
  }

  /** Replaces a stamp that lies far too late. The fresh uuid keeps late copies and watchers from mixing up the two. */
  async #correct(): Promise<boolean> {
    const { store, clock, random, uuid } = this.#host;
    const { ttlMs } = this.#target.settings;
    const from = { uuid: this.#uuid, expires: this.#expires };
    const to = { uuid: uuid(), expires: stampNow(clock, ttlMs).expires };
    const sentAt = clock.atMost();
    const persistence = { until: () => this.#deadline, attemptMs: attemptMs(ttlMs), random };
    const send = (signal: AbortSignal) => store.restamp(this.name, from, to, signal);
    const outcome = await persist(clock, persistence, send).catch(() => undefined);
    const applied =
      outcome?.kind === "applied" || (outcome?.row?.uuid === to.uuid && outcome.row.expires === to.expires);
    if (!applied) {
      // Either stamp may be on the row. The caller withdraws the one that it knows, we the other.
      this.#host.detach(this.#deleteOnce(to.uuid));
      return false;
    }
    this.#uuid = to.uuid;
    this.#lastStamp = to.expires;
    this.#stamped(to.expires, sentAt);
    return true;
  }

  async #releaseHeld(): Promise<void> {
    const { clock } = this.#host;
    const { releaseWithinMs, safetyMarginMs, ttlMs } = this.#target.settings;
    const giveUpAt = Math.min(clock.atMost() + releaseWithinMs, this.#leaseEnds + safetyMarginMs);
    // Renewal and release never overlap: no further attempt, and the one under way is awaited.
    this.#renewing?.enough.abort();
    await this.#renewing?.done;
    if (this.#lost !== undefined) throw this.#lost;
    const ours = { name: this.name, uuid: this.#uuid, kept: this.#kept, ttlMs };
    const release = await releaseRow(this.#host, ours, giveUpAt);
    // A refusal after the lease ran out while the delete was under way is nobody's fault: the section had ended in time.
    if (release.kind === "refused" && clock.atMost() < this.#leaseEnds) {
      throw this.#lose(reasonOf(release.row, this.#expires));
    }
  }

  /** The section on a lost lease has ended: the row was left alone until now, and goes where it is still ours. */
  async #releaseLost(lost: LockLostError): Promise<void> {
    this.#renewing?.enough.abort();
    await this.#renewing?.done;
    if (lost.reason === "expired" || lost.reason === "max-hold") await this.#deleteOnce(this.#uuid);
    throw lost;
  }

  async #deleteOnce(uuid: string): Promise<void> {
    const { ttlMs } = this.#target.settings;
    const { name } = this;
    await releaseRow(this.#host, { name, uuid, kept: this.#kept, ttlMs }, this.#host.clock.atMost() + attemptMs(ttlMs));
  }

  #lose(reason: LossReason, cause?: unknown): LockLostError {
    if (this.#lost !== undefined) return this.#lost;
    const error = new LockLostError(this.name, this.#uuid, reason, cause === undefined ? undefined : { cause });
    this.#lost = error;
    this.#stopTimers();
    this.#renewing?.enough.abort();
    // A lease that ends before it was handed out is nobody's loss.
    const wasHandedOut = this.#isRelied || this.#released !== undefined;
    if (wasHandedOut) publish("dynamutex:lost", { name: this.name, uuid: this.#uuid, reason, cause });
    this.#section?.abort(error);
    this.#onLost();
    return error;
  }

  #renewalFailed(cause: unknown): void {
    this.#lastFailure = cause;
    publish("dynamutex:renewal-failed", { name: this.name, uuid: this.#uuid, cause });
  }

  #endFor(expires: number, sentAt: number): number {
    const { ttlMs, safetyMarginMs } = this.#target.settings;
    return leaseEnd(this.#host.clock, expires, ttlMs, sentAt) - safetyMarginMs;
  }

  get #deadline(): number {
    return Math.min(this.#leaseEnds, this.#holdEnds);
  }

  #renewalDueIn(): number {
    return Math.max(0, this.#sentAt + this.#target.settings.renewEveryMs - this.#host.clock.atMost());
  }

  #armRenewal(ms: number): void {
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

function reasonOf(row: Row | undefined, ourStamp: number): LossReason {
  if (row === undefined) return "deleted";
  if (row.uuid !== undefined) return "stolen";
  // No uuid, and the lease as we left it or ended at once: that is what `forceUnlock` leaves.
  return row.expires === ourStamp || row.expires === 0 ? "forced" : "stolen";
}
