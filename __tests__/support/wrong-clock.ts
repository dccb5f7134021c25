import { type Clock, systemClock, timers } from "../../lib/time/clock.js";
import { tableClockOn } from "../../lib/time/table-clock.js";

/** The clock of a host that trusts its own, and is wrong. Its stopwatches are right: only the time of day is off. */
export function wrongClock(wrongByMs: number): Clock {
  const clock = systemClock({ maxSkewMs: 0 });
  return {
    ...clock,
    wall: () => {
      const now = Date.now() + wrongByMs;
      return { earliest: now, latest: now };
    },
  };
}

/** The clock of a host that is as wrong, and asks the table. */
export function tableClockOnWrongHost(wrongByMs: number): Clock {
  return tableClockOn({
    ...timers,
    time: { monotonic: () => performance.now(), wall: () => Date.now() + wrongByMs },
  });
}
