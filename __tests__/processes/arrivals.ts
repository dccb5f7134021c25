import { type FaultProxy, passOn, type RecordedRequest } from "../support/fault-proxy.js";

/** When requests reached the proxy, in milliseconds on this process's stopwatch and by its time of day. */
export interface Arrival {
  readonly request: RecordedRequest;
  readonly stopwatch: number;
  readonly wall: number;
}

/** Notes the arrival of every request from now on. It touches none. */
export function noteArrivals(proxy: FaultProxy): readonly Arrival[] {
  const arrivals: Arrival[] = [];
  proxy.on((request) => {
    arrivals.push({ request, stopwatch: performance.now(), wall: Date.now() });
    return false;
  }, passOn());
  return arrivals;
}
