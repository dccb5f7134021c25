import { type Clock, timers } from "../../lib/time/clock.js";
import { tableClockOn } from "../../lib/time/table-clock.js";

/** The clock of a host whose own is wrong, and which asks the table. Its stopwatches are right: only the time of day is off. */
export function tableClockOnWrongHost(wrongByMs: number): Clock {
  return tableClockOn({
    ...timers,
    time: { monotonic: () => performance.now(), wall: () => Date.now() + wrongByMs },
  });
}
