import { publish } from "../diagnostics.js";
import type { Row } from "../protocol/row.js";
import { WANTED_FOR_MS } from "../session/contention.js";
import { sendOnce } from "../session/requests.js";
import { LONGEST_ATTEMPT_MS } from "../session/retry.js";
import type { Session } from "../session/session.js";
import type { Bounds } from "../time/clock.js";
import { looksFree, type Seeing } from "./claim.js";
import { Polling } from "./polling.js";
import type { InTheWay } from "./row-take.js";
import type { Target } from "./taken.js";
import type { Wait } from "./wait.js";

/** How soon a waiter marks again, if the row shows no mark: its own failed, or was lost with the row. */
const MARK_AGAIN_MS = 5_000;

/** Since when others have kept this process from a row, on `atLeast`. */
export interface Blocked {
  readonly since: number;
  /** When this process last marked the row; -Infinity if it has not. */
  markedAt: number;
  /** The pauses of its waiter, if they keep growing from one wait to the next. */
  polling?: Polling;
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
  const { sightings } = wait;
  const { at, settings } = target;
  if (looksFree(wait, target, first)) {
    // The claim was refused, but the row looks free by now: mostly the next claim takes it.
    await wait.pacing.again();
    return undefined;
  }
  const polling = new Polling(session, settings.poll);
  for (let row = first; !looksFree(wait, target, row); ) {
    wait.endSignal.throwIfAborted();
    wait.blocker.saw(row);
    session.contended().waitsFor(row);
    // The refused claim has just shown the first row, so do not mark it: if its section ends by the next look, no hint is needed.
    if (row !== first) await mark(session, target, { row, blocked, wait });
    await polling.pause(wait, untilFree(session, wait, target, row));
    const next = await wait.ask((signal) => session.store.read(at, { consistent: false }, signal));
    sightings.note(at, next);
    if (next === undefined) return undefined;
    wait.blocker.onSeen?.(next);
    // A new holder may release soon.
    if (next.uuid !== row.uuid) polling.set();
    row = next;
  }
  return undefined;
}

/** Whether a row says that others wait for it. A hint: without bounds it counts as current. */
export function isMarked(row: Row, bounds: Bounds | undefined): boolean {
  return row.wanted !== undefined && (bounds === undefined || row.wanted > bounds.earliest);
}

/** Milliseconds until a takeover of this row becomes possible, if nothing is written to it. */
export function untilFree(
  { clock }: Session,
  { sightings }: Seeing,
  { at, settings: { takeover } }: Target,
  row: Row,
): number {
  const unchanged = sightings.untilUnchanged(at);
  const bounds = takeover === "expired" ? clock.wall() : undefined;
  return bounds === undefined ? unchanged : Math.min(unchanged, row.expires + 1 - bounds.earliest);
}

/**
 * Marks a row as wanted, unless it is marked already, so that its holder's process lets others in after its turn. The mark
 * applies to whoever holds the row when it arrives; it names no holder. It expires, because waiters die. It is a hint, so its
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
  if (row.uuid === undefined || bounds === undefined || isMarked(row, bounds)) return;
  const wanted = Math.ceil(bounds.latest + Math.min(WANTED_FOR_MS, wait.remainingMs));
  const { endSignal } = wait;
  const before = blocked.markedAt;
  blocked.markedAt = now;
  try {
    const { kind } = await sendOnce(
      session,
      { kind: "take", firstTimeoutMs: LONGEST_ATTEMPT_MS, endSignal },
      (signal) => store.write({ kind: "want", at, until: wanted }, signal),
    );
    if (kind === "applied") session.contended().sees({ ...row, wanted });
    // The row had no holder at that moment, so there was nobody to tell.
    else blocked.markedAt = before;
  } catch (cause) {
    publish("dynamutex:wait-failed", { name: at.name, cause });
  }
}
