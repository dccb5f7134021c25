import { setMaxListeners } from "node:events";

/** Our listeners on a caller's signal, and what removes the one that is attached to it. */
interface Listening {
  readonly listeners: Set<() => void>;
  readonly stop: () => void;
}

const signals = new WeakMap<AbortSignal, Listening>();

/**
 * Calls `listener` when the signal aborts, until the returned function is called. All calls that share a signal have one
 * listener on it: from the eleventh on, Node would warn of a leak.
 */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  const listening = signals.get(signal) ?? startListening(signal);
  // A function of its own, in case one listener is added twice.
  const own = (): void => listener();
  listening.listeners.add(own);
  return () => {
    listening.listeners.delete(own);
    if (listening.listeners.size === 0 && signals.get(signal) === listening) listening.stop();
  };
}

/**
 * Calls `abort` with the reason of each of these signals that aborts, until the returned function is called; at once for one
 * that has aborted already.
 */
export function follow(followed: readonly (AbortSignal | undefined)[], abort: (reason: unknown) => void): () => void {
  const stops = followed.map((signal) => {
    if (signal === undefined) return undefined;
    if (!signal.aborted) return onAbort(signal, () => abort(signal.reason));
    abort(signal.reason);
    return undefined;
  });
  return () => {
    for (const stop of stops) stop?.();
  };
}

/** Waits for a promise that others await as well. @throws the reason of the signal, if that aborts first. */
export async function awaitShared<T>(endSignal: AbortSignal, shared: Promise<T>): Promise<T> {
  if (endSignal.aborted) {
    // Whoever else awaits it handles its failure.
    shared.catch(() => undefined);
    throw endSignal.reason;
  }
  return await new Promise<T>((resolve, reject) => {
    const stop = onAbort(endSignal, () => reject(endSignal.reason));
    shared.finally(stop).then(resolve, reject);
  });
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

/** Lets any number of requests or tasks listen to one signal of ours: Node would warn of a leak from 11 on. */
export function listenWithoutBound(signal: AbortSignal): void {
  try {
    setMaxListeners(0, signal);
  } catch {
    // In a test on a simulated DOM, this is a signal of jsdom or happy-dom. Node refuses it, and it has no bound.
  }
}
