import { setImmediate, setTimeout as sleep } from "node:timers/promises";

/** Beyond this, what is awaited does not come: a bound for a broken test, not a measure of anything. */
const GIVE_UP_MS = 30_000;

/** For loops that wait for a condition: `check` throws when that takes too long. */
export function startPatience(condition: () => boolean): { check(): void } {
  const startedAt = performance.now();
  return {
    check: () => {
      if (performance.now() - startedAt > GIVE_UP_MS) throw new Error(`it never came true that ${condition}`);
    },
  };
}

/** Resolves once the condition holds, for what happens in this process and tells nobody. */
export async function eventually(condition: () => boolean): Promise<void> {
  const patience = startPatience(condition);
  while (!condition()) {
    patience.check();
    await sleep(1);
  }
}

/** Lets everything happen that needs neither time nor network. */
export async function turn(): Promise<void> {
  for (let count = 0; count < 3; count += 1) await setImmediate();
}

/** Whether a promise is settled by now, for those who must not wait for it. */
export function watch(promise: Promise<unknown>): { readonly settled: boolean } {
  const watched = { settled: false };
  const settle = (): void => {
    watched.settled = true;
  };
  promise.then(settle, settle);
  return watched;
}
