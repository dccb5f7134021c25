import { publish } from "../diagnostics.js";
import type { LockData } from "../lock-info.js";
import { isWanted } from "../protocol/row.js";
import { bounded, LONGEST_ATTEMPT_MS } from "../session/retry.js";
import type { Host } from "../session/session.js";
import type { Row } from "../store.js";
import { claim, looksFree, type Refused, type Try } from "./claim.js";
import type { Grant, Target } from "./grant.js";
import type { Wait } from "./wait.js";

/** For how long a waiter's mark on a row counts. */
const WANTED_FOR_MS = 60_000;

/** How soon a row without a mark, although this waiter has marked it, is marked again: it failed, or it is over. */
const MARK_AGAIN_MS = 5_000;

/** How many writes one try may take: for the time, for a kept row, and for the lock. */
export const MOST_TRIES = 3;

/**
 * Tries to take the lock: one conditional write, and another where the refusal itself shows that the row is free.
 *
 * The first may be refused for what we did not know: the time (the reply tells it), or that the row is kept (then it
 * takes an update instead of a put).
 * @throws the store's error, after retries in the time that `wait` allows.
 */
export async function tryAcquire(
  host: Host,
  target: Target,
  data: LockData | undefined,
  wait: Wait,
  options: Try = {},
): Promise<Grant | Refused> {
  for (let attempt = 1; ; attempt++) {
    const result = await claim(host, target, data, wait, options);
    if (result.kind !== "held" || attempt === MOST_TRIES || !looksFree(host, target, result.row)) return result;
    wait.throwIfEnough();
  }
}

/**
 * Waits until the lock is taken.
 *
 * 1. Try to take it. A refusal shows the row, so nothing needs to be read.
 * 2. Sleep: a jittered interval that grows, and never past the moment at which a takeover becomes possible.
 * 3. Read, eventually consistent; a read is a hint. Where the row looks held, go on with 2, otherwise with 1.
 *
 * @throws the store's error if it is not transient, or if the table never answered; what ended the wait.
 */
export async function acquire(host: Host, target: Target, data: LockData | undefined, wait: Wait): Promise<Grant> {
  for (;;) {
    const result = await claim(host, target, data, wait);
    if (result.kind === "granted") return result;
    await watch(host, target, result.row, wait);
  }
}

/** How a row is watched. */
interface Watching {
  /** Asked before each look: whether to go on. */
  readonly goOn?: () => boolean;
  /** How long a holder is left in peace before its row is marked as wanted. */
  readonly markAfterMs?: number;
}

/** Looks at the row until it looks free. */
export async function watch(
  host: Host,
  target: Target,
  first: Row,
  wait: Wait,
  { goOn = () => true, markAfterMs = 0 }: Watching = {},
): Promise<void> {
  const { minMs, maxMs } = target.settings.poll;
  let interval = minMs;
  let row = first;
  let marked: string | undefined;
  let markedAt = 0;
  let seenFirst = host.clock.atLeast();
  while (!looksFree(host, target, row) && goOn()) {
    wait.throwIfEnough();
    wait.saw(row);
    const jittered = interval * (0.75 + host.random() / 2);
    await host.clock.sleep(Math.min(jittered, Math.max(1, untilFree(host, target, row))), wait.enough);
    const next = await wait.persist(LONGEST_ATTEMPT_MS, wait.until, (signal) =>
      host.store.read(target.name, { consistent: false }, signal),
    );
    host.observations.note(target.name, next);
    if (next === undefined) return;
    // Not at the first look: a section that ends within a poll needs no hint.
    const now = host.clock.atLeast();
    if (next.uuid !== row.uuid) seenFirst = now;
    else if (now - seenFirst >= markAfterMs && (next.uuid !== marked || now - markedAt >= MARK_AGAIN_MS)) {
      [marked, markedAt] = [next.uuid, now];
      await mark(host, target, next, wait);
    }
    // A new holder may be a quick one.
    interval = next.uuid === row.uuid ? Math.min(maxMs, interval * 1.5) : minMs;
    row = next;
  }
}

/** Milliseconds until a takeover of this row becomes possible, if nothing is done to it. */
function untilFree(host: Host, target: Target, row: Row): number {
  const trustsClock = target.settings.takeover !== "unchanged";
  const unchanged = host.observations.untilUnchanged(target.name, { holders: trustsClock });
  const bounds = trustsClock ? host.clock.wall() : undefined;
  return bounds === undefined ? unchanged : Math.min(unchanged, row.expires + 1 - bounds.earliest);
}

/**
 * Says on a holder's row that somebody waits for it, unless it says so already, so that its process does not go on
 * passing it among its own. It says so for a while only, because waiters die; whoever still waits then says it again.
 * A hint: that it was not written is no reason to stop waiting.
 */
async function mark(host: Host, target: Target, row: Row, wait: Wait): Promise<void> {
  const bounds = host.clock.wall();
  if (row.uuid === undefined || bounds === undefined || isWanted(row, bounds)) return;
  const { name, uuid } = { name: target.name, uuid: row.uuid };
  const until = Math.ceil(bounds.latest + Math.min(WANTED_FOR_MS, wait.remainingMs));
  await bounded(host.clock, LONGEST_ATTEMPT_MS, (signal) => host.store.want(name, uuid, until, signal)).catch((cause) =>
    publish("dynamutex:wait-failed", { name, cause }),
  );
}
