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
    const [aborted, reason, throwIfAborted] = (["aborted", "reason", "throwIfAborted"] as const).map((name) =>
      inherited(signal, name),
    ) as [PropertyDescriptor, PropertyDescriptor, PropertyDescriptor];
    Object.defineProperties(signal, {
      aborted: { get: checking(aborted.get as () => unknown) },
      reason: { get: checking(reason.get as () => unknown) },
      throwIfAborted: { value: checking(throwIfAborted.value) },
    });
  }

  abort(reason: unknown): void {
    this.#controller.abort(reason);
  }
}

/** A property of a signal, wherever its runtime has it: in a test on a simulated DOM the signal's class may be a subclass of it. */
function inherited(signal: AbortSignal, name: keyof AbortSignal): PropertyDescriptor {
  for (let owner = Object.getPrototypeOf(signal); owner !== null; owner = Object.getPrototypeOf(owner)) {
    const property = Object.getOwnPropertyDescriptor(owner, name);
    if (property !== undefined) return property;
  }
  throw new TypeError(`An AbortSignal of this runtime has no ${name}`);
}
