/** Who listens to a signal that a caller has given us, and what takes our own listener off it. */
interface Listening {
  readonly listeners: Set<() => void>;
  readonly stop: () => void;
}

const signals = new WeakMap<AbortSignal, Listening>();

/**
 * Calls `listener` when the signal aborts; the answer ends that. Whoever shares one signal among many calls, for the end
 * of a program say, has one listener of ours on it: from the eleventh on Node would warn of a leak.
 */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  const listening = signals.get(signal) ?? startListening(signal);
  // A call of its own, should somebody listen twice.
  const own = (): void => listener();
  listening.listeners.add(own);
  return () => {
    listening.listeners.delete(own);
    if (listening.listeners.size === 0 && signals.get(signal) === listening) listening.stop();
  };
}

function startListening(signal: AbortSignal): Listening {
  const listeners = new Set<() => void>();
  const abort = (): void => {
    signals.delete(signal);
    for (const listener of listeners) listener();
  };
  const stop = (): void => {
    signals.delete(signal);
    signal.removeEventListener("abort", abort);
  };
  const listening = { listeners, stop };
  signals.set(signal, listening);
  signal.addEventListener("abort", abort, { once: true });
  return listening;
}
