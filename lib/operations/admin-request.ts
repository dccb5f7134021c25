import { onAbort } from "../session/abort-listening.js";
import { persist } from "../session/requests.js";
import { type Copies, LONGEST_ATTEMPT_MS } from "../session/retry.js";
import type { Session } from "../session/session.js";

/** How long all attempts together may take. */
const GIVE_UP_MS = 10_000;

/** What one administrative request may add. */
interface AdminOptions {
  /** The caller's. */
  readonly signal?: AbortSignal | undefined;
  /** Counted in as the copies leave and are answered. */
  readonly copies?: Copies | undefined;
}

/**
 * An administrative request, retried for 10 s after transient failures. The caller is answered at once when `signal` aborts
 * or the table closes; what is in flight then ends in the background.
 *
 * @throws the store's error, the reason of `signal`, or that the table is closed.
 */
export async function adminRequest<T>(
  session: Session,
  request: (signal: AbortSignal) => Promise<T>,
  { signal, copies }: AdminOptions = {},
): Promise<T> {
  session.assertOpen();
  signal?.throwIfAborted();
  const giveUpAt = session.clock.atMost() + GIVE_UP_MS;
  const enough = new AbortController();
  const persistence = {
    kind: "read",
    until: () => giveUpAt,
    attemptMs: LONGEST_ATTEMPT_MS,
    enough: enough.signal,
    copies,
  } as const;
  return await new Promise<T>((resolve, reject) => {
    const stop = (reason: unknown): void => {
      enough.abort(reason);
      reject(reason);
    };
    const unregister = session.waiting(stop);
    const stopListening = signal && onAbort(signal, () => stop(signal.reason));
    const answered = persist(session, persistence, request).then(resolve, reject);
    session.detach(
      answered.finally(() => {
        unregister();
        stopListening?.();
      }),
    );
  });
}
