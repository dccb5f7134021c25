import { LockConfigError, LockLostError } from "../errors.js";
import type { Address } from "../protocol/addresses.js";
import type { HandOff } from "../protocol/hand-off.js";
import { holdUntil, leftAfter, type MinimumHold, stamp } from "../protocol/lease-time.js";
import type { Memory, Row } from "../protocol/row.js";
import { memoryOf } from "../protocol/rules.js";
import { isStillHeldBy, wasApplied } from "../protocol/was-applied.js";
import type { Left, Take, Transfer } from "../protocol/writes.js";
import { attemptMs } from "../session/requests.js";
import type { Session } from "../session/session.js";
import type { WriteOutcome } from "../store.js";
import { boundsOf } from "../time/clock.js";
import { removeWhenItArrives } from "./abandoned-claims.js";
import { Acquisition, type Taken, type Target } from "./acquisition.js";
import { learnTime } from "./known-time.js";
import type { Wait } from "./wait.js";

/** A row that is handed off, as it was read: none of that changes while the uuid is on it. */
export interface Handed extends HandOff {
  readonly expires: number;
  readonly remembers: Memory;
}

/** A transfer that has left. */
interface Sent {
  readonly write: Transfer;
  /** When the first copy left, on `atMost`. */
  readonly at: number;
}

/**
 * Reads the row that a token is for. All that there is to know of the hand-off is there, so nobody can edit it.
 *
 * @param uuid that the token opens.
 * @throws {@link LockLostError} if the row has another.
 */
export async function handedOff(session: Session, at: Address, uuid: string, wait: Wait): Promise<Handed> {
  const read = (signal: AbortSignal) => session.store.read(at, { consistent: true }, signal);
  const row = (await learnTime(session, at, wait)) ?? (await wait.ask(read));
  if (row?.uuid !== uuid) throw lost(at, uuid, row === undefined ? "deleted" : "stolen");
  const { expires, handOff } = row;
  return { ...(handOff?.uuid === uuid ? handOff : { uuid }), expires, remembers: memoryOf(row) };
}

/**
 * Goes on with a row that was handed off: one write, which gives it a uuid of this process. Of two that resume one wins,
 * because the write names the uuid of the hand-off, and replaces it.
 *
 * @throws {@link LockLostError} if somebody was first, or the time of the token is over. @throws the store's error, and then
 * gives back what may have been taken.
 */
export async function resume(session: Session, target: Target, handed: Handed, wait: Wait): Promise<Acquisition> {
  const { clock, store } = session;
  const { at, settings } = target;
  session.mayRelease(settings.releaseWithinMs);
  let sent: Sent | undefined;
  const giveUpAt = (): number =>
    Math.min(wait.until(), (sent?.at ?? clock.atMost()) + settings.ttlMs - settings.safetyMarginMs);
  for (;;) {
    wait.throwIfEnough();
    await learnTime(session, at, wait);
    if (boundsOf(clock).earliest > handed.expires) throw lost(at, handed.uuid, "expired");
    const persistence = { kind: "take", attemptMs: attemptMs(settings.ttlMs), until: giveUpAt } as const;
    let outcome: WriteOutcome | undefined;
    try {
      outcome = await wait.persistAtKnownTime(persistence, (signal) => {
        sent ??= { write: transferTo(session, target, handed), at: clock.atMost() };
        return store.write(sent.write, signal);
      });
    } catch (error) {
      if (sent !== undefined) giveUp(session, target, handed, sent);
      throw error;
    }
    if (outcome === undefined || sent === undefined) {
      await wait.pacing.again();
      continue;
    }
    const row = outcome.kind === "applied" ? outcome.replaced : outcome.row;
    if (outcome.kind === "refused" && wasApplied(sent.write, row) !== "yes") throw refused(target, handed, row);
    const fence = outcome.kind === "applied" ? outcome.drawn : row?.fence;
    return new Acquisition(session, target, {
      ...takenBy(sent, handed, row),
      fence: settings.fencing ? fence : undefined,
    });
  }
}

function transferTo({ clock, owner, uuid }: Session, { at, settings }: Target, handed: Handed): Transfer {
  const { ttlMs, fencing: fenced } = settings;
  const [expires, { remembers }] = [stamp(boundsOf(clock), ttlMs), handed];
  return { kind: "transfer", at, from: handed.uuid, uuid: uuid(), expires, ttlMs, owner, fenced, remembers };
}

/** What was taken, as if by a take: since when, and with which data, the row says. */
function takenBy({ write, at: sentAt }: Sent, { remembers, tick }: Handed, row: Row | undefined): Taken {
  const { at, uuid, expires, ttlMs, owner } = write;
  const [acquired, data] = [row?.acquired ?? expires - ttlMs, row?.data];
  const take: Take = {
    kind: "take",
    at,
    uuid,
    expires,
    ttlMs,
    owner,
    acquired,
    data,
    tick,
    remembers,
    knowledge: NOTHING,
  };
  return { take, sentAt, remembers };
}

const NOTHING = { earliest: 1 } as const;

/** What is left of the hold that began where the row was handed off; undefined if there was none. */
export function restOf({ clock }: Session, { heldUntil: expires, heldForMs: ms }: Handed): MinimumHold | undefined {
  if (expires === undefined || ms === undefined) return undefined;
  return holdUntil({ expires, ms }, clock.atLeast(), boundsOf(clock));
}

/** How whoever does not go on leaves the row: a section has run on it, so its hold lasts. */
export function leftOf(session: Session, handed: Handed): Left {
  const hold = restOf(session, handed);
  return hold === undefined ? { kind: "free" } : leftAfter(hold, session.clock.atLeast(), session.clock.wall());
}

/** Nobody relies on what a copy without an answer has taken, or may still take. */
function giveUp(session: Session, target: Target, handed: Handed, sent: Sent): void {
  const taken = takenBy(sent, handed, undefined);
  const leaving = () => leftOf(session, handed);
  if (leaving().kind === "free") session.sightings.abandon(taken.take.uuid);
  session.detach(removeWhenItArrives(session, target, taken, leaving));
}

function refused(target: Target, handed: Handed, row: Row | undefined): Error {
  // Refused by the very uuid that it names: the row has no token to count up.
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
