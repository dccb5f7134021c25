import { LockConfigError, LockStoreError } from "../errors.js";
import type { Address } from "../protocol/addresses.js";
import type { Row } from "../protocol/row.js";
import { answeredWithin } from "../session/overdue.js";
import { LONGEST_ATTEMPT_MS } from "../session/retry.js";
import type { Session } from "../session/session.js";
import { type Bounds, boundsOf, isTimeKnown } from "../time/clock.js";
import type { Bid } from "./bid.js";

/** At most one acquisition for one tick, ever: a tick that the caller has named, or the one that a function names on the table's clock. */
export type Once = ({ readonly kind: "tick"; readonly tick: number } | NamedByTime) & {
  /** With `untilSuccess`: the tick is due until a run of it succeeds, or this many have begun. Undefined: it is granted once. */
  readonly maxAttempts?: number | undefined;
  /** The claims of this call that may have used a tick up, although nothing has run for it. */
  readonly inVain: ClaimsInVain;
};

/** A tick named by a function of the time. */
export interface NamedByTime {
  readonly kind: "named";
  /** The tick of a moment, in epoch ms. @throws {@link LockConfigError} */
  readonly tickAt: (ms: number) => number;
  /** A call that comes up to this much before a tick begins is one for that tick. */
  readonly earlyMs: number;
}

export interface ClaimsInVain {
  /** The ticks of claims without an answer, and why each claim failed. */
  readonly doubtfulTicks: Map<number | undefined, unknown>;
  /** The uuids of claims that were refused: a late copy of one may still take the tick. */
  readonly refused: Set<string | undefined>;
}

/** The longest that a call waits, beyond `earlyMs`, until the clock can tell which tick it is. The library's own clocks need less. */
const MOST_DOUBT_MS = 5_000;

/** How many reads of its own a call sends to learn the time. */
const MOST_READS = 3;

/**
 * Makes sure that the table's time is known, by reading the row that is about to be taken: the reply tells the time, and
 * often that the lock is held, so that no write is needed.
 *
 * @returns the row as it was read, if this call read it.
 * @throws {@link LockStoreError} if replies do not tell the time; what ended the call.
 */
export async function learnTime(session: Session, at: Address, bid: Bid): Promise<Row | undefined> {
  const { clock, store } = session;
  for (let reads = 0; !isTimeKnown(clock); ) {
    let own: Promise<Row | undefined> | undefined;
    const read = (signal: AbortSignal): Promise<Row | undefined> => {
      own = store.read(at, { consistent: true }, signal);
      return share(session, own);
    };
    // Calls that wait for the time share one read, until its answer is overdue. A call whose request gets its slot after that
    // reply shares it as well.
    const shared = async (): Promise<undefined> => {
      own = undefined;
      const { readingTime } = session;
      if (readingTime === undefined) return;
      await answeredWithin(clock, readingTime.overdueAt - clock.atLeast(), readingTime.answer);
    };
    const isShared = (): boolean =>
      isTimeKnown(clock) || clock.atLeast() < (session.readingTime?.overdueAt ?? Number.NEGATIVE_INFINITY);
    const row = await bid.ask(read, () => (isShared() ? shared() : undefined));
    bid.withdrawn.throwIfAborted();
    if (own === undefined) {
      // Another call's reply counts for this one. If it told nothing, this one reads for itself.
      if (!isTimeKnown(clock)) await bid.again();
      continue;
    }
    session.sightings.note(at, row);
    if (isTimeKnown(clock)) return row;
    reads += 1;
    // If the host was suspended during the read, the reply leaves the bounds wide; the reply to another read does not.
    if (clock.wall() !== undefined && reads < MOST_READS) {
      await bid.again();
      continue;
    }
    throw new LockStoreError(
      `Lock ${JSON.stringify(at.name)}: the table's address has answered, and the reply shows no time of DynamoDB's: check what ` +
        "stands between this process and the table, or pass a `clock`, such as systemClock()",
    );
  }
  return undefined;
}

/**
 * Lets other calls wait for this read, until its answer is overdue. The longer no read is answered, the longer they wait: so in an
 * outage there are few reads.
 */
function share(session: Session, answer: Promise<Row | undefined>): Promise<Row | undefined> {
  const { clock, scheduler, readingTime: before } = session;
  const patienceMs = before === undefined ? scheduler.overdueMs : Math.min(LONGEST_ATTEMPT_MS, 2 * before.patienceMs);
  const reading = { answer, patienceMs, overdueAt: clock.atLeast() + patienceMs };
  session.readingTime = reading;
  return answer.finally(() => {
    if (session.readingTime === reading) session.readingTime = undefined;
  });
}

/**
 * The tick to ask for now: that of `earliest`, so one that has begun, whatever the true time is.
 *
 * Near the beginning of a tick, `earliest` and `latest` name two. A claim for the earlier one could answer `done` and leave the later
 * one without a run, or run the earlier one beside another host's run of the later one. A caller whose timer fired early means the
 * later one as well: if all hosts are early and are told `done`, nobody runs it. So the call asks for the tick of `latest` and
 * `earlyMs`, and waits until that has certainly begun.
 */
export async function tickNow(session: Session, at: Address, once: Once, bid: Bid): Promise<number> {
  if (once.kind === "tick") return once.tick;
  const { clock } = session;
  for (let leftMs = once.earlyMs + MOST_DOUBT_MS; ; ) {
    await learnTime(session, at, bid);
    const bounds = boundsOf(clock);
    const doubtMs = doubtOf(once, bounds);
    if (doubtMs === 0 || doubtMs > leftMs) return once.tickAt(Math.floor(bounds.earliest));
    leftMs -= doubtMs;
    bid.call.postpone(doubtMs);
    await clock.sleep(doubtMs, bid.withdrawn);
  }
}

/** In how many ms the tick that may have begun, or is about to, has certainly begun; 0 if that is the present one. */
function doubtOf({ tickAt, earlyMs }: NamedByTime, { earliest, latest }: Bounds): number {
  const from = Math.floor(earliest);
  const spanMs = Math.ceil(latest) + earlyMs - from;
  const [tick, later] = [tickAt(from), tickAt(from + spanMs)];
  if (tick === from && tickAt(from - 1) === from - 1) {
    const remedy = "must name when a period has begun, and names every moment it is given: each call would run";
    throw new LockConfigError("once", tick, remedy, { cause: tick });
  }
  if (tick === later) return 0;
  if (tick > later) {
    const remedy =
      "must not go back as time advances: use a time that is the same everywhere, rather than one of a time zone";
    throw new LockConfigError("once", later, remedy, { cause: later });
  }
  // Nothing but the order of ticks is known of the function, so the beginning is found by halving.
  let [before, since] = [0, spanMs];
  while (since - before > 1) {
    const middle = Math.floor((before + since) / 2);
    if (tickAt(from + middle) < later) before = middle;
    else since = middle;
  }
  // If the next one is as near then, the bounds are wider than the ticks, and can never tell.
  return tickAt(from + since + spanMs) === later ? since : 0;
}

/** The ticks of periods, each named by its beginning: so the same lock may get another `everyMs` one day. */
export const periods = (everyMs: number): NamedByTime["tickAt"] => {
  return (ms) => Math.floor(ms / everyMs) * everyMs;
};

/** The ticks that a caller's function names, checked. */
export function ticksOf(once: (now: Date) => Date | number): NamedByTime["tickAt"] {
  return (ms) => {
    let named: unknown;
    const of = new Date(ms).toISOString();
    try {
      named = once(new Date(ms));
    } catch (cause) {
      const remedy = `must name the tick of ${of}, and has thrown ${String(cause)}`;
      throw new LockConfigError("once", once, remedy, { cause });
    }
    // Asynchronous code is no name of a tick, and what it may reject with is said by the error below.
    if (named instanceof Promise) named.catch(() => undefined);
    // Adding 0 turns -0 into 0: a row cannot store -0.
    const tick = Number(named instanceof Date ? named.getTime() : named) + 0;
    if (!Number.isSafeInteger(tick) || !(named instanceof Date || typeof named === "number")) {
      const remedy = `must return a valid Date, or a whole number up to 2^53 - 1 either way, and does not for ${of}`;
      throw new LockConfigError("once", named, remedy, { cause: named });
    }
    if (tick > ms) {
      const remedy = `must name a tick that has begun at the time that it is given, ${of}: the previous fire of a schedule, and not the next`;
      throw new LockConfigError("once", named, remedy, { cause: named });
    }
    return tick;
  };
}
