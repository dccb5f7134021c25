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
    onFailure,
  }: { readonly signal?: AbortSignal | undefined; readonly onFailure?: (cause: unknown) => void } = {},
): Promise<T> {
  session.assertOpen();
  signal?.throwIfAborted();
  const call = new Call<T>(session, undefined, { signal });
  call.onReview = () => onFailure?.(call.failure);
  return await runFor(session, call, async (bid) => call.settle(await bid.ask(request)));
}
