import { setImmediate, setTimeout as sleep } from "node:timers/promises";

/** Beyond this, what is awaited does not come: a bound for a broken test, not a measure of anything. */
const GIVE_UP_MS = 30_000;

/** Resolves once the condition holds, for what happens in this process and tells nobody. */
export async function eventually(condition: () => boolean): Promise<void> {
  const startedAt = performance.now();
  while (!condition()) {
    if (performance.now() - startedAt > GIVE_UP_MS) throw new Error(`it never came true that ${condition}`);
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
