import { type Clock, replyAlarm } from "../time/clock.js";

/**
 * Waits for the answer to a request that others have sent, for at most `ms`, which may be infinite: a request without an answer
 * must not hold up those that come after it.
 * @returns undefined if none comes in that time. @throws what the request fails with, if it fails in it.
 */
export function answeredWithin<T>(clock: Clock, ms: number, answer: Promise<T>): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const cancel = Number.isFinite(ms) ? replyAlarm(clock, Math.max(0, ms), () => resolve(undefined)) : () => undefined;
    answer.finally(cancel).then(resolve, reject);
  });
}
