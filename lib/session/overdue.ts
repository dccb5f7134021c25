import type { Clock } from "../time/clock.js";

/**
 * Waits for the answer to a request that others have sent, for at most `ms`, which may be infinite: a request without an answer
 * must not hold up those that come after it. @throws what the request fails with, if it fails in that time.
 */
export async function answeredWithin(clock: Clock, ms: number, answer: Promise<unknown>): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const cancel = Number.isFinite(ms) ? clock.alarm(Math.max(0, ms), resolve) : undefined;
    answer.finally(cancel).then(() => resolve(), reject);
  });
}
