import { LockConfigError, LockLostError } from "../errors.js";
import { type ResumeOptions, resumeOptions } from "../options/calls.js";
import type { Address } from "../protocol/addresses.js";
import type { HandOff } from "../protocol/hand-off.js";
import { holdUntil, type MinimumHold, stamp } from "../protocol/lease-time.js";
import type { Memory, Row } from "../protocol/row.js";
import { memoryOf } from "../protocol/rules.js";
import { isStillHeldBy, wasApplied } from "../protocol/was-applied.js";
import type { Transfer } from "../protocol/writes.js";
import { retraced } from "../retraced.js";
import { firstTimeoutMs } from "../session/requests.js";
import type { Session } from "../session/session.js";
import { giveBack, removeWhenTheyArrive } from "../taking/abandoned-claims.js";
import { Call } from "../taking/call.js";
import { learnTime } from "../taking/known-time.js";
import { asOne, type RowLease, rowLease, type Taken, type Target } from "../taking/row-lease.js";
import { tooSlow } from "../taking/too-slow.js";
import { runFor, type Wait } from "../taking/wait.js";
import { boundsOf } from "../time/clock.js";
import { type HandedRow, parseToken } from "./hand-off-token.js";
import { HeldLock } from "./handle.js";
import { Lease } from "./lease.js";

/** What was read of a row that is handed off: none of it changes while the uuid is on the row. */
interface Handed extends HandOff, Pick<Row, "expires" | "acquired" | "data"> {
  readonly target: Target;
  readonly remembers: Memory;
}

/** All rows of a token: several for a lock of several permits. */
type AllHanded = readonly [Handed, ...Handed[]];

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
  const rows = parseToken(token, session.table, isOurs);
  const [{ at }] = rows;
  signal?.throwIfAborted();
  const call = new Call<HeldLock>(session, at.name, { signal, asksFor: 1 });
  const work = async (wait: Wait): Promise<void> => {
    const handed = await allHandedOff(session, rows, targetFor, wait);
    const lease = new Lease(session, await acquire(session, handed, wait));
    lease.exit.hold = remainingHold(session, handed[0]);
    if (!call.isSettled && (await lease.renewals.secure(wait)) && !call.isSettled) {
      lease.keep();
      const { acquired, tick } = lease.row;
      const lock = new HeldLock({ session, lease, acquired, tick });
      call.settle(lock);
      return lock.delivered({ call: call.number, waitedMs: call.waitedMs });
    }
    session.detach(lease.exit.giveBack());
    wait.endSignal.throwIfAborted();
    throw tooSlow(at.name, lease.settings);
  };
  try {
    return await runFor(session, call, work);
  } catch (error) {
    throw retraced(error);
  }
}

/** Reads all rows of a token. If one of them is lost, the others are given back: nobody can resume them alone. */
async function allHandedOff(
  session: Session,
  rows: readonly HandedRow[],
  targetFor: (at: Address) => Target,
  wait: Wait,
): Promise<AllHanded> {
  const read = await Promise.allSettled(rows.map((row) => handedOff(session, targetFor(row.at), row.uuid, wait)));
  const handed = read.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
  const failed = read.find((one) => one.status === "rejected");
  if (failed === undefined) return handed as unknown as AllHanded;
  if (failed.reason instanceof LockLostError) leaveBehind(session, handed);
  throw failed.reason;
}

/**
 * Reads a row that a token is for. All facts of the hand-off come from the row: the token could be edited by anybody.
 *
 * @param uuid the uuid that the token's secret gives.
 */
async function handedOff(session: Session, target: Target, uuid: string, wait: Wait): Promise<Handed> {
  const { at } = target;
  const read = (signal: AbortSignal) => session.store.read(at, { consistent: true }, signal);
  const row = (await learnTime(session, at, wait)) ?? (await wait.ask(read));
  if (row?.uuid !== uuid) throw lost(at, uuid, row === undefined ? "deleted" : "stolen");
  const { expires, acquired, data, handOff } = row;
  const facts = handOff?.uuid === uuid ? handOff : { uuid };
  return { ...facts, target, expires, acquired, data, remembers: memoryOf(row) };
}

/** Gives back rows that are handed off, in the background. */
function leaveBehind(session: Session, handed: readonly Handed[]): void {
  const sentAt = session.clock.atMost();
  for (const one of handed) {
    const lease = rowLease(session, one.target, { ...one, sentAt });
    session.detach(giveBack(session, lease, remainingHold(session, one)));
  }
}

/**
 * Takes the rows by one write, or by one transaction, which gives each a uuid of this process. Of two processes that resume, one
 * wins, because the write names the uuid of the hand-off, and replaces it. If the write fails, what it may have taken is given back.
 */
async function acquire(session: Session, handed: AllHanded, wait: Wait): Promise<RowLease> {
  const { clock } = session;
  const [{ target, uuid, expires }] = handed;
  const { at, settings } = target;
  session.mayRelease(settings.releaseWithinMs);
  let sent: readonly ReturnType<typeof transferTo>[] | undefined;
  const giveUpAt = (): number =>
    Math.min(wait.until(), (sent?.[0]?.taken.sentAt ?? clock.atMost()) + settings.ttlMs - settings.safetyMarginMs);
  for (;;) {
    wait.endSignal.throwIfAborted();
    await learnTime(session, at, wait);
    if (boundsOf(clock).earliest > expires) throw lost(at, uuid, "expired");
    const persistence = { kind: "take", firstTimeoutMs: firstTimeoutMs(settings.ttlMs), until: giveUpAt } as const;
    let outcome: Resumption | undefined;
    try {
      outcome = await wait.persistAtKnownTime(persistence, (signal) => {
        sent ??= handed.map((one) => transferTo(session, one));
        return sendAll(
          session,
          sent.map(({ write }) => write),
          signal,
        );
      });
    } catch (error) {
      // No section relies on what a copy without an answer has taken, or may still take.
      if (sent !== undefined) {
        const maybe = sent.map(({ taken }, index) => rowLease(session, (handed[index] ?? handed[0]).target, taken));
        removeWhenTheyArrive(session, maybe, remainingHold(session, handed[0]));
      }
      throw error;
    }
    if (outcome === undefined || sent === undefined) {
      await wait.again();
      continue;
    }
    const { rows, drawn } = outcome;
    if (!outcome.isApplied && !sent.every(({ write }, index) => wasApplied(write, rows[index]) === "yes")) {
      if (handed.length > 1) leaveBehind(session, handed);
      throw refused(handed, rows);
    }
    const fence = settings.fencing ? drawn : undefined;
    const leases = sent.map(({ taken }, index) => {
      return rowLease(session, (handed[index] ?? handed[0]).target, { ...taken, fence });
    });
    return asOne(leases as unknown as readonly [RowLease, ...RowLease[]]);
  }
}

/** What became of the transfers: for each of them the row that refused it, if one did. */
interface Resumption {
  readonly isApplied: boolean;
  readonly rows: readonly (Row | undefined)[];
  readonly drawn?: bigint | undefined;
}

async function sendAll({ store }: Session, writes: readonly Transfer[], signal: AbortSignal): Promise<Resumption> {
  const [write, ...others] = writes as readonly [Transfer, ...Transfer[]];
  if (others.length > 0) {
    const outcome = await store.writeAll(writes, signal);
    return outcome.kind === "applied" ? { isApplied: true, rows: [] } : { isApplied: false, rows: outcome.rows };
  }
  const outcome = await store.write(write, signal);
  if (outcome.kind === "applied") return { isApplied: true, rows: [], drawn: outcome.drawn };
  return { isApplied: false, rows: [outcome.row], drawn: outcome.row?.fence };
}

/** The transfer, chosen as its first copy leaves, and what it takes. The row tells since when, and with which data. */
function transferTo(session: Session, { target: { at, settings }, uuid: from, remembers, ...handed }: Handed) {
  const { clock, owner } = session;
  const { ttlMs, fencing: fenced } = settings;
  const { acquired, data, tick } = handed;
  const [uuid, sentAt, expires] = [session.uuid(), clock.atMost(), stamp(boundsOf(clock), ttlMs)];
  const write: Transfer = { kind: "transfer", at, from, uuid, expires, ttlMs, owner, fenced, remembers };
  const taken: Taken = { uuid, expires, sentAt, acquired, data, tick, remembers };
  return { write, taken };
}

/** What is left of the hold that began before the hand-off; undefined if there was none. */
function remainingHold({ clock }: Session, { heldUntil: expires, heldForMs: ms }: Handed): MinimumHold | undefined {
  if (expires === undefined || ms === undefined) return undefined;
  return holdUntil({ expires, ms }, clock.atLeast(), boundsOf(clock));
}

function refused([{ target, uuid }]: AllHanded, rows: readonly (Row | undefined)[]): Error {
  const row = rows.find((one) => one !== undefined);
  // The row has the uuid that the write names, and refused it all the same: it has no fencing token to count up.
  if (isStillHeldBy(uuid, row)) {
    const remedy = "must be as it was on the mutex that handed the lock off: its row has no fencing token";
    return new LockConfigError("fencing", target.settings.fencing, remedy);
  }
  return lost(target.at, uuid, row === undefined ? "deleted" : "stolen");
}

const BECAUSE = {
  expired: "the time of its token is over",
  stolen: "its token was used before, or its time was over and another holder has it",
  deleted: "its token was used before, or its time was over, and it is free by now",
} as const;

function lost({ name }: Address, uuid: string, reason: keyof typeof BECAUSE): LockLostError {
  return new LockLostError(name, uuid, reason, { because: BECAUSE[reason] });
}
