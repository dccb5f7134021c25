const nativeAborted = nativeGetter("aborted");
const nativeReason = nativeGetter("reason");

/**
 * The `AbortSignal` of a lease. Looking at it looks at the clock first, because a blocked event loop runs no timers:
 * `aborted`, `reason` and `throwIfAborted` are right even before the deadline's timer had its turn.
 */
export class LossSignal {
  readonly #lookForLoss: () => unknown;
  #controller: AbortController | undefined;
  #abortedWith: { readonly reason: unknown } | undefined;

  constructor(lookForLoss: () => unknown) {
    this.#lookForLoss = lookForLoss;
  }

  /** Made when first asked for: most of many thousand locks never are. */
  get signal(): AbortSignal {
    this.#lookForLoss();
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#abortedWith === undefined) this.#makeCurious(this.#controller.signal);
      else this.#controller.abort(this.#abortedWith.reason);
    }
    return this.#controller.signal;
  }

  abort(reason: unknown): void {
    this.#abortedWith ??= { reason };
    this.#controller?.abort(reason);
  }

  #makeCurious(signal: AbortSignal): void {
    const look = this.#lookForLoss;
    Object.defineProperties(signal, {
      aborted: {
        get: () => {
          look();
          return nativeAborted.call(signal);
        },
      },
      reason: {
        get: () => {
          look();
          return nativeReason.call(signal);
        },
      },
      throwIfAborted: {
        value: () => {
          look();
          AbortSignal.prototype.throwIfAborted.call(signal);
        },
      },
    });
  }
}

function nativeGetter(property: "aborted" | "reason"): () => unknown {
  const getter = Object.getOwnPropertyDescriptor(AbortSignal.prototype, property)?.get;
  if (getter === undefined) throw new TypeError(`AbortSignal.prototype.${property} is not a getter on this runtime`);
  return getter;
}
