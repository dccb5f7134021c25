import { getEventListeners, getMaxListeners } from "node:events";

/** How many listeners a signal has, if Node takes so many for a leak and warns of them. */
export function leakOn(signal: AbortSignal | undefined): readonly number[] {
  if (signal === undefined) return [];
  const { length } = getEventListeners(signal, "abort");
  return length > boundOf(signal) ? [length] : [];
}

function boundOf(signal: AbortSignal): number {
  try {
    // 0 says that there is no bound.
    return getMaxListeners(signal) || Number.POSITIVE_INFINITY;
  } catch {
    // Node 20 says so of a signal without a bound.
    return Number.POSITIVE_INFINITY;
  }
}
