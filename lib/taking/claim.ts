import { publish } from "../diagnostics.js";
import { LockStoreError } from "../errors.js";
import type { LockData } from "../lock-info.js";
import { attemptMs, stampNow, timeForPeople } from "../protocol/lease-time.js";
import { admits, earliestOf, isDone } from "../protocol/row.js";
import { isTransient, LONGEST_ATTEMPT_MS } from "../session/retry.js";
import type { Host } from "../session/session.js";
import type { Claim, Row, TakeOutcome, Terms } from "../store.js";
import type { Clock } from "../time/clock.js";
import { withdraw } from "./abandoned-claims.js";
import type { Grant, Once, Target } from "./grant.js";
import { tickNow } from "./tick.js";
import type { Wait } from "./wait.js";

/** How well a fencing token's seed has to be known: should the row be deleted, the next seed must be later. */
const SEED_WITHIN_MS = 4_000;

/** What a try may add. */
export interface Try {
  readonly once?: Once | undefined;
  /** No copy of a write leaves later than this, on `atMost`. Default: the bounds of the wait. */
  readonly until?: (() => number) | undefined;
}

/** A row that is in the way: held by somebody else, or done for the tick that was asked for, now and for ever. */
export interface Refused {
  readonly kind: "held" | "done";
  readonly row: Row;
}

/** One write, sent until it is answered or the lease that it asks for would be over. */
export async function claim(
  host: Host,
  target: Target,
  data: LockData | undefined,
  wait: Wait,
  { once, until = wait.until }: Try = {},
): Promise<Grant | Refused> {
  const doubtful = new Map<number, unknown>();
  for (;;) {
    wait.throwIfEnough();
    const inTheWay = lacksTime(host, target) ? await learnTime(host, target, wait) : undefined;
    // Whether a tick is done, only the write tells for certain.
    if (inTheWay !== undefined && once === undefined) return { kind: "held", row: inTheWay };
    const tick = once && (await tickNow(host, target.name, once, wait));
    const terms = termsNow(host, target, tick);
    const { grant, claim } = newClaim(host, target, data, terms, tick);
    const attempt = { sent: 0, unanswered: 0 };
    let outcome: TakeOutcome;
    try {
      outcome = await send(host, target, claim, terms, { wait, until, sentAt: grant.sentAt, attempt });
    } catch (error) {
      if (tick !== undefined) doubtful.set(tick, error);
      // Nobody knows whether a copy was applied, or will be: what it took must go, now or when it arrives.
      if (isTransient(error) || attempt.sent > 1) host.detach(withdraw(host, target, grant, { certain: false }));
      wait.throwIfEnough();
      if (!isTransient(error) || host.clock.atMost() >= until()) throw error;
      continue;
    }
    // Our own uuid refuses us: an earlier copy of this claim was applied and its reply lost. The lock is ours.
    if (outcome.kind === "granted" || outcome.row.uuid === claim.uuid) {
      announce(host, target, grant, wait, outcome.kind === "granted" ? takeoverOf(outcome.replaced, terms) : undefined);
      const { fence } = outcome.kind === "granted" ? outcome : outcome.row;
      return target.settings.fencing ? { ...grant, fence } : grant;
    }
    // Only this copy was refused for certain: one that got no answer may still arrive, and stand in everybody's way.
    if (attempt.unanswered > 0) host.detach(withdraw(host, target, grant, { certain: false }));
    const { row } = outcome;
    host.observations.note(target.name, row);
    wait.saw(row);
    if (!isDone(row, tick)) return outcome;
    // It may have been an earlier claim of this very call that took the tick, and nothing has run.
    if (row.tick !== undefined && doubtful.has(row.tick)) throw doubtful.get(row.tick);
    return { kind: "done", row };
  }
}

/** A first fencing token is the table's time: whether this process does not know it, or not well any more. */
function lacksTime({ clock }: Host, { settings }: Target): boolean {
  return settings.fencing && !knowsTime(clock);
}

/** Reads, because the reply tells the time. @returns the row, if it is in the way: then nothing needs to be written. */
async function learnTime(host: Host, target: Target, wait: Wait): Promise<Row | undefined> {
  const row = await wait.persist(LONGEST_ATTEMPT_MS, wait.until, (signal) =>
    host.store.read(target.name, { consistent: true }, signal),
  );
  host.observations.note(target.name, row);
  if (host.clock.wall() === undefined) {
    throw new LockStoreError(
      `Lock ${JSON.stringify(target.name)}: fencing tokens begin at the table's time, which the clock does not know after a reply`,
    );
  }
  if (row === undefined || looksFree(host, target, row)) return undefined;
  wait.saw(row);
  return row;
}

function knowsTime(clock: Clock): boolean {
  const bounds = clock.wall();
  if (bounds === undefined) return false;
  return clock.listen === undefined || bounds.latest - bounds.earliest <= SEED_WITHIN_MS;
}

/** How many copies of a claim were sent, and to how many of them the table has said nothing. */
export interface Copies {
  sent: number;
  unanswered: number;
}

/** Counts a request as unanswered until the table has said something to it: then no copy of it is on its way. */
async function answered<T>(count: Copies, request: Promise<T>): Promise<T> {
  count.unanswered += 1;
  try {
    const outcome = await request;
    count.unanswered -= 1;
    return outcome;
  } catch (error) {
    if (error instanceof LockStoreError && error.answered) count.unanswered -= 1;
    throw error;
  }
}

/** What the sending of one claim goes by, and what came of its copies. */
interface Sending {
  readonly wait: Wait;
  readonly until: () => number;
  readonly sentAt: number;
  readonly attempt: Copies;
}

/** Sends a claim until it is answered or the lease that it asks for would be over. */
function send(
  host: Host,
  { settings }: Target,
  claim: Claim,
  terms: Terms,
  { wait, until, sentAt, attempt }: Sending,
): Promise<TakeOutcome> {
  const leaseEnds = sentAt + settings.ttlMs - settings.safetyMarginMs;
  const request = (signal: AbortSignal) => host.store.take(claim, terms, signal);
  return sendCounted(wait, attempt, { ttlMs: settings.ttlMs, until: () => Math.min(leaseEnds, until()) }, request);
}

/** Sends what asks for leases of so many ms until it is answered or time is up, and counts its copies. */
export function sendCounted<T>(
  wait: Wait,
  attempt: Copies,
  { ttlMs, until }: { readonly ttlMs: number; readonly until: () => number },
  request: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return wait.persist(attemptMs(ttlMs), until, (signal) => {
    attempt.sent += 1;
    return answered(attempt, request(signal));
  });
}

/** A fresh uuid and a lease that begins now. The stopwatch is read before the first copy leaves. */
export function newClaim(
  host: Host,
  target: Target,
  data: LockData | undefined,
  { kept, ticked = false, unchanged }: Terms,
  tick: number | undefined,
): { grant: Grant; claim: Claim } {
  const { clock } = host;
  const { ttlMs, fencing } = target.settings;
  const bounds = fencing ? clock.wall() : undefined;
  const fenceSeed = bounds && Math.ceil(bounds.latest);
  const acquired = timeForPeople(clock);
  const uuid = host.uuid();
  const { expires, guessed } = stampNow(clock, ttlMs);
  const sentAt = clock.atMost();
  const fence = undefined;
  const grant: Grant = {
    kind: "granted",
    uuid,
    expires,
    guessed,
    acquired,
    sentAt,
    kept,
    ticked,
    tick,
    unchanged,
    fence,
    data,
  };
  return {
    grant,
    claim: { name: target.name, uuid, expires, ttlMs, owner: host.owner, acquired, data, tick, fenceSeed },
  };
}

/** What may be taken, by what is known now. A claim for a tick leaves a row that is kept, whatever was there. */
export function termsNow(host: Host, target: Target, tick?: number): Terms {
  const { observations, clock } = host;
  const trustsClock = target.settings.takeover !== "unchanged";
  return {
    earliest: earliestOf(trustsClock ? clock.wall() : undefined),
    unchanged: observations.unchanged(target.name, { holders: trustsClock }),
    kept: target.settings.fencing || tick !== undefined || observations.kept(target.name),
    ticked: tick !== undefined || observations.ticked(target.name),
  };
}

/** Whether the row, which has been noted, would be replaced by a claim made now. */
export function looksFree(host: Host, target: Target, row: Row): boolean {
  return admits(termsNow(host, target), row);
}

/** By which rule the row of a holder that was gone was taken. */
type Takeover = "expired" | "unchanged";

/** Says that the lock is taken: what was seen of its row before is of no use any more. */
export function announce(
  host: Host,
  { name }: Target,
  { uuid }: Grant,
  wait: Wait,
  takeover: Takeover | undefined,
): void {
  host.observations.note(name, undefined);
  publish("dynamutex:acquired", { name, uuid, owner: host.owner, waitedMs: wait.waitedMs, takeover });
}

/** Undefined where nobody's row was taken. */
function takeoverOf(replaced: Row | undefined, terms: Terms): Takeover | undefined {
  if (replaced?.uuid === undefined) return undefined;
  return replaced.expires < terms.earliest ? "expired" : "unchanged";
}
