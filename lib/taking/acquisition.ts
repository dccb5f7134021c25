import { publish } from "../diagnostics.js";
import { LockLostError, LockStoreError, type LossReason } from "../errors.js";
import type { LockData, LockInfo } from "../lock-info.js";
import type { MutexSettings } from "../options/mutex.js";
import type { Address } from "../protocol/addresses.js";
import type { HandOff } from "../protocol/hand-off.js";
import { leaseEnd, stamp } from "../protocol/lease-time.js";
import { infoOf, type Memory, type Row } from "../protocol/row.js";
import { isStillHeldBy, wasApplied } from "../protocol/was-applied.js";
import type { Check, RecordSuccess, Renew, RowAfterRelease, Transfer, Vacate } from "../protocol/writes.js";
import { Copies, firstTimeoutMs, persist } from "../session/requests.js";
import { isTransient } from "../session/retry.js";
import type { Session } from "../session/session.js";
import type { WriteOutcome } from "../store.js";
import { boundsOf } from "../time/clock.js";
import type { Release, Stamping, Taken, TakeoverRule, Target, Trying } from "./taken.js";

/** A write that stamps, and when its first copy left, on `atMost`. */
interface Sent {
  readonly write: Renew | Transfer;
  readonly at: number;
}

/** The answer to a release or to the record of a success, and whether that write or an earlier copy of it was applied. */
interface Settled {
  readonly outcome: WriteOutcome;
  readonly applied: ReturnType<typeof wasApplied>;
}

/**
 * One acquisition of a row, a lock's or a place's, as its holder writes it. Every renewal and reissue moves `expires` forward.
 * What is known to be on the row decides until when the row is certainly ours.
 */
export class Acquisition {
  readonly at: Address;
  readonly settings: MutexSettings;
  /** When it was taken, on the table's clock, for people. */
  readonly acquired: number;
  readonly tick: number | undefined;
  readonly attempt: number | undefined;
  /** Whether the run of its tick has begun. If not, the release takes the number of that run back. */
  hasBegun = false;
  readonly takeover: TakeoverRule | undefined;
  readonly permits: number | undefined;
  readonly remembers: Memory;
  readonly #session: Session;
  readonly #namedHold: number | undefined;
  /** The uuid of the take. */
  readonly #takenAs: string;
  #uuid: string;
  #fence: bigint | undefined;
  /** A uuid that a reissue without an answer may have put on the row. */
  #uncertainUuid: string | undefined;
  /** The first stamp under this uuid. */
  #firstStamp: number;
  /** The stamp that is known to be on the row. */
  #expires: number;
  /** The latest stamp that was ever sent: the next one lies after it. */
  #lastStamp: number;
  #end: number;
  #data: LockData | undefined;
  #mayHaveData: boolean;

  constructor(session: Session, { at, settings, permits }: Target, taken: Taken) {
    this.at = at;
    this.settings = settings;
    this.permits = permits;
    this.acquired = taken.acquired;
    this.tick = taken.tick;
    this.attempt = taken.attempt;
    this.takeover = taken.takeover;
    this.remembers = taken.remembers;
    this.#session = session;
    this.#data = taken.data;
    this.#mayHaveData = taken.data !== undefined;
    this.#namedHold = taken.namedHold;
    [this.#takenAs, this.#uuid] = [taken.uuid, taken.uuid];
    this.#fence = taken.fence;
    [this.#firstStamp, this.#expires, this.#lastStamp] = [taken.expires, taken.expires, taken.expires];
    this.#end = this.#endOf(taken);
  }

  get uuid(): string {
    return this.#uuid;
  }

  /** The uuids that the row may have: of a reissue without an answer, and of a late copy of the take. */
  get uuids(): readonly string[] {
    const known = [this.#takenAs, this.#uuid];
    return this.#uncertainUuid === undefined ? known : [...known, this.#uncertainUuid];
  }

  /** The fencing token that goes with the uuid, on a fenced mutex. */
  get fence(): bigint | undefined {
    return this.#fence;
  }

  get expires(): number {
    return this.#expires;
  }

  /** Until when the row is certainly ours, on `atMost`, as known when its stamp was confirmed; not reduced by the safety margin. */
  get end(): number {
    return this.#end;
  }

  /** Whether less than half is left of the time for which a new lease may be relied on. */
  get isHalfGone(): boolean {
    const { ttlMs, safetyMarginMs } = this.settings;
    return this.#end - safetyMarginMs - this.#session.clock.atMost() < (ttlMs - safetyMarginMs) / 2;
  }

  /** The condition that the row fulfils as long as it is ours; undefined before the first renewal under its uuid. */
  get guard(): Check | undefined {
    if (this.#expires <= this.#firstStamp) return undefined;
    return { kind: "check", at: this.at, uuid: this.#uuid, after: this.#firstStamp, fence: this.#fence };
  }

  /** What is known to be on the row, for people. */
  get info(): LockInfo {
    const { at, uuid, acquired, expires, data, tick, attempt, settings } = this;
    const due = attempt === undefined ? undefined : tick;
    const { owner } = this.#session;
    return infoOf({ ...at, uuid, owner, acquired, expires, ttlMs: settings.ttlMs, data, tick, due, attempt });
  }

  /** The caller's attributes that are known to be on the row. */
  get data(): LockData | undefined {
    return this.#data;
  }

  /** Whether the row carries data of its section, or may: such a lease serves that section alone. */
  get mayHaveData(): boolean {
    return this.#mayHaveData;
  }

  /**
   * Stamps a later `expires`, and replaces the data, if given. The caller sends one at a time. Without data, any failure is
   * retried: credentials may be refreshed, a table may come back. With data it may be the data that the table refuses.
   */
  async renew(trying: Trying, data?: LockData): Promise<Stamping> {
    this.#mayHaveData ||= data !== undefined;
    const { at, uuid, remembers } = this;
    const retried = data === undefined ? { ...trying, worthRetrying: () => true } : trying;
    const stamping = await this.#stamp(retried, (expires) => ({ kind: "renew", at, uuid, expires, data, remembers }));
    if (stamping.kind === "stamped" && data !== undefined) this.#data = data;
    return stamping;
  }

  /**
   * Gives the row a new uuid and, on a fenced mutex, the next token, for a section that must share neither with the
   * one before. Like a renewal, it stamps a later `expires`.
   */
  reissue(trying: Trying): Promise<Stamping> {
    return this.#transfer({ kind: "reissue", uuid: this.#session.uuid(), fenced: this.settings.fencing }, trying);
  }

  /** Gives the row the uuid of a hand-off, and a lease of that length. */
  transfer(handOff: HandOff, ttlMs: number, trying: Trying): Promise<Stamping> {
    const { uuid } = handOff;
    const { owner } = this.#session;
    const after = this.#firstStamp;
    return this.#transfer({ kind: "transfer", uuid, after, ttlMs, owner, fenced: false, handOff }, trying);
  }

  /**
   * Removes the uuid from the row, if it is still ours. Retried after any failure until `until`. It never throws: a
   * failed release is reported on the diagnostics channel, and the lease ends by itself.
   */
  async release(
    until: () => number = this.#attemptEnd(),
    leaves: RowAfterRelease = { kind: "free" },
  ): Promise<Release> {
    const released = await this.#vacate(this.#uuid, until, leaves);
    const uncertain = this.#uncertainUuid;
    if (uncertain === undefined) return released;
    if (released.kind === "refused" && !isStillHeldBy(uncertain, released.row)) return released;
    // A reissue without an answer was applied before this release, or may have been. If it arrives after the release of the
    // uuid that it replaces, it is refused.
    const other = await this.#vacate(uncertain, until, leaves);
    return other.kind === "refused" ? { kind: "released" } : other;
  }

  /**
   * Records that the run of its tick has succeeded. Retries until the table has confirmed it, at most until `until`.
   * @throws {@link LockStoreError} if it was not recorded, or if that is not known. A channel tells so as well.
   */
  async record(until: () => number): Promise<void> {
    const { at, tick, attempt } = this;
    if (tick === undefined || attempt === undefined) return;
    let cause: unknown;
    let isKnown = false;
    try {
      const { outcome, applied } = await this.#settle({ kind: "record", at, uuid: this.#uuid, tick, attempt }, until);
      if (outcome.kind === "applied" || applied === "yes") return;
      isKnown = applied === "no";
      cause = this.loss(this.reasonOf(outcome.row));
    } catch (error) {
      cause = error;
    }
    publish("dynamutex:not-recorded", { name: at.name, uuid: this.#uuid, tick, attempt, isKnown, cause });
    const what = isKnown
      ? "its success was not recorded: the next host that asks runs it again"
      : "it is not known whether its success was recorded: if it was not, the next host that asks runs it again";
    const run = `Lock ${JSON.stringify(at.name)}: attempt ${attempt} at tick ${tick} ran to its end`;
    throw new LockStoreError(`${run}, and ${what}`, { cause });
  }

  loss(reason: LossReason, cause?: unknown): LockLostError {
    return new LockLostError(this.at.name, this.#uuid, reason, cause === undefined ? undefined : { cause });
  }

  /** Why the lease was lost, judged by the row that refused the write, or by its absence. */
  reasonOf(row: Row | undefined): LossReason {
    if (row === undefined) return "deleted";
    if (row.uuid !== undefined) return "stolen";
    // Without a uuid, the row still shows its last holder. If that is us, it was unlocked by force, for we have not
    // released it. Its `expires` proves nothing: a renewal whose reply was lost may have moved it.
    return row.acquired === this.acquired && row.owner === this.#session.owner ? "forced" : "stolen";
  }

  /** After a write without an answer the row may have either uuid: the release tries both. */
  async #transfer(use: Omit<Transfer, "at" | "from" | "expires" | "remembers">, trying: Trying): Promise<Stamping> {
    const { at, remembers } = this;
    const from = this.#uuid;
    const make = (expires: number): Transfer => ({ ...use, at, from, expires, remembers });
    const stamping = await this.#stamp(trying, make, use.ttlMs);
    if (stamping.kind === "unanswered") this.#uncertainUuid = use.uuid;
    return stamping;
  }

  /**
   * Sends a write that stamps a later `expires`. A lease with a length of its own, `ownMs`, may get an earlier one. The stamp is
   * chosen, and the stopwatch read, as the first copy leaves.
   */
  async #stamp(
    trying: Trying & { readonly worthRetrying?: () => boolean },
    make: (expires: number) => Renew | Transfer,
    ownMs?: number,
  ): Promise<Stamping> {
    const { agenda, clock, store } = this.#session;
    const { ttlMs } = this.settings;
    const copies = new Copies();
    const persistence = {
      ...trying,
      kind: "renewal",
      firstTimeoutMs: firstTimeoutMs(ttlMs),
      sleep: agenda.sleep,
    } as const;
    let sent: Sent | undefined;
    let outcome: WriteOutcome;
    try {
      outcome = await persist(this.#session, persistence, (signal) => {
        if (sent === undefined) {
          const [length, last] = ownMs === undefined ? [ttlMs, this.#lastStamp] : [ownMs, 0];
          const expires = stamp(boundsOf(clock), length, last);
          this.#lastStamp = expires;
          // Read the stopwatch before the first copy leaves: a watcher may count the ttl from there.
          sent = { write: make(expires), at: clock.atMost() };
        }
        return copies.count(store.write(sent.write, signal));
      });
    } catch (cause) {
      return { kind: "unanswered", cause };
    }
    return this.#judge(sent as Sent, outcome, copies);
  }

  #judge({ write, at: sentAt }: Sent, outcome: WriteOutcome, copies: Copies): Stamping {
    if (outcome.kind === "refused") {
      const { row } = outcome;
      const applied = wasApplied(write, row, { earlierCopyUnanswered: outcome.retried || copies.sent > 1 });
      if (applied === "maybe") {
        const message = `Lock ${JSON.stringify(this.at.name)} may have been handed off: its row has another holder by now, or is gone`;
        return { kind: "unanswered", cause: new LockStoreError(message) };
      }
      if (applied === "no") {
        if (!isStillHeldBy(this.#uuid, row)) return { kind: "refused", reason: this.reasonOf(row) };
        const cause = new LockStoreError(`The row of ${this.at.name} carries a stamp that its holder never sent`);
        return { kind: "unanswered", cause };
      }
    }
    if (outcome.kind === "applied" && outcome.replaced?.wanted !== undefined)
      this.#session.contended().sees(outcome.replaced);
    if (write.kind !== "renew") {
      this.#firstStamp = write.expires;
      this.#uuid = write.uuid;
      if (write.fenced) this.#fence = outcome.kind === "applied" ? outcome.drawn : outcome.row?.fence;
    }
    this.#expires = write.expires;
    // A later stamp never ends the lease sooner, not even if the reply's `Date` contradicts what was known when the lease began.
    this.#end = Math.max(this.#end, this.#endOf({ expires: write.expires, sentAt }));
    return { kind: "stamped" };
  }

  async #vacate(uuid: string, until: () => number, leaves: RowAfterRelease): Promise<Release> {
    const { at, remembers } = this;
    const attempt = this.attempt === undefined || this.hasBegun ? undefined : this.attempt - 1;
    const write: Vacate = { kind: "vacate", at, uuid, leaves: this.#unlikeNamed(leaves), remembers, attempt };
    let answer: Settled;
    try {
      answer = await this.#settle(write, until);
    } catch (cause) {
      this.#releaseFailed(uuid, cause);
      return { kind: "unanswered" };
    }
    const { outcome, applied } = answer;
    if (outcome.kind === "applied") {
      if (outcome.replaced !== undefined) this.#session.contended().sees(outcome.replaced);
      return { kind: "released" };
    }
    return applied === "no" ? { kind: "refused", row: outcome.row } : { kind: "released" };
  }

  /** Sends a release or the record of a success, and retries after any failure. @throws the failure of the last attempt. */
  async #settle(write: Vacate | RecordSuccess, until: () => number): Promise<Settled> {
    const { store } = this.#session;
    const copies = new Copies();
    const ms = firstTimeoutMs(this.settings.ttlMs);
    const persistence = { kind: "release", until, firstTimeoutMs: ms, worthRetrying: () => true } as const;
    const outcome = await persist(this.#session, persistence, (signal) => copies.count(store.write(write, signal)));
    if (outcome.kind === "applied") return { outcome, applied: "yes" };
    // A copy that was throttled counts as well: the network may have delivered it twice.
    const earlierCopyUnanswered = outcome.retried || copies.sent > 1;
    return { outcome, applied: wasApplied(write, outcome.row, { earlierCopyUnanswered }) };
  }

  /**
   * A take names a row without a holder by its `expires`. If the hold that we leave had the same `expires`, a late copy of the
   * take would match it: so the hold ends a millisecond later.
   */
  #unlikeNamed(leaves: RowAfterRelease): RowAfterRelease {
    if (leaves.kind !== "held" || leaves.expires !== this.#namedHold) return leaves;
    return { ...leaves, expires: leaves.expires + 1 };
  }

  #releaseFailed(uuid: string, cause: unknown): void {
    const { name } = this.at;
    publish("dynamutex:release-failed", { name, uuid, cause });
    if (isTransient(cause)) return;
    // A failure that is not transient, such as a missing permission, would otherwise only show as slow locks.
    process.emitWarning(`${JSON.stringify(name)} was not released: ${cause}`, "DynamutexWarning");
  }

  #attemptEnd(): () => number {
    const end = this.#session.clock.atMost() + firstTimeoutMs(this.settings.ttlMs);
    return () => end;
  }

  /** @param sentAt when the first copy of the write that made the stamp left, on `atMost`. */
  #endOf({ expires, sentAt }: Pick<Taken, "expires" | "sentAt">): number {
    const { clock } = this.#session;
    const [bounds, atMost] = [clock.wall(), clock.atMost()];
    return leaseEnd({ expires, ttlMs: this.settings.ttlMs, sentAt, bounds, atMost });
  }
}
