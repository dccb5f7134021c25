const nativeAborted = nativeGetter("aborted");
const nativeReason = nativeGetter("reason");

/**
 * The `AbortSignal` of a lease. Reading it checks the deadline first, because a blocked event loop runs no timers:
 * `aborted`, `reason` and `throwIfAborted` are right even before the deadline's timer has fired.
 */
export class LossSignal {
  readonly signal: AbortSignal;
  readonly #controller = new AbortController();

  /** @param look aborts this signal if the lease has ended. */
  constructor(look: () => unknown) {
    const { signal } = this.#controller;
    this.signal = signal;
    const looking = (read: () => unknown) => (): unknown => {
      look();
      return read.call(signal);
    };
    Object.defineProperties(signal, {
      aborted: { get: looking(nativeAborted) },
      reason: { get: looking(nativeReason) },
      throwIfAborted: { value: looking(AbortSignal.prototype.throwIfAborted) },
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
