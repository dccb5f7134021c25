import { publish } from "../diagnostics.js";
import { LockStoreError, type LossReason } from "../errors.js";
import type { LockData } from "../lock-info.js";
import { attemptMs, isFarTooLate, leaseEnd, stampNow } from "../protocol/lease-time.js";
import { type Persistence, persist } from "../session/retry.js";
import type { Host } from "../session/session.js";
import type { Guard, Parking, Row, Sighting, Stamped, WriteOutcome } from "../store.js";
import { withdraw } from "../taking/abandoned-claims.js";
import type { Grant, Target } from "../taking/grant.js";
import { type Release, releaseRow } from "../taking/release.js";

/** What one write of a holder came to. After `unanswered` it may have been applied, or may be yet. */
export type Stamping =
  | { readonly kind: "stamped" }
  | { readonly kind: "refused"; readonly reason: LossReason }
  | { readonly kind: "unanswered"; readonly cause: unknown };

/** How long a write of a holder is tried. */
export interface Trying {
  /** On `atMost`. */
  readonly until: () => number;
  /** Ends the trying: an attempt under way is still awaited. */
  readonly enough?: AbortSignal | undefined;
}

/**
 * The row of one acquisition, as its holder writes it. Every write moves `expires` forward, and what is known to be on
 * the row decides until when it is certainly ours.
 */
export class HeldRow {
  readonly name: string;
  readonly #host: Host;
  readonly #target: Target;
  readonly #kept: boolean;
  readonly #ticked: boolean;
  readonly #replaced: Sighting | undefined;
  readonly #guessed: boolean;
  readonly #acquired: number;
  #uuid: string;
  #fence: bigint | undefined;
  /** A uuid that a write without an answer may have put on the row. */
  #uncertain: string | undefined;
  /** The first stamp under this uuid. */
  #firstStamp: number;
  /** The stamp that is known to be on the row. */
  #expires: number;
  /** The latest stamp that was ever sent: the next one lies after it. */
  #lastStamp: number;
  /** When the request that made the current stamp was first sent, on `atMost`. */
  #sentAt: number;
  #end: number;
  #lastFailure: unknown;

  constructor(host: Host, target: Target, grant: Grant) {
    this.name = target.name;
    this.#host = host;
    this.#target = target;
    this.#uuid = grant.uuid;
    this.#fence = grant.fence;
    this.#kept = grant.kept;
    this.#ticked = grant.ticked;
    this.#replaced = grant.unchanged;
    this.#guessed = grant.guessed;
    this.#acquired = grant.acquired;
    this.#expires = grant.expires;
    this.#firstStamp = grant.expires;
    this.#lastStamp = grant.expires;
    this.#sentAt = grant.sentAt;
    this.#end = this.#endNow();
  }

  get uuid(): string {
    return this.#uuid;
  }

  /** The fencing token that goes with the uuid, on a fenced mutex. */
  get fence(): bigint | undefined {
    return this.#fence;
  }

  get expires(): number {
    return this.#expires;
  }

  /** What the row fulfils as long as it is ours; undefined before the first renewal under its uuid. */
  get guard(): Guard | undefined {
    if (this.#expires <= this.#firstStamp) return undefined;
    return { name: this.name, uuid: this.#uuid, after: this.#firstStamp, fence: this.#fence };
  }

  /** Until when the row is certainly ours, on `atMost`, as known when its stamp was confirmed; without margin. */
  get end(): number {
    return this.#end;
  }

  /** Why the last write got no answer, if it got none. */
  get lastFailure(): unknown {
    return this.#lastFailure;
  }

  /** Stamps a later `expires`, and replaces the data, if given. One at a time: the caller sees to it. */
  async renew(trying: Trying, data?: LockData): Promise<Stamping> {
    let leave: () => void;
    try {
      leave = await this.#host.lanes.enter(this.#end, trying.enough);
    } catch (cause) {
      return { kind: "unanswered", cause };
    }
    try {
      return await this.#sendRenewal(trying, data);
    } finally {
      leave();
    }
  }

  /** Whether the first stamp is good as it is: not guessed far too late, and half of the lease is left. */
  get isSecure(): boolean {
    return !this.#isFarTooLate && !this.isHalfGone;
  }

  get #isFarTooLate(): boolean {
    return this.#guessed && isFarTooLate(this.#host.clock, this.#expires, this.#target.settings.ttlMs);
  }

  /**
   * Makes a first stamp good before anybody relies on it: one that was guessed far too late is corrected; a lease of
   * which half is gone already, or that a slow clock stamped into the past, is renewed.
   */
  async secure(): Promise<Stamping> {
    const { clock } = this.#host;
    const { ttlMs, safetyMarginMs } = this.#target.settings;
    if (this.#isFarTooLate) return await this.#correct();
    if (!this.isHalfGone) return { kind: "stamped" };
    const until = clock.atMost() + ttlMs - safetyMarginMs;
    return await this.renew({ until: () => until });
  }

  /** Whether less than half of the lease is left. */
  get isHalfGone(): boolean {
    return this.#end - this.#host.clock.atMost() < this.#target.settings.ttlMs / 2;
  }

  /**
   * Gives the row a fresh uuid and, on a fenced mutex, the next token, for a section that must share neither with the
   * one before. Like a renewal, it stamps a later `expires`.
   */
  async reissue({ until, enough }: Trying): Promise<Stamping> {
    const { store, clock, random, uuid } = this.#host;
    const { ttlMs, fencing } = this.#target.settings;
    const to = { uuid: uuid(), expires: stampNow(clock, ttlMs, this.#lastStamp).expires };
    this.#lastStamp = to.expires;
    const sentAt = clock.atMost();
    const request = { name: this.name, from: this.#uuid, to, fenced: fencing, ticked: this.#ticked };
    const persistence = { kind: "renewal", until, attemptMs: attemptMs(ttlMs), enough, random } as const;
    try {
      const outcome = await persist(this.#host, persistence, (signal) => store.reissue(request, signal));
      const stamping = this.#judge(outcome, to, sentAt);
      if (stamping.kind === "stamped" && fencing)
        this.#fence = outcome.kind === "applied" ? outcome.fence : outcome.row?.fence;
      return stamping;
    } catch (cause) {
      this.#uncertain = to.uuid;
      return { kind: "unanswered", cause };
    }
  }

  /** Deletes the row where it is still ours; a kept one stays, free; a parked one stays, taken. */
  release(until: number = this.#attemptEnd(), parked?: Parking): Promise<Release> {
    if (this.#uncertain === undefined) return this.#release(this.#uuid, until, parked);
    return this.#releaseEither(this.#uncertain, until, parked);
  }

  async #releaseEither(uncertain: string, until: number, parked?: Parking): Promise<Release> {
    const release = await this.#release(this.#uuid, until, parked);
    if (release.kind === "refused" && release.row?.uuid !== uncertain) return release;
    // A reissue without an answer got there first, or may have. It comes too late after the release of what it replaces.
    const other = await this.#release(uncertain, until, parked);
    return other.kind === "refused" ? { kind: "released" } : other;
  }

  /** What a row says that was not ours any more when it refused us. */
  reasonOf(row: Row | undefined): LossReason {
    if (row === undefined) return "deleted";
    if (row.uuid !== undefined) return "stolen";
    // Without a uuid it is as its last holder left it. If that was us, somebody took our uuid off it: a release would
    // have been our own. Its `expires` would not tell, because a renewal may have got there whose reply was lost.
    return row.acquired === this.#acquired && row.owner === this.#host.owner ? "forced" : "stolen";
  }

  async #sendRenewal({ until, enough }: Trying, data: LockData | undefined): Promise<Stamping> {
    const { store, clock, random } = this.#host;
    const { ttlMs } = this.#target.settings;
    const { expires } = stampNow(clock, ttlMs, this.#lastStamp);
    this.#lastStamp = expires;
    // Read the stopwatch before the first copy leaves: a watcher may count the ttl from there.
    const sentAt = clock.atMost();
    const request = { name: this.name, uuid: this.#uuid, expires, data, ticked: this.#ticked };
    const persistence: Persistence = {
      kind: "renewal",
      until,
      attemptMs: attemptMs(ttlMs),
      enough,
      // Whatever the failure, the lease is all we have to lose by trying again: credentials come back, tables too.
      worthRetrying: () => true,
      onFailure: (cause: unknown) => this.#failed(cause),
      random,
    };
    let outcome: WriteOutcome;
    try {
      outcome = await persist(this.#host, persistence, (signal) => store.renew(request, signal));
    } catch (cause) {
      return { kind: "unanswered", cause };
    }
    return this.#judge(outcome, { uuid: this.#uuid, expires }, sentAt);
  }

  /** Replaces a stamp that lies far too late. The fresh uuid keeps late copies and watchers from mixing up the two. */
  async #correct(): Promise<Stamping> {
    const { store, clock, random, uuid } = this.#host;
    const { ttlMs, safetyMarginMs } = this.#target.settings;
    const from = { uuid: this.#uuid, expires: this.#expires };
    const to = { uuid: uuid(), expires: stampNow(clock, ttlMs).expires };
    const sentAt = clock.atMost();
    const until = this.#end - safetyMarginMs;
    const persistence = { kind: "renewal", until: () => until, attemptMs: attemptMs(ttlMs), random } as const;
    const send = (signal: AbortSignal) => store.restamp(this.name, from, { ...to, ticked: this.#ticked }, signal);
    const outcome = await persist(this.#host, persistence, send).catch(() => undefined);
    if (outcome !== undefined && this.#judge(outcome, to, sentAt).kind === "stamped") return { kind: "stamped" };
    // Either stamp may be on the row, so neither can be relied on. The caller withdraws the one it knows, we the other,
    // which may be on its way still.
    this.#host.detach(withdraw(this.#host, this.#target, { ...to, kept: this.#kept, sentAt }, { certain: false }));
    return { kind: "refused", reason: "expired" };
  }

  #judge(outcome: WriteOutcome, stamp: Stamped, sentAt: number): Stamping {
    if (outcome.kind === "refused") {
      const { row } = outcome;
      // The refusing row with our uuid and exactly this stamp: an earlier copy got there, its reply was lost.
      const applied = row?.uuid === stamp.uuid && row.expires === stamp.expires;
      if (!applied && (row === undefined || row.uuid !== this.#uuid)) {
        return { kind: "refused", reason: this.reasonOf(row) };
      }
      if (!applied) {
        const cause = new LockStoreError(`The row of ${this.name} carries a stamp that its holder never sent`);
        return { kind: "unanswered", cause };
      }
    }
    this.#lastFailure = undefined;
    if (stamp.uuid !== this.#uuid) this.#firstStamp = stamp.expires;
    this.#uuid = stamp.uuid;
    this.#expires = stamp.expires;
    this.#lastStamp = stamp.expires;
    this.#sentAt = sentAt;
    this.#end = this.#endNow();
    return { kind: "stamped" };
  }

  #release(uuid: string, until: number, parking?: Parking): Promise<Release> {
    const { ttlMs } = this.#target.settings;
    const parked = parking && this.#unlikeReplaced(parking);
    const ours = { name: this.name, uuid, kept: this.#kept, ticked: this.#ticked, ttlMs, parked };
    return releaseRow(this.#host, ours, () => until);
  }

  /**
   * A late copy of our claim may ask for the parked row that we took over without a clock, which it knows by its
   * `expires` alone: so ours must end at another millisecond.
   */
  #unlikeReplaced(parked: Parking): Parking {
    const isAlike = this.#replaced?.uuid === undefined && this.#replaced?.expires === parked.expires;
    return isAlike ? { ...parked, expires: parked.expires + 1 } : parked;
  }

  #attemptEnd(): number {
    return this.#host.clock.atMost() + attemptMs(this.#target.settings.ttlMs);
  }

  #endNow(): number {
    return leaseEnd(this.#host.clock, this.#expires, this.#target.settings.ttlMs, this.#sentAt);
  }

  #failed(cause: unknown): void {
    this.#lastFailure = cause;
    publish("dynamutex:renewal-failed", { name: this.name, uuid: this.#uuid, cause });
  }
}
