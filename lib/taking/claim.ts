import { LockStoreError } from "../errors.js";
import type { LockData } from "../lock-info.js";
import { mayTake } from "../protocol/may-take.js";
import type { Row } from "../protocol/row.js";
import type { Take } from "../protocol/writes.js";
import { Copies, firstTimeoutMs } from "../session/requests.js";
import { isTransient } from "../session/retry.js";
import type { Session } from "../session/session.js";
import { isTimeKnown } from "../time/clock.js";
import type { Bid } from "./bid.js";
import { learnTime, type Once, tickNow } from "./known-time.js";
import type { RowLease, Target } from "./row-lease.js";
import { type InTheWay, type RowsInTheWay, RowTake } from "./row-take.js";
import { throwIfTooSlow } from "./too-slow.js";

/** The most writes of one try: a refusal may show that the row remembers something, or is free by now. */
const MOST_TRIES = 3;

export interface ClaimOptions {
  readonly data?: LockData | undefined;
  readonly once?: Once | undefined;
  readonly after?: Take["after"];
  /** No copy of a write leaves later than this, on `atMost`. Default: the bounds of the bid. */
  readonly until?: (() => number) | undefined;
}

/**
 * Why a claim was refused.
 *
 * - `held`: another holder has a row.
 * - `done`: this tick was already granted or, with `untilSuccess`, has succeeded. That stays so for ever.
 * - `superseded`: with `untilSuccess`, a later tick was granted.
 * - `gave-up`: with `untilSuccess`, `maxAttempts` runs of this tick have begun.
 */
export type Refusal = "held" | "done" | "superseded" | "gave-up";

export type Claimed<Granted> =
  | { readonly kind: "granted"; readonly granted: Granted }
  | { readonly kind: Refusal; readonly inTheWay: RowsInTheWay };

/**
 * Tries to take rows: one conditional write, and up to two more while the refusal itself shows that the rows are free.
 *
 * @throws the store's error, after retries in the time that `bid` allows.
 */
export async function tryClaim<Granted>(
  session: Session,
  bid: Bid,
  send: () => Promise<Claimed<Granted>>,
): Promise<Claimed<Granted>> {
  for (let tries = 1; ; tries += 1) {
    const result = await send();
    if (result.kind !== "held" || tries === MOST_TRIES) return result;
    if (!result.inTheWay.every(({ target, row }) => looksFree(session, target, row))) return result;
    bid.withdrawn.throwIfAborted();
  }
}

/** The table's answer to a claim. */
type Answer = { readonly kind: "applied" | "refused"; readonly retried?: boolean };

/** One claim: the take of a row, or the takes of several rows in one transaction. All copies of a claim are the same. */
export interface Taking<Outcome extends Answer, Granted> {
  readonly uuids: readonly string[];
  /** When its first copy left, on `atMost`; Infinity before that. */
  readonly sentAt: number;
  /** @param inTime whether a copy may still leave. */
  send(signal: AbortSignal, inTime: () => boolean): Promise<Outcome>;
  /** What the claim has taken, if this copy or an earlier one was applied. */
  granted(outcome: Outcome): Granted | undefined;
  /** Gives back what an earlier copy has taken. @returns the rows of other holders. */
  refused(outcome: Outcome): readonly InTheWay[];
  /** Removes what a copy of the claim has taken, now or when it arrives. */
  abandon(): void;
}

/** Takes one row: one write, sent until it is answered or its lease would be over. */
export function claim(
  session: Session,
  target: Target,
  bid: Bid,
  options: ClaimOptions = {},
): Promise<Claimed<RowLease>> {
  const { data, once, after } = options;
  const purpose = { data, maxAttempts: once?.maxAttempts, after };
  return claimBy(session, target, bid, options, (tick) => new RowTake(session, target, { ...purpose, tick }));
}

/**
 * Sends one take after the other until one is answered.
 * @param first of the rows to take the one with the shortest lease.
 */
export async function claimBy<Outcome extends Answer, Granted>(
  session: Session,
  first: Target,
  bid: Bid,
  { once, after, until = bid.until }: ClaimOptions,
  takingFor: (tick: number | undefined) => Taking<Outcome, Granted>,
): Promise<Claimed<Granted>> {
  const { ttlMs, safetyMarginMs, poll } = first.settings;
  const leaseMs = ttlMs - safetyMarginMs;
  /** Why the last take without an answer failed. */
  let failure: unknown;
  for (let ownInTheWay = 0; ; ) {
    bid.withdrawn.throwIfAborted();
    if (!isTimeKnown(session.clock)) {
      const row = await learnTime(session, first.at, bid);
      // Only the write tells for certain whether a tick is done.
      if (once === undefined && row !== undefined && !looksFree(session, first, row)) {
        bid.saw(row);
        return { kind: "held", inTheWay: [{ target: first, row }] };
      }
    }
    const tick = once && (await tickNow(session, first.at, once, bid));
    const taking = takingFor(tick);
    const copies = new Copies();
    const end = (): number => Math.min(taking.sentAt + leaseMs, until());
    const inTime = (): boolean => session.clock.atMost() < end();
    const persistence = { kind: "take", firstTimeoutMs: firstTimeoutMs(ttlMs), until: end } as const;
    let outcome: Outcome | undefined;
    try {
      outcome = await bid.persistAtKnownTime(persistence, (signal) => copies.count(taking.send(signal, inTime)));
    } catch (error) {
      once?.inVain.doubtfulTicks.set(tick, error);
      failure = error;
      // Only the table's answer is certain. Without one, a copy may have been applied: the SDK's own retries count as copies.
      const isDoubtful = error instanceof LockStoreError && (error.transient || error.retried);
      if (isDoubtful || copies.sent > 1) taking.abandon();
      bid.withdrawn.throwIfAborted();
      if (isTransient(error)) throwIfTooSlow(session, bid, first, error);
      // The copies of this take have already paused until its lease would be over.
      if (!isTransient(error) || session.clock.atMost() >= until()) throw error;
      continue;
    }
    if (outcome === undefined) {
      // The time has to be learned first.
      await bid.again();
      continue;
    }
    const granted = taking.granted(outcome);
    if (granted !== undefined) return { kind: "granted", granted };
    const others = taking.refused(outcome);
    // Only the last copy was refused for certain: an earlier copy without an answer may still arrive, and block others.
    if (copies.unanswered > 0 || outcome.retried) taking.abandon();
    for (const uuid of taking.uuids) once?.inVain.refused.add(uuid);
    for (const { target, row } of others) {
      session.sightings.note(target.at, row);
      bid.saw(row);
    }
    const inTheWay = others as unknown as RowsInTheWay;
    const kind = whyRefused(session, others, tick, once);
    // With `untilSuccess`, `done` means that a success was recorded. Otherwise the tick may have been granted to this very
    // call, which has run nothing.
    if (kind === "done" && once?.maxAttempts === undefined) throwIfTickIsOwn(inTheWay[0], once);
    const isOwn = others.every(({ row }) => session.sightings.isDisowned(row));
    if (kind !== "held" || !isOwn || after !== undefined) return { kind, inTheWay };
    // Only earlier claims of this process are in the way, and no section uses them: the next claim names their rows, and takes
    // them over.
    ownInTheWay += 1;
    const isLast = bid.call.isOverdue && ownInTheWay === MOST_TRIES;
    if (isLast || session.clock.atMost() >= until()) throw inOwnWay(first, failure);
    await session.clock.sleep(Math.min(poll.minMs, until() - session.clock.atMost()), bid.withdrawn);
  }
}

/** @param cause the failure of an earlier claim of this call, if that got no answer. */
function inOwnWay({ at }: Target, cause: unknown): LockStoreError {
  return new LockStoreError(
    `Lock ${JSON.stringify(at.name)} is not held: an earlier claim of this process got no answer, and its row was there ` +
      "to the end; try again",
    { transient: true, cause },
  );
}

/** @throws {@link LockStoreError} if the tick was taken by an earlier claim of this call, as far as is known. */
function throwIfTickIsOwn({ target, row }: InTheWay, once: Once | undefined): void {
  if (once?.inVain.doubtfulTicks.has(row.tick)) throw once.inVain.doubtfulTicks.get(row.tick);
  if (!once?.inVain.refused.has(row.uuid)) return;
  throw new LockStoreError(
    `Lock ${JSON.stringify(target.at.name)}: tick ${row.tick} was taken by a late copy of a claim of this call that had been ` +
      "refused, so nothing has run for it",
  );
}

/** Why no claim for this tick can be granted any more, as a row shows; undefined if one can. */
export function endedBy(row: Row, tick: number | undefined, once: Once | undefined): "done" | "superseded" | undefined {
  if (tick === undefined || row.tick === undefined || row.tick < tick) return undefined;
  if (once?.maxAttempts === undefined) return "done";
  if (row.tick > tick) return "superseded";
  return row.due === tick ? undefined : "done";
}

/** Why a claim was refused, by the rows in its way. While the last run of a tick may still go on, the reason is `held`. */
function whyRefused(
  session: Session,
  others: readonly InTheWay[],
  tick: number | undefined,
  once: Once | undefined,
): Refusal {
  const { maxAttempts = Number.POSITIVE_INFINITY } = once ?? {};
  for (const { target, row } of others) {
    const ended = endedBy(row, tick, once);
    if (ended !== undefined) return ended;
    const isLast = tick !== undefined && session.sightings.nextAttempt(target.at, tick).attempt > maxAttempts;
    if (isLast && looksFree(session, target, row)) return "gave-up";
  }
  return "held";
}

/** Whether a claim made now would take this row, which was noted before. */
export function looksFree({ sightings }: Session, { at, settings }: Target, row: Row): boolean {
  return mayTake(row, sightings.knowledge(at, settings.takeover));
}

/** Whether a claim made now would take this row, by the rows that a look has shown. */
export function looksFreeIn(session: Session, target: Target, rows: readonly Row[]): boolean {
  const row = rows.find(({ sort }) => sort === target.at.sort);
  return row === undefined || looksFree(session, target, row);
}
