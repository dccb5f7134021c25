import { onAbort } from "../session/abort-listening.js";
import { LONGEST_ATTEMPT_MS, type Persistence, persist } from "../session/retry.js";
import type { Host } from "../session/session.js";

/** How long all attempts together may take. */
const GIVE_UP_MS = 10_000;

/**
 * A request of somebody who looks after locks rather than takes them. It is tried again after failures that pass by
 * themselves, for 10 s. The caller is answered at once when `signal` aborts or the table closes; what is under way then
 * ends in the background.
 *
 * @throws the store's error, the reason of `signal`, or that the table is closed.
 */
export async function ask<T>(
  host: Host,
  request: (signal: AbortSignal, attempt: number) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const { clock, random } = host;
  host.assertOpen();
  signal?.throwIfAborted();
  const giveUpAt = clock.atMost() + GIVE_UP_MS;
  const enough = new AbortController();
  return await new Promise<T>((resolve, reject) => {
    const stop = (reason: unknown): void => {
      enough.abort(reason);
      reject(reason);
    };
    const unregister = host.waiting(stop);
    const stopListening = signal && onAbort(signal, () => stop(signal.reason));
    const until = (): number => giveUpAt;
    const persistence: Persistence = {
      kind: "read",
      until,
      attemptMs: LONGEST_ATTEMPT_MS,
      enough: enough.signal,
      random,
    };
    const answered = persist(host, persistence, request).then(resolve, reject);
    host.detach(
      answered.finally(() => {
        unregister();
        stopListening?.();
      }),
    );
  });
}
