import { LockStoreError } from "../errors.js";
import type { Address } from "../protocol/addresses.js";
import type { Row } from "../protocol/row.js";
import { answeredWithin } from "../session/overdue.js";
import { LONGEST_ATTEMPT_MS } from "../session/retry.js";
import type { Session } from "../session/session.js";
import { type Bounds, boundsOf, isTimeKnown } from "../time/clock.js";
import type { Wait } from "./wait.js";

/** At most one acquisition for one tick, ever: a tick that the caller names, or the current period on the table's clock. */
export type Once = (
  | { readonly kind: "tick"; readonly tick: number }
  | { readonly kind: "period"; readonly everyMs: number }
) & {
  /** With `untilSuccess`: the tick is due until a run of it succeeds, or this many have begun. Undefined: it is granted once. */
  readonly maxAttempts?: number | undefined;
  /** The claims of this call that may have used a tick up, although nothing has run for it. */
  readonly inVain: ClaimsInVain;
};

export interface ClaimsInVain {
  /** The ticks of claims without an answer, and why each claim failed. */
  readonly doubtfulTicks: Map<number | undefined, unknown>;
  /** The uuids of claims that were refused: a late copy of one may still take the tick. */
  readonly refused: Set<string | undefined>;
}

/** The longest that a call waits until the clock can tell which period it is. The library's own clocks need less. */
const MOST_DOUBT_MS = 5_000;

/** How many reads of its own a call sends to learn the time. */
const MOST_READS = 3;

/**
 * Makes sure that the table's time is known, by reading the row that is about to be taken: the reply tells the time, and
 * often that the lock is held, so that no write is needed.
 *
 * @returns the row as it was read, if this call read it.
 * @throws {@link LockStoreError} if replies do not tell the time; what ended the wait.
 */
export async function learnTime(session: Session, at: Address, wait: Wait): Promise<Row | undefined> {
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
    const row = await wait.ask(read, () => (isShared() ? shared() : undefined));
    wait.endSignal.throwIfAborted();
    if (own === undefined) {
      // Another call's reply counts for this one. If it told nothing, this one reads for itself.
      if (!isTimeKnown(clock)) await wait.again();
      continue;
    }
    session.sightings.note(at, row);
    if (isTimeKnown(clock)) return row;
    reads += 1;
    // If the host was suspended during the read, the reply leaves the bounds wide; the reply to another read does not.
    if (clock.wall() !== undefined && reads < MOST_READS) {
      await wait.again();
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
 * The tick to ask for now.
 *
 * A period is named by its beginning, in epoch ms on the table's clock, so that the same lock may get another `everyMs` one
 * day. The call asks for the period of `earliest`: one that has begun, whatever the true time is. Near a period boundary, with
 * `earliest` before it and `latest` after it, the current period is unknown. A claim for the earlier period could answer `done`
 * and leave the later one without a run, or run the earlier one beside another host's run of the later one. So the call waits
 * until the later period has certainly begun, which takes no longer than the bounds are wide.
 */
export async function tickNow(session: Session, at: Address, once: Once, wait: Wait): Promise<number> {
  if (once.kind === "tick") return once.tick;
  const { clock } = session;
  for (;;) {
    await learnTime(session, at, wait);
    const { earliest, latest }: Bounds = boundsOf(clock);
    const begins = Math.floor(earliest / once.everyMs) * once.everyMs;
    const doubt = begins + once.everyMs - earliest;
    // Bounds that are wider than the period can never tell.
    const tells = latest < begins + once.everyMs || latest - earliest >= once.everyMs;
    if (tells || doubt > MOST_DOUBT_MS) return begins;
    const leftMs = wait.until() - clock.atMost();
    if (leftMs <= 0) throw new LockStoreError(inDoubt(at, once.everyMs), { transient: true });
    await clock.sleep(Math.min(Math.ceil(doubt), leftMs), wait.endSignal);
  }
}

const inDoubt = ({ name }: Address, everyMs: number): string =>
  `Lock ${JSON.stringify(name)}: the table's answers were too slow to tell which period of ${everyMs} ms it is; try again`;
