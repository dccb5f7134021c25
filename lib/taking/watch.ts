import { publish } from "../diagnostics.js";
import type { Row } from "../protocol/row.js";
import { sendOnce } from "../session/requests.js";
import { LONGEST_ATTEMPT_MS } from "../session/retry.js";
import type { Session } from "../session/session.js";
import type { Bounds } from "../time/clock.js";
import type { Target } from "./acquisition.js";
import { type InTheWay, looksFree } from "./claim.js";
import type { Wait } from "./wait.js";

/** For how long a waiter's mark on a row counts. */
const WANTED_FOR_MS = 60_000;

/** How soon the same holder's row is marked again, if it shows no mark: that failed, or it is over. */
const MARK_AGAIN_MS = 5_000;

/** How a row is watched. */
interface Watching {
  /** Asked before each look: whether to go on. */
  readonly goOn?: () => boolean;
  /** How long the same holder has to be seen before its row is marked as wanted. */
  readonly markAfterMs?: number;
}

/** Looks at the row until it looks free. */
export async function watch(
  session: Session,
  { target, row: first }: InTheWay,
  wait: Wait,
  { goOn = () => true, markAfterMs = 0 }: Watching = {},
): Promise<void> {
  const { clock, random, sightings, store } = session;
  const { at, settings } = target;
  const { minMs, maxMs } = settings.poll;
  let interval = minMs;
  let row = first;
  let marked: string | undefined;
  let markedAt = 0;
  let seenFirst = clock.atLeast();
  // The table has just refused it, or has shown it to be free by now: mostly the next claim takes it.
  if (looksFree(session, target, row)) return await wait.pacing.again();
  while (!looksFree(session, target, row) && goOn()) {
    wait.throwIfEnough();
    wait.saw(row);
    const jittered = interval * (0.75 + random() / 2);
    await clock.sleep(Math.min(jittered, Math.max(1, untilFree(session, target, row))), wait.enough);
    wait.pacing.paused();
    const next = await wait.persist({ kind: "read", attemptMs: LONGEST_ATTEMPT_MS, until: wait.until }, (signal) =>
      store.read(at, { consistent: false }, signal),
    );
    sightings.note(at, next);
    if (next === undefined) return;
    // Not at the first look: a section that ends within a poll needs no hint.
    const now = clock.atLeast();
    if (next.uuid !== row.uuid) seenFirst = now;
    else if (now - seenFirst >= markAfterMs && (next.uuid !== marked || now - markedAt >= MARK_AGAIN_MS)) {
      [marked, markedAt] = [next.uuid, now];
      await mark(session, target, next, wait);
    }
    // A new holder may release soon.
    interval = next.uuid === row.uuid ? Math.min(maxMs, interval * 1.5) : minMs;
    row = next;
  }
}

/** Whether another host says that it waits for the lock. A hint: without bounds it counts as current. */
export function isWanted(row: Row, bounds: Bounds | undefined): boolean {
  return row.wanted !== undefined && (bounds === undefined || row.wanted > bounds.earliest);
}

/** Milliseconds until a takeover of this row becomes possible, if nothing is done to it. */
export function untilFree({ sightings, clock }: Session, { at, settings: { takeover } }: Target, row: Row): number {
  const unchanged = sightings.untilUnchanged(at);
  const bounds = takeover === "expired" ? clock.wall() : undefined;
  return bounds === undefined ? unchanged : Math.min(unchanged, row.expires + 1 - bounds.earliest);
}

/**
 * Marks a holder's row as wanted, unless it is marked already, so that its process stops handing the lock over among its
 * own sections. A mark expires, because waiters die. It is a hint: its failure does not end the wait.
 */
async function mark(session: Session, { at }: Target, row: Row, wait: Wait): Promise<void> {
  const bounds = session.clock.wall();
  if (row.uuid === undefined || bounds === undefined || isWanted(row, bounds)) return;
  const until = Math.ceil(bounds.latest + Math.min(WANTED_FOR_MS, wait.remainingMs));
  const { enough } = wait;
  await sendOnce(session, { kind: "take", attemptMs: LONGEST_ATTEMPT_MS, enough }, (signal) =>
    session.store.write({ kind: "want", at, until }, signal),
  ).catch((cause) => publish("dynamutex:wait-failed", { name: at.name, cause }));
}
