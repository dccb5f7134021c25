import { type Clock, systemClock } from "../../lib/clock.js";

/** The clock of a host that trusts its own, and is wrong. Its stopwatches are right: only the time of day is off. */
export function wrongClock(wrongByMs: number): Clock {
  const clock = systemClock({ maxSkewMs: 0 });
  return {
    ...clock,
    wall: () => {
      const now = clock.guess() + wrongByMs;
      return { earliest: now, latest: now };
    },
    guess: () => clock.guess() + wrongByMs,
  };
}
