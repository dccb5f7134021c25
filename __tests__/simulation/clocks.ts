import { type Clock, stopwatches } from "../../lib/time/clock.js";
import { tableClockOn } from "../../lib/time/table-clock.js";
import type { Process } from "./machine.js";
import { MAX_SKEW_MS } from "./schedule.js";

/** The library's own clocks, on a simulated machine. */
export function clockOf(kind: "table" | "system", { time, timersOfClock }: Process): Clock {
  if (kind === "table") return tableClockOn({ time, ...timersOfClock });
  return {
    ...stopwatches(time),
    ...timersOfClock,
    wall: () => ({ earliest: time.wall() - MAX_SKEW_MS, latest: time.wall() + MAX_SKEW_MS }),
  };
}
