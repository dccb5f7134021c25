import { LockConfigError, LockLostError } from "../errors.js";
import { type ResumeOptions, resumeOptions } from "../options/calls.js";
import type { Address } from "../protocol/addresses.js";
import type { HandOff } from "../protocol/hand-off.js";
import { holdUntil, type MinimumHold, stamp, tokenDraw } from "../protocol/lease-time.js";
import type { Memory, Row } from "../protocol/row.js";
import { memoryOf } from "../protocol/rules.js";
import { isStillHeldBy, wasApplied } from "../protocol/was-applied.js";
import type { Transfer } from "../protocol/writes.js";
import { firstTimeoutMs } from "../session/requests.js";
import type { Session } from "../session/session.js";
import type { WriteOutcome } from "../store.js";
import { removeWhenItArrives } from "../taking/abandoned-claims.js";
import { type Bid, runFor } from "../taking/bid.js";
import { Call } from "../taking/call.js";
import { learnTime } from "../taking/known-time.js";
import { type RowLease, rowLease, type Taken, type Target } from "../taking/row-lease.js";
import { tooSlow } from "../taking/too-slow.js";
import { boundsOf } from "../time/clock.js";
import { parseToken } from "./hand-off-token.js";
import { HeldLock } from "./handle.js";
import { Lease } from "./lease.js";

/** What was read of a row that is handed off: none of it changes while the uuid is on the row. */
interface Handed extends HandOff, Pick<Row, "expires" | "acquired" | "data" | "fence"> {
  readonly remembers: Memory;
}

/**
 * Resumes a lock that was handed off, for a section of this process.
 *
 * @param isOurs whether a row is one of this lock.
 * @param targetFor how the lease is kept from here on.
 * @throws {@link LockLostError} if another process was first, or the time of the token is over. @throws the store's error.
 */
export async function resume(
  session: Session,
  token: string,
  options: ResumeOptions,
  isOurs: (at: Address) => boolean,
  targetFor: (at: Address) => Target,
): Promise<HeldLock> {
  const { signal } = resumeOptions(options);
  session.assertOpen();
  const { at, uuid } = parseToken(token, session.table, isOurs);
  signal?.throwIfAborted();
  const call = new Call<HeldLock>(session, at.name, { signal, asksFor: 1 });
  const work = async (bid: Bid): Promise<void> => {
    const handed = await handedOff(session, at, uuid, bid);
    const target = targetFor(at);
    const lease = new Lease(session, await acquire(session, target, handed, bid));
    lease.exit.hold = remainingHold(session, handed);
    lease.exit.hasBegun = true; // in the process that has handed it off
    if (!call.isSettled && (await lease.renewals.secure(bid)) && !call.isSettled) {
      lease.keep();
      const { acquired, tick } = lease.row;
      const lock = new HeldLock({ session, lease, acquired, tick });
      call.settle(lock);
      return lock.delivered({ call: call.number, waitedMs: call.waitedMs });
    }
    session.detach(lease.exit.giveBack());
    bid.withdrawn.throwIfAborted();
    throw tooSlow(at.name, target.settings);
  };
  return await runFor(session, call, work);
}

/**
 * Reads the row that a token is for. All facts of the hand-off come from the row: the token could be edited by anybody.
 *
 * @param uuid the uuid that the token's secret gives.
 */
async function handedOff(session: Session, at: Address, uuid: string, bid: Bid): Promise<Handed> {
  const read = (signal: AbortSignal) => session.store.read(at, { consistent: true }, signal);
  const row = (await learnTime(session, at, bid)) ?? (await bid.ask(read));
  if (row?.uuid !== uuid) throw lost(at, uuid, row === undefined ? "deleted" : "stolen");
  const { expires, acquired, data, fence, handOff } = row;
  return { ...(handOff?.uuid === uuid ? handOff : { uuid }), expires, acquired, data, fence, remembers: memoryOf(row) };
}

/**
 * Takes the row by one write, which gives it a uuid of this process. Of two processes that resume, one wins, because the write
 * names the uuid of the hand-off, and replaces it. If the write fails, what it may have taken is given back.
 */
async function acquire(session: Session, target: Target, handed: Handed, bid: Bid): Promise<RowLease> {
  const { clock, store } = session;
  const { at, settings } = target;
  session.mayRelease(settings.releaseWithinMs);
  let sent: ReturnType<typeof transferTo> | undefined;
  const giveUpAt = (): number =>
    Math.min(bid.until(), (sent?.taken.sentAt ?? clock.atMost()) + settings.ttlMs - settings.safetyMarginMs);
  for (;;) {
    bid.withdrawn.throwIfAborted();
    await learnTime(session, at, bid);
    if (boundsOf(clock).earliest > handed.expires) throw lost(at, handed.uuid, "expired");
    const persistence = { kind: "take", firstTimeoutMs: firstTimeoutMs(settings.ttlMs), until: giveUpAt } as const;
    let outcome: WriteOutcome | undefined;
    try {
      outcome = await bid.persistAtKnownTime(persistence, (signal) => {
        sent ??= transferTo(session, target, handed);
        return store.write(sent.write, signal);
      });
    } catch (error) {
      // No section relies on what a copy without an answer has taken, or may still take.
      if (sent !== undefined) {
        // The run of its tick has begun in the process that has handed it off, and is not taken back.
        const maybe = rowLease(session, target, { ...sent.taken, tick: undefined });
        session.detach(removeWhenItArrives(session, maybe, remainingHold(session, handed)));
      }
      throw error;
    }
    if (outcome === undefined || sent === undefined) {
      await bid.again();
      continue;
    }
    if (outcome.kind === "refused" && wasApplied(sent.write, outcome.row) !== "yes")
      throw refused(target, handed, outcome.row);
    const drawn = outcome.kind === "applied" ? outcome.drawn : outcome.row?.fence;
    return rowLease(session, target, { ...sent.taken, fence: settings.fencing ? drawn : undefined });
  }
}

/** The transfer, chosen as its first copy leaves, and what it takes. The row tells since when, and with which data. */
function transferTo(session: Session, { at, settings }: Target, handed: Handed) {
  const { clock, owner } = session;
  const { ttlMs, fencing } = settings;
  const { uuid: from, acquired, data, fence, tick, remembers } = handed;
  const bounds = boundsOf(clock);
  const [uuid, sentAt, expires] = [session.uuid(), clock.atMost(), stamp(bounds, ttlMs)];
  const token = fencing ? tokenDraw(bounds, fence) : undefined;
  const write: Transfer = { kind: "transfer", at, from, uuid, expires, ttlMs, owner, token, remembers };
  const taken: Taken = { uuid, expires, sentAt, acquired, data, tick, remembers };
  return { write, taken };
}

/** What is left of the hold that began before the hand-off; undefined if there was none. */
function remainingHold({ clock }: Session, { heldUntil: expires, heldForMs: ms }: Handed): MinimumHold | undefined {
  if (expires === undefined || ms === undefined) return undefined;
  return holdUntil({ expires, ms }, clock.atLeast(), boundsOf(clock));
}

function refused(target: Target, handed: Handed, row: Row | undefined): Error {
  // The row has the uuid that the write names, and refused it all the same: it has no fencing token to count up.
  if (isStillHeldBy(handed.uuid, row)) {
    const remedy = "must be as it was on the mutex that handed the lock off: its row has no fencing token";
    return new LockConfigError("fencing", target.settings.fencing, remedy);
  }
  return lost(target.at, handed.uuid, row === undefined ? "deleted" : "stolen");
}

const BECAUSE = {
  expired: "the time of its token is over",
  stolen: "its token was used before, or its time was over and another holder has it",
  deleted: "its token was used before, or its time was over, and it is free by now",
} as const;

function lost({ name }: Address, uuid: string, reason: keyof typeof BECAUSE): LockLostError {
  return new LockLostError(name, uuid, reason, { because: BECAUSE[reason] });
}
