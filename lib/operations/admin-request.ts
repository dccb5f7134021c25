import type { Session } from "../session/session.js";
import { runFor } from "../taking/bid.js";
import { Call } from "../taking/call.js";

/**
 * An administrative request, retried for 10 s after transient failures. The caller is answered at once when `signal` aborts
 * or the table closes; what is in flight then ends in the background.
 *
 * @throws the store's error, the reason of `signal`, or that the table is closed.
 */
export async function adminRequest<T>(
  session: Session,
  request: (signal: AbortSignal) => Promise<T>,
  {
    signal,
    waitMs,
    onFailure,
  }: {
    readonly signal?: AbortSignal | undefined;
    /** How long those who ask would wait. Default: for ever. */
    readonly waitMs?: number | undefined;
    readonly onFailure?: ((cause: unknown) => void) | undefined;
  } = {},
): Promise<T> {
  session.assertOpen();
  signal?.throwIfAborted();
  const call = new Call<T>(session, undefined, { signal, waitMs });
  call.onReview = () => onFailure?.(call.failure);
  return await runFor(session, call, async (bid) => call.settle(await bid.ask(request)));
}
