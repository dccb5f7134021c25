import { publish } from "../diagnostics.js";
import type { MutexSettings } from "../options/mutex.js";
import { markInNumber, needInMark, numberOfMark } from "../protocol/mark.js";
import type { Row } from "../protocol/row.js";
import { WANTED_FOR_MS } from "../session/contention.js";
import { LONGEST_ATTEMPT_MS } from "../session/retry.js";
import type { Session } from "../session/session.js";
import type { Bounds } from "../time/clock.js";
import { looksFree } from "./claim.js";
import { LONGEST_JITTER, Polling } from "./polling.js";
import type { Target } from "./row-lease.js";
import type { InTheWay } from "./row-take.js";
import type { Wait } from "./wait.js";

/** How soon a waiter marks again, if the row shows no mark: its own failed, or was lost with the row. */
const MARK_AGAIN_MS = 5_000;

/** How often a mark is sent at most, where the row has no holder at that moment: a busy host takes it again right away. */
const MARK_TRIES = 3;

/** How many answers a waiter for one row needs, at most, from a release to its take. */
export const ANSWERS = 3;

/** For how long a process stands back, by default, for a mark that does not say how long its writer needs. */
const UNSAID_NEED_MS = 800;

/** Since when others have kept this process from a row, on `atLeast`. */
export interface Blocked {
  readonly since: number;
  /** When this process last marked the row; -Infinity if it has not. */
  markedAt: number;
  /** The pauses of its waiter, if they keep growing from one wait to the next. */
  polling?: Polling;
  /** How many answers its waiter needs from a release to its take. Default: {@link ANSWERS}. */
  readonly answers?: number;
}

export function blockedFromNow({ clock }: Session): Blocked {
  return { since: clock.atLeast(), markedAt: Number.NEGATIVE_INFINITY };
}

/** Polls the row until it looks free, and marks it once others have kept it for `handOverMs`, one holder or several in turn. */
export async function watch(
  session: Session,
  { target, row: first }: InTheWay,
  wait: Wait,
  blocked: Blocked,
): Promise<undefined> {
  const { sightings } = session;
  const { at, settings } = target;
  if (looksFree(session, target, first)) {
    // The claim was refused, but the row looks free by now: mostly the next claim takes it.
    await wait.again();
    return undefined;
  }
  const polling = blocked.polling ?? new Polling(session, settings.poll);
  for (let row = first; !looksFree(session, target, row); ) {
    wait.endSignal.throwIfAborted();
    wait.saw(row);
    session.contended().waitsFor(row);
    // The refused claim has just shown the first row, so do not mark it: if its section ends by the next look, no hint is needed.
    if (row !== first) await mark(session, target, { row, blocked, wait });
    await polling.pause(wait, untilFree(session, target, row));
    const next = await wait.ask((signal) => session.store.read(at, { consistent: false }, signal));
    sightings.note(at, next);
    if (next === undefined) break;
    wait.call.onSeen?.(next);
    // A new holder may release soon.
    if (next.uuid !== row.uuid) polling.set();
    row = next;
  }
  wait.tries();
  return undefined;
}

/** Whether a row says that others wait for it. A hint: without bounds it counts as current. */
export function isMarked(row: Row, bounds: Bounds | undefined): boolean {
  return row.wanted !== undefined && (bounds === undefined || row.wanted > bounds.earliest);
}

/**
 * Whether a row says that others wait for it who need as long as a waiter with these polls: its next look may be a longest pause
 * away, and three answers may be slow: to the look before the release, to the look after it, and to the take.
 */
export function isMarkedFor(session: Session, { poll }: MutexSettings, row: Row, answers: number = ANSWERS): boolean {
  if (row.wanted === undefined || !isMarked(row, session.clock.wall())) return false;
  return (markInNumber(row.wanted).needMs ?? UNSAID_NEED_MS) >= needMsOf(session, poll, answers);
}

function needMsOf({ scheduler }: Session, { maxMs }: MutexSettings["poll"], answers: number): number {
  return needInMark(LONGEST_JITTER * maxMs + answers * (scheduler.slowMs ?? 0));
}

/** Milliseconds until a takeover of this row becomes possible, if nothing is written to it. */
export function untilFree({ clock, sightings }: Session, { at, settings: { takeover } }: Target, row: Row): number {
  const unchanged = sightings.untilUnchanged(at);
  const bounds = takeover === "expired" ? clock.wall() : undefined;
  return bounds === undefined ? unchanged : Math.min(unchanged, row.expires + 1 - bounds.earliest);
}

/**
 * Marks a row as wanted, unless a mark says so for at least as long as this waiter needs, so that its holder's process lets others
 * in after its turn. The mark applies to whoever holds the row when it arrives; it names no holder. It expires, because waiters die. It is a hint, so its
 * failure does not end the wait.
 */
export async function mark(
  session: Session,
  { at, settings }: Target,
  { row, blocked, wait }: { readonly row: Row; readonly blocked: Blocked; readonly wait: Wait },
): Promise<void> {
  const { clock, store } = session;
  const now = clock.atLeast();
  if (now - blocked.since < settings.handOverMs || now - blocked.markedAt < MARK_AGAIN_MS) return;
  const bounds = clock.wall();
  if (row.uuid === undefined || bounds === undefined || isMarkedFor(session, settings, row, blocked.answers)) return;
  const until = bounds.latest + Math.min(WANTED_FOR_MS, wait.remainingMs);
  const wanted = numberOfMark({ until, needMs: needMsOf(session, settings.poll, blocked.answers ?? ANSWERS) });
  const before = blocked.markedAt;
  blocked.markedAt = now;
  try {
    for (let tries = 1; tries <= MARK_TRIES; tries += 1) {
      const { kind } = await wait.once({ kind: "take", firstTimeoutMs: LONGEST_ATTEMPT_MS }, (signal) =>
        store.write({ kind: "want", at, until: wanted }, signal),
      );
      if (kind === "applied") return session.contended().sees({ ...row, wanted });
    }
    // The row had no holder at these moments, so there was nobody to tell.
    blocked.markedAt = before;
  } catch (cause) {
    wait.call.inContext(() => publish("dynamutex:wait-failed", { name: at.name, cause }));
  }
}
