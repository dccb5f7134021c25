import { LockStoreError } from "../errors.js";
import { answeredWithin } from "../session/overdue.js";
import { LONGEST_ATTEMPT_MS } from "../session/retry.js";
import { boundsOf, isTimeKnown } from "../time/clock.js";
const MOST_DOUBT_MS = 5_000;
const MOST_READS = 3;
export async function learnTime(session, at, wait) {
    const { clock, store } = session;
    for (let reads = 0; !isTimeKnown(clock);) {
        let own;
        const read = (signal) => {
            own = store.read(at, { consistent: true }, signal);
            return share(session, own);
        };
        const shared = async () => {
            own = undefined;
            const { readingTime } = session;
            if (readingTime === undefined)
                return;
            await answeredWithin(clock, readingTime.overdueAt - clock.atLeast(), readingTime.answer);
        };
        const isShared = () => isTimeKnown(clock) || clock.atLeast() < (session.readingTime?.overdueAt ?? Number.NEGATIVE_INFINITY);
        const row = await wait.ask(read, () => (isShared() ? shared() : undefined));
        wait.endSignal.throwIfAborted();
        if (own === undefined) {
            if (!isTimeKnown(clock))
                await wait.again();
            continue;
        }
        wait.sightings.note(at, row);
        if (isTimeKnown(clock))
            return row;
        reads += 1;
        if (clock.wall() !== undefined && reads < MOST_READS) {
            await wait.again();
            continue;
        }
        throw new LockStoreError(`Lock ${JSON.stringify(at.name)}: the table's address has answered, and the reply shows no time of DynamoDB's: check what ` +
            "stands between this process and the table, or pass a `clock`, such as systemClock()");
    }
    return undefined;
}
function share(session, answer) {
    const { clock, scheduler, readingTime: before } = session;
    const patienceMs = before === undefined ? scheduler.overdueMs : Math.min(LONGEST_ATTEMPT_MS, 2 * before.patienceMs);
    const reading = { answer, patienceMs, overdueAt: clock.atLeast() + patienceMs };
    session.readingTime = reading;
    return answer.finally(() => {
        if (session.readingTime === reading)
            session.readingTime = undefined;
    });
}
export async function tickNow(session, at, once, wait) {
    if (once.kind === "tick")
        return once.tick;
    const { clock } = session;
    for (;;) {
        await learnTime(session, at, wait);
        const { earliest, latest } = boundsOf(clock);
        const begins = Math.floor(earliest / once.everyMs) * once.everyMs;
        const doubt = begins + once.everyMs - earliest;
        const tells = latest < begins + once.everyMs || latest - earliest >= once.everyMs;
        if (tells || doubt > MOST_DOUBT_MS)
            return begins;
        const leftMs = wait.until() - clock.atMost();
        if (leftMs <= 0)
            throw new LockStoreError(inDoubt(at, once.everyMs), { transient: true });
        await clock.sleep(Math.min(Math.ceil(doubt), leftMs), wait.endSignal);
    }
}
const inDoubt = ({ name }, everyMs) => `Lock ${JSON.stringify(name)}: the table's answers were too slow to tell which period of ${everyMs} ms it is; try again`;
