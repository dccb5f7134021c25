import { type Requests, Scheduler } from "../../lib/session/requests.js";
import type { Clock } from "../../lib/time/clock.js";

/** What a session shares among its requests, for what is tested without one. */
export function requestsOn(clock: Clock): Requests {
  return { clock, scheduler: new Scheduler(clock), random: Math.random };
}
