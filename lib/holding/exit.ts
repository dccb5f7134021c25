import { LockLostError } from "../errors.js";
import { type MinimumHold, minimumHold } from "../protocol/lease-time.js";
import type { NamedResult } from "../protocol/writes.js";
import type { HeldLease, Session } from "../session/session.js";
import { abandon, rowAfterRelease, untilGivenBack } from "../taking/abandoned-claims.js";
import { guardOf } from "../taking/row-lease.js";
import { renew, transfer, vacate, type Written } from "../taking/row-writes.js";
import { boundsOf } from "../time/clock.js";
import { uuidOf } from "./hand-off-token.js";
import type { Term } from "./term.js";

/** The ways out of a lease: it is released, given back, or handed off, and only once. */
export class Exit {
  /** The minimum hold: how long the row stays taken after its release. A lease with a hold serves one section. */
  hold: MinimumHold | undefined;
  /** The result of a single flight: the release writes it to the row. */
  result: NamedResult | undefined;
  /** Whether the run of its tick has begun. If not, the release takes the number of that run back. */
  hasBegun = false;
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

  /** Releases the lease. Every call gets the same answer. @throws {@link LockLostError} if the lease had been lost before. */
  release(): Promise<void> {
    const from = this.#session.clock.atMost();
    return this.#exited ?? this.#leave(() => this.#release(() => this.#releaseUntil(from)));
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
    this.#session.keepLease(this.#lease);
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
      if (this.#lease.writing !== undefined) await this.#lease.endWriting();
      return await how();
    } finally {
      this.#session.forgetLease(this.#lease);
    }
  }

  /** Removes the uuid from the row, if it may still be there. A lost lease is released when its section has ended. */
  async #release(until: () => (() => number) | undefined): Promise<void> {
    const { lost } = this.#lease;
    if (lost === undefined) {
      const released = await this.#vacate(until());
      if (released.kind === "lost" && !this.#lease.hasRunOut) throw this.#lease.markLost(released.why);
      return;
    }
    const { reason } = lost;
    if (reason === "expired") await this.#vacate(undefined);
    // The lease was renewed until it was revoked: without a release it would keep others out for up to its whole length. So would
    // the other rows of a lock that has lost one of several.
    else if (reason === "max-hold" || reason === "closed" || this.#lease.row.others !== undefined)
      await this.#vacate(until());
    throw lost;
  }

  async #handOff(withinMs: number, tick: number | undefined): Promise<string> {
    const { clock, uuid } = this.#session;
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
    const giveUpAt = Math.min(clock.atMost() + row.settings.releaseWithinMs, usableUntil);
    const trying = { until: () => giveUpAt };
    // Renew first, if the uuid was never renewed. The transfer asks for a stamp later than the first one, so it is refused on a
    // row that a late copy of the take has brought back.
    const ready: Written =
      guardOf(row) === undefined ? await renew(this.#session, row, trying) : { kind: "ok", lease: row };
    const handed = { handOff, ttlMs: Math.max(withinMs, heldMs) };
    const written = ready.kind === "ok" ? await transfer(this.#session, ready.lease, trying, handed) : ready;
    this.#lease.row = written.lease;
    switch (written.kind) {
      case "ok":
        return secret;
      case "lost":
        throw this.#lease.markLost(this.#lease.hasRunOut ? "expired" : written.why);
      case "unknown": {
        const { cause } = written;
        await this.#vacate(this.#releaseUntil());
        throw this.#lease.hasRunOut ? this.#lease.markLost("expired", cause) : cause;
      }
      default:
        return written satisfies never;
    }
  }

  /** Until when a release is tried; undefined, for one attempt, if the lease is over. @param from since when, on `atMost`. */
  #releaseUntil(from = this.#session.clock.atMost()): (() => number) | undefined {
    const { hasRunOut, row } = this.#lease;
    if (hasRunOut) return undefined;
    const giveUpAt = Math.min(from + row.settings.releaseWithinMs, row.validUntil);
    return () => giveUpAt;
  }

  #vacate(until: (() => number) | undefined): Promise<Written> {
    const { hold, result, hasBegun } = this;
    const leaves = hold === undefined ? ({ kind: "free", result } as const) : rowAfterRelease(this.#session, hold);
    return vacate(this.#session, this.#lease.row, { until, leaves, hasBegun });
  }
}
