const nativeAborted = nativeGetter("aborted");
const nativeReason = nativeGetter("reason");

/**
 * The `AbortSignal` of a lease. Reading it checks the deadline first, because a blocked event loop runs no timers:
 * `aborted`, `reason` and `throwIfAborted` are right even before the deadline's timer has fired.
 */
export class LossSignal {
  readonly signal: AbortSignal;
  readonly #controller = new AbortController();

  /** @param checkDeadline aborts this signal if the lease has ended. */
  constructor(checkDeadline: () => unknown) {
    const { signal } = this.#controller;
    this.signal = signal;
    const checking = (read: () => unknown) => (): unknown => {
      checkDeadline();
      return read.call(signal);
    };
    Object.defineProperties(signal, {
      aborted: { get: checking(nativeAborted) },
      reason: { get: checking(nativeReason) },
      throwIfAborted: { value: checking(AbortSignal.prototype.throwIfAborted) },
    });
  }

  abort(reason: unknown): void {
    this.#controller.abort(reason);
  }
}

function nativeGetter(property: "aborted" | "reason"): () => unknown {
  const getter = Object.getOwnPropertyDescriptor(AbortSignal.prototype, property)?.get;
  if (getter === undefined) throw new TypeError(`AbortSignal.prototype.${property} is not a getter on this runtime`);
  return getter;
}
