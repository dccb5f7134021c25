import { deferred } from "./deferred.js";

/** A wait that a test ends, so that it depends on no time. */
export interface Gate {
  readonly released: Promise<void>;
  /** Lets through whatever waits, and all that comes later. */
  release(): void;
}

export function createGate(): Gate {
  const { promise, resolve } = deferred<void>();
  return { released: promise, release: () => resolve() };
}
