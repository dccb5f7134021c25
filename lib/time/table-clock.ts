import { publish } from "../diagnostics.js";
import { type Clock, type HostTime, hostTime, type Reading, skewOf, stopwatches, timers } from "./clock.js";
import { age, contradict, fromReply, intersect, jumped, parseDateHeader, type TableTime } from "./table-time.js";

export interface TableClockOptions {
  /**
   * By how many milliseconds the host's clock may differ from the true time, should replies come without a `Date`
   * header (a proxy may strip it). Default 1 000. That it came to this is told on the channel `dynamutex:clock`.
   */
  readonly fallbackSkewMs?: number | undefined;
}

/** What a table clock stands on: the host's time and timers, or a test's. */
export interface TableClockHost extends Pick<Clock, "sleep" | "alarm" | "stay"> {
  readonly time: HostTime;
}

/**
 * The table's own time, learned from the `Date` header of the replies that the mutex gets anyway. No host's clock is
 * trusted and no request is added: hosts whose clocks are hours apart can share a lock.
 *
 * The bounds are about a second wide after the first reply and close in on a round trip with every further one.
 * It relies on the host's wall clock for one thing: that it goes on while the host is suspended. What a suspend and a
 * step of the clock left of the far bound ends with the next reply.
 *
 * @throws {@link LockConfigError} if an option cannot work.
 *
 * @example
 * const locks = new LockTable({ tableName: "locks", clock: tableClock() }); // which is the default
 */
export function tableClock(options: TableClockOptions = {}): Clock {
  return tableClockOn({ time: hostTime, ...timers }, options);
}

/** The same on any host. */
export function tableClockOn(host: TableClockHost, options: TableClockOptions = {}): Clock {
  const fallbackSkewMs = skewOf(options, "fallbackSkewMs");
  const { time, sleep, alarm, stay } = host;
  const { atLeast, atMost, read } = stopwatches(time);
  let known: TableTime | undefined;
  let fallenBack = false;

  function learn(date: number, sent: Reading): void {
    const now = read();
    const said = fromReply(date, sent, now);
    const aged = known && age(known, now);
    if (aged !== undefined && contradict(aged, said)) {
      known = said;
      publish("dynamutex:clock", {
        event: "restarted",
        detail: `Expected a Date from ${iso(aged.earliest)} to ${iso(aged.latest)}, got ${iso(date)}: taking the table's word`,
      });
      return;
    }
    if (known === undefined || aged === undefined) known = said;
    else if (jumped(known.at, now)) known = { ...said, earliest: Math.max(aged.earliest, said.earliest) };
    else known = intersect(aged, said);
  }

  function doWithout(header: string | undefined): void {
    // What is known already stays true and ages; one reply without a date takes nothing away.
    if (known !== undefined || fallenBack) return;
    fallenBack = true;
    publish("dynamutex:clock", {
      event: "no-date",
      detail: `${header === undefined ? "No Date header" : `A Date header of ${JSON.stringify(header)}`}: trusting the host's clock, give or take ${fallbackSkewMs} ms`,
    });
  }

  return {
    atLeast,
    atMost,
    sleep,
    alarm,
    ...(stay && { stay }),
    guess: () => time.wall(),
    wall() {
      if (known !== undefined) {
        const { earliest, latest } = age(known, read());
        return { earliest, latest };
      }
      if (!fallenBack) return undefined;
      const now = time.wall();
      return { earliest: now - fallbackSkewMs, latest: now + fallbackSkewMs };
    },
    listen() {
      const sent = read();
      return (header) => {
        const date = parseDateHeader(header);
        if (date === undefined) doWithout(header);
        else learn(date, sent);
      };
    },
  };
}

function iso(time: number): string {
  return new Date(Math.round(time)).toISOString();
}
