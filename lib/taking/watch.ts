import { publish } from "../diagnostics.js";
import type { MutexSettings } from "../options/mutex.js";
import { markInNumber, needInMark, numberOfMark } from "../protocol/mark.js";
import type { Row } from "../protocol/row.js";
import { WANTED_FOR_MS } from "../session/contention.js";
import { LONGEST_ATTEMPT_MS } from "../session/retry.js";
import type { Session } from "../session/session.js";
import type { Bounds } from "../time/clock.js";
import type { Bid } from "./bid.js";
import { looksFree } from "./claim.js";
import { LONGEST_JITTER } from "./polling.js";
import type { Target } from "./row-lease.js";
import type { InTheWay } from "./row-take.js";
import type { Blocked } from "./view.js";

/** How soon a waiter marks again, if the row shows no mark: its own failed, or was lost with the row. */
const MARK_AGAIN_MS = 5_000;

/** How often a mark is sent at most, where the row has no holder at that moment: a busy host takes it again right away. */
const MARK_TRIES = 3;

/** How many answers a waiter for one row needs, at most, from a release to its take. */
export const ANSWERS = 3;

/** For how long a process stands back, by default, for a mark that does not say how long its writer needs. */
const UNSAID_NEED_MS = 800;

/** How a bid marks the rows that it watches. */
export interface Marking {
  /** Default: that of its view. */
  readonly blocked?: Blocked;
  /** How often it looks. Default: as the row's target says. */
  readonly poll?: MutexSettings["poll"];
  /** How many answers it needs from a release to its take. Default: {@link ANSWERS}. */
  readonly answers?: number;
}

/**
 * Polls the row until it looks free, and marks it once others have kept it for `handOverMs`, one holder or several in turn. If the
 * bid is withdrawn meanwhile, the next one of its view goes on.
 */
export async function watch(
  session: Session,
  { target, row: first }: InTheWay,
  bid: Bid,
  marking: Marking = {},
): Promise<undefined> {
  const { sightings } = session;
  const { view } = bid;
  const { at, settings } = target;
  // Before anything is awaited: others count from the first refusal.
  const { blocked = view.blocked } = marking;
  view.inTheWay = undefined;
  if (looksFree(session, target, first)) {
    // The claim was refused, but the row looks free by now: mostly the next claim takes it.
    await bid.again();
    return undefined;
  }
  const { polling } = view;
  const { poll = settings.poll } = marking;
  for (let row = first; !looksFree(session, target, row); ) {
    bid.withdrawn.throwIfAborted();
    view.inTheWay = [{ target, row }];
    bid.saw(row);
    session.contended().waitsFor(row);
    // The refused claim has just shown the first row, so do not mark it: if its section ends by the next look, no hint is needed.
    if (row !== first) await mark(session, target, row, bid, { ...marking, blocked });
    await polling.pause(bid, poll, untilFree(session, target, row));
    const next = await bid.ask((signal) => session.store.read(at, { consistent: false }, signal));
    sightings.note(at, next);
    if (next === undefined) break;
    bid.call.onSeen?.(next);
    // A new holder may release soon.
    if (next.uuid !== row.uuid) polling.set();
    row = next;
  }
  view.inTheWay = undefined;
  bid.tries();
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
 * failure does not end the call.
 */
export async function mark(
  session: Session,
  { at, settings }: Target,
  row: Row,
  bid: Bid,
  { blocked = bid.view.blocked, answers = ANSWERS }: Marking = {},
): Promise<void> {
  const { clock, store } = session;
  const now = clock.atLeast();
  if (now - blocked.since < settings.handOverMs || now - blocked.markedAt < MARK_AGAIN_MS) return;
  const bounds = clock.wall();
  if (row.uuid === undefined || bounds === undefined || isMarkedFor(session, settings, row, answers)) return;
  const until = bounds.latest + Math.min(WANTED_FOR_MS, bid.remainingMs);
  const wanted = numberOfMark({ until, needMs: needMsOf(session, settings.poll, answers) });
  const before = blocked.markedAt;
  blocked.markedAt = now;
  try {
    for (let tries = 1; tries <= MARK_TRIES; tries += 1) {
      const { kind } = await bid.once({ kind: "take", firstTimeoutMs: LONGEST_ATTEMPT_MS }, (signal) =>
        store.write({ kind: "want", at, until: wanted }, signal),
      );
      if (kind === "applied") return session.contended().sees({ ...row, wanted });
    }
    // The row had no holder at these moments, so there was nobody to tell.
    blocked.markedAt = before;
  } catch (cause) {
    // It may not have left: the next bid may mark.
    if (bid.withdrawn.aborted) blocked.markedAt = before;
    bid.call.inContext(() => publish("dynamutex:wait-failed", { name: at.name, cause }));
  }
}
