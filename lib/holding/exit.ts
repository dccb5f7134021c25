import { LockLostError, LockStoreError } from "../errors.js";
import { type MinimumHold, minimumHold } from "../protocol/lease-time.js";
import type { NamedResult } from "../protocol/writes.js";
import { answeredWithin } from "../session/overdue.js";
import { firstTimeoutMs } from "../session/requests.js";
import { endAfter, isTransient } from "../session/retry.js";
import type { HeldLease, Session } from "../session/session.js";
import { disown, rowAfterRelease, untilGivenBack } from "../taking/abandoned-claims.js";
import { guardOf, type RowLease } from "../taking/row-lease.js";
import { type Releasing, renew, transfer, vacate, type Written } from "../taking/row-writes.js";
import { boundsOf } from "../time/clock.js";
import { uuidOf } from "./hand-off-token.js";
import type { Term } from "./term.js";

/**
 * The time of an end, on `atMost`: one deadline for all that it takes, counted from the call. What may make a release needless,
 * such as passing the lease on, has the first half of it, so that a release has the rest.
 */
export interface Ending {
  readonly halfAt: number;
  /** By when the caller is answered. */
  readonly answerBy: number;
}

/** The ways out of a lease: it is released, given back, or handed off, and only once. */
export class Exit {
  /** The minimum hold: how long the row stays taken after its release. A lease with a hold serves one section. */
  hold: MinimumHold | undefined;
  /** The result of a single flight: the release writes it to the row. */
  result: NamedResult | undefined;
  /** Whether the run of its tick has begun. If not, the release takes back that it is shown as run, and the number of that run. */
  hasBegun = false;
  /** Called when a release is answered which had got no answer in time. */
  onLateRelease: (() => void) | undefined;
  /** That of the section which has ended last. */
  #ending: Ending | undefined;
  readonly #session: Session;
  readonly #lease: Term & HeldLease;
  #exited: Promise<void> | undefined;

  constructor(session: Session, lease: Term & HeldLease) {
    this.#session = session;
    this.#lease = lease;
  }

  /** Sets the minimum hold: the lock stays taken for `ms` from now, however soon the lease is released. 0 means no hold. */
  holdAtLeast(ms: number): void {
    const { clock } = this.#session;
    this.hold = ms > 0 ? minimumHold(ms, clock.atLeast(), boundsOf(clock)) : undefined;
  }

  /** The time of an end that is called for now. A close that makes the release has no more of it. */
  endingNow(): Ending {
    const [now, { releaseWithinMs }] = [this.#session.clock.atMost(), this.#lease.settings];
    this.#ending = { halfAt: now + releaseWithinMs / 2, answerBy: now + releaseWithinMs };
    return this.#ending;
  }

  /**
   * Releases the lease. Every call gets the same answer, by the deadline of the section's end if that has begun: what has got no answer
   * by then goes on in the background. @throws {@link LockLostError} if the lease had been lost before.
   */
  release(): Promise<void> {
    const ending = this.#ending ?? this.endingNow();
    return this.#exited ?? this.#leave(() => this.#release(() => this.#vacateBy(ending, this.#lease.row)));
  }

  /**
   * Gives back a lease on which no section has begun, nor will. A caller of this process that asks the table meanwhile takes its row
   * over, unless it has a hold.
   */
  giveBack(): Promise<void> {
    const { row } = this.#lease;
    disown(this.#session, row, this.hold);
    const until = (): Releasing["until"] =>
      this.#lease.lost?.reason === "expired" ? undefined : untilGivenBack(this.#session, row);
    return this.#exited ?? this.#leave(() => this.#release(() => this.#vacate(this.#lease.row, { until: until() })));
  }

  /**
   * Hands the row off for `validForMs`: the process that gets the secret may resume it. No section relies on the lease any more,
   * whatever the outcome. Without an answer, the row is released under both uuids.
   *
   * @param tick the tick of the section that ends.
   * @returns the secret.
   * @throws {@link LockLostError} if the lease had been lost before. @throws the store's error, which says what became of the row.
   */
  handOff(validForMs: number, tick: number | undefined): Promise<string> {
    const { lost } = this.#lease;
    if (lost !== undefined) return Promise.reject(lost);
    const ending = this.endingNow();
    return this.#leave(() => this.#handOff(ending, validForMs, tick));
  }

  /** Makes the last write to the row. A close waits for it. @param how what is done with the row. */
  #leave<Result>(how: () => Promise<Result>): Promise<Result> {
    this.#lease.leave();
    this.#session.leases.add(this.#lease);
    const leaving = how().finally(() => this.#session.forgetLease(this.#lease));
    // Only the caller that leaves the lease gets the store's error. For all other callers the lease is over.
    this.#exited = leaving.then(
      () => undefined,
      (error: unknown) => {
        if (error instanceof LockLostError) throw error;
      },
    );
    // The callers handle a rejection. This keeps it from counting as unhandled before they do.
    this.#exited.catch(() => undefined);
    return leaving;
  }

  /** Removes the uuid from the row, if it may still be there. A lost lease is released when its section has ended. */
  async #release(remove: () => Promise<Written>): Promise<void> {
    // Once the uuid is gone, a renewal that is in flight is refused. A reissue changes the uuid, so its answer is awaited.
    if (this.#lease.writing?.isReissue) await this.#lease.endWriting();
    const { lost } = this.#lease;
    if (lost === undefined) {
      const released = await remove();
      if (released.kind === "lost" && !this.#lease.hasRunOut) throw this.#lease.markLost(released.why);
      return;
    }
    const { reason } = lost;
    // The lease was renewed until it was revoked: without a release it would keep others out for up to its whole length. So would
    // the other rows of a lock that has lost one of several.
    const mayBeOurs = reason === "expired" || reason === "max-hold" || reason === "closed";
    if (mayBeOurs || this.#lease.row.others !== undefined) await remove();
    throw lost;
  }

  async #handOff(ending: Ending, validForMs: number, tick: number | undefined): Promise<string> {
    const { clock, uuid } = this.#session;
    // A renewal that is in flight must not overlap with the one below.
    if (this.#lease.writing !== undefined)
      await answeredWithin(clock, ending.halfAt - clock.atMost(), this.#lease.endWriting());
    const { row, usableUntil } = this.#lease;
    const { hold } = this;
    const secret = uuid();
    const handOff = {
      uuid: uuidOf(secret),
      ...(tick !== undefined && { tick }),
      ...(hold && { heldUntil: hold.expires, heldForMs: Math.ceil(hold.ms) }),
    };
    // The row stays taken for the rest of its hold, even if nobody resumes it.
    const heldMs = hold === undefined ? 0 : Math.ceil(hold.ms - (clock.atLeast() - hold.startedAt));
    const ttlMs = Math.max(validForMs, heldMs);
    const giveUpAt = Math.min(ending.halfAt, usableUntil);
    const trying = { until: () => giveUpAt };
    // Renew first, if the uuid was never renewed. The transfer asks for a stamp later than the first one, so it is refused on a
    // row that a late copy of the take has brought back.
    const ready: Written =
      guardOf(row) === undefined ? await renew(this.#session, row, trying) : { kind: "ok", lease: row };
    const written =
      ready.kind === "ok" ? await transfer(this.#session, ready.lease, trying, { handOff, ttlMs }) : ready;
    this.#lease.row = written.lease;
    switch (written.kind) {
      case "ok":
        return secret;
      case "lost":
        throw this.#lease.markLost(this.#lease.hasRunOut ? "expired" : written.why);
      case "unknown": {
        // The transfer may have been applied, or may be later: then nobody has the lock, for as long as it was handed off for.
        const released = await this.#vacateBy(ending, written.lease, ttlMs);
        const cause = notHandedOff(written.lease, written.cause, released);
        throw this.#lease.hasRunOut ? this.#lease.markLost("expired", cause) : cause;
      }
      default:
        return written satisfies never;
    }
  }

  /**
   * Releases the row in time for the answer. If it has got none by then, it is tried in the background until the lease would end,
   * or until a close has no time left.
   * @param lastsMs how long the row may keep others out from now on, if that is longer than until the lease ends.
   */
  async #vacateBy({ answerBy }: Ending, row: RowLease, lastsMs = 0): Promise<Written> {
    const { clock } = this.#session;
    // After the end of the lease, one attempt.
    const restMs = this.#lease.hasRunOut ? firstTimeoutMs(row.settings.ttlMs) : row.validUntil - clock.atMost();
    // A wall clock that is set forward answers the caller sooner, and leaves the row no sooner.
    const end = endAfter(clock, Math.max(restMs, lastsMs));
    const giveUpAt = Math.min(answerBy, end());
    const released = await this.#vacate(row, { until: () => giveUpAt });
    const leftMs = end() - clock.atMost();
    if (released.kind === "unknown" && leftMs > 0) {
      const until = this.#session.untilClosed(leftMs);
      const late = this.#vacate(row, { until, isDetached: true });
      this.#session.detach(late.then(({ kind }) => kind !== "unknown" && this.onLateRelease?.()));
    }
    return released;
  }

  #vacate(row: RowLease, how: Pick<Releasing, "until" | "isDetached">): Promise<Written> {
    const { hold, result, hasBegun } = this;
    const leaves = hold === undefined ? ({ kind: "free", result } as const) : rowAfterRelease(this.#session, hold);
    return vacate(this.#session, row, { ...how, leaves, hasBegun });
  }
}

/** Why a lock was not handed off, and what has become of its row. */
function notHandedOff({ at }: RowLease, cause: unknown, released: Written): LockStoreError {
  const what = {
    ok: "it was released",
    lost: "its row is not ours any more",
    unknown:
      "it is not known whether it was released: nobody has the lock, and its row may keep others out for `validForMs`. This process " +
      "goes on releasing it for as long",
  }[released.kind];
  const because = cause instanceof Error ? cause.message : String(cause);
  const message = `Lock ${JSON.stringify(at.name)} was not handed off, and ${what}. ${because}`;
  return new LockStoreError(message, { cause, transient: isTransient(cause) });
}
