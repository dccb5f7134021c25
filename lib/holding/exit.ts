import { LockLostError } from "../errors.js";
import { type MinimumHold, minimumHold } from "../protocol/lease-time.js";
import type { NamedResult, RowAfterRelease } from "../protocol/writes.js";
import type { Session } from "../session/session.js";
import { abandon, rowAfterRelease, untilGivenBack } from "../taking/abandoned-claims.js";
import type { Stamping, Trying } from "../taking/taken.js";
import { boundsOf } from "../time/clock.js";
import { uuidOf } from "./hand-off-token.js";
import type { LeaseControl } from "./lease-control.js";
import type { Renewals } from "./renewals.js";

/** The ways out of a lease: it is released, given back, or handed off, and only once. */
export class Exit {
  /** The minimum hold: how long the row stays taken after its release. A lease with a hold serves one section. */
  hold: MinimumHold | undefined;
  /** The result of a single flight: the release writes it to the row. */
  result: NamedResult | undefined;
  readonly #session: Session;
  readonly #lease: LeaseControl;
  readonly #renewals: Renewals;
  #exited: Promise<void> | undefined;

  constructor(session: Session, lease: LeaseControl, renewals: Renewals) {
    this.#session = session;
    this.#lease = lease;
    this.#renewals = renewals;
  }

  /** Sets the minimum hold: the lock stays taken for `ms` from now, however soon the lease is released. 0 means no hold. */
  holdAtLeast(ms: number): void {
    const { clock } = this.#session;
    this.hold = ms > 0 ? minimumHold(ms, clock.atLeast(), boundsOf(clock)) : undefined;
  }

  /** Releases the lease. Every call gets the same answer. @throws {@link LockLostError} if the lease had been lost before. */
  release(): Promise<void> {
    return this.#exited ?? this.#leave(() => this.#release(() => this.#releaseUntil()));
  }

  /**
   * Releases a lease on which no section has begun, nor will. Meanwhile it excludes no caller in this process, unless it has a
   * hold.
   */
  giveBack(): Promise<void> {
    const { row } = this.#lease;
    abandon(this.#session, row, this.hold);
    return this.#exited ?? this.#leave(() => this.#release(() => untilGivenBack(this.#session, row)));
  }

  /**
   * Hands the row off for `withinMs`: the process that gets the secret may resume it. No section relies on the lease any more,
   * whatever the outcome. Without an answer, the row is released under both uuids.
   *
   * @param tick the tick of the section that ends.
   * @returns the secret.
   * @throws {@link LockLostError} if the lease had been lost before. @throws the store's error.
   */
  handOff(withinMs: number, tick: number | undefined): Promise<string> {
    const { lost } = this.#lease;
    return lost === undefined ? this.#leave(() => this.#handOff(withinMs, tick)) : Promise.reject(lost);
  }

  /** @param how what is done with the row. */
  #leave<Result>(how: () => Promise<Result>): Promise<Result> {
    this.#lease.leave();
    const leaving = this.#last(how);
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

  /** Makes the last write to the row. A close waits for it. */
  async #last<Result>(how: () => Promise<Result>): Promise<Result> {
    try {
      if (this.#renewals.writing !== undefined) await this.#renewals.settle();
      return await how();
    } finally {
      this.#lease.forget();
    }
  }

  /** Removes the uuid from the row, if it may still be there. A lost lease is released when its section has ended. */
  async #release(until: () => (() => number) | undefined): Promise<void> {
    const { row, lost } = this.#lease;
    if (lost === undefined) {
      const release = await row.release(until(), this.#rowAfter());
      if (release.kind === "refused" && !this.#lease.hasRunOut) throw this.#lease.end(row.reasonOf(release.row));
      return;
    }
    // The lease was renewed until it was revoked: without a release it would keep others out for up to its whole length.
    if (lost.reason === "closed") await row.release(until(), this.#rowAfter());
    if (lost.reason === "expired" || lost.reason === "max-hold") await row.release(undefined, this.#rowAfter());
    throw lost;
  }

  async #handOff(withinMs: number, tick: number | undefined): Promise<string> {
    const { clock, uuid } = this.#session;
    const { row, ends } = this.#lease;
    const { hold } = this;
    const secret = uuid();
    const handOff = {
      uuid: uuidOf(secret),
      ...(tick !== undefined && { tick }),
      ...(hold && { heldUntil: hold.expires, heldForMs: Math.ceil(hold.ms) }),
    };
    // The row stays taken for the rest of its hold, even if nobody resumes it.
    const heldMs = hold === undefined ? 0 : Math.ceil(hold.ms - (clock.atLeast() - hold.startedAt));
    const giveUpAt = Math.min(clock.atMost() + row.settings.releaseWithinMs, ends);
    const trying: Trying = { until: () => giveUpAt };
    // Renew first, if the uuid was never renewed. The transfer asks for a stamp later than the first one, so it is refused on a
    // row that a late copy of the take has brought back.
    let stamping: Stamping = row.guard === undefined ? await row.renew(trying) : { kind: "stamped" };
    if (stamping.kind === "stamped") stamping = await row.transfer(handOff, Math.max(withinMs, heldMs), trying);
    switch (stamping.kind) {
      case "stamped":
        return secret;
      case "refused":
        throw this.#lease.end(this.#lease.hasRunOut ? "expired" : stamping.reason);
      case "unanswered": {
        const { cause } = stamping;
        await row.release(this.#releaseUntil(), this.#rowAfter());
        throw this.#lease.hasRunOut ? this.#lease.end("expired", cause) : cause;
      }
      default:
        return stamping satisfies never;
    }
  }

  /** Until when a release is tried; undefined, for one attempt, if the lease is over. */
  #releaseUntil(): (() => number) | undefined {
    const { hasRunOut, row } = this.#lease;
    if (hasRunOut) return undefined;
    const giveUpAt = Math.min(this.#session.clock.atMost() + row.settings.releaseWithinMs, row.end);
    return () => giveUpAt;
  }

  #rowAfter(): RowAfterRelease {
    return this.hold === undefined ? { kind: "free", result: this.result } : rowAfterRelease(this.#session, this.hold);
  }
}
