import { deferred } from "./deferred.js";
import { type Match, matches, type RecordedRequest, type Units } from "./recorded-request.js";
import { addUnits } from "./units.js";

/** Every request of every client, in order of arrival, and waiting for more. */
export class RequestLog {
  #requests: RecordedRequest[] = [];
  readonly #closing: AbortSignal;
  readonly #listeners = new Set<(arrived: RecordedRequest | undefined) => void>();

  constructor(closing: AbortSignal) {
    this.#closing = closing;
  }

  /** All requests since the last {@link reset}, in order of arrival. */
  get requests(): readonly RecordedRequest[] {
    return this.#requests;
  }

  select(match: Match): RecordedRequest[] {
    return this.requests.filter((request) => matches(request, match));
  }

  count(match: Match = {}): number {
    return this.select(match).length;
  }

  /** How many of each operation. */
  counts(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { operation } of this.requests) counts[operation] = (counts[operation] ?? 0) + 1;
    return counts;
  }

  /** What they cost, as far as answers have come. */
  units(match: Match = {}): Units {
    const costs = this.select(match).map(({ units }) => units);
    return costs.reduce(addUnits, { read: 0, write: 0 });
  }

  /** Forgets the requests. */
  reset(): void {
    this.#requests = [];
  }

  /** Resolves with the next such request from now on, when it arrives. */
  next(match: Match = {}): Promise<RecordedRequest> {
    return this.#wait((arrived, resolve) => arrived && matches(arrived, match) && resolve(arrived));
  }

  /** Resolves when the requests so far fulfil the condition: asked now, and whenever one arrives, waits, is applied or ends. */
  until(condition: (requests: readonly RecordedRequest[]) => boolean): Promise<void> {
    const fulfilled = this.#wait<void>((_, resolve) => condition(this.requests) && resolve());
    this.changed();
    return fulfilled;
  }

  protected add(request: RecordedRequest): void {
    this.#requests.push(request);
    this.changed(request);
    void request.settled.then(() => this.changed());
  }

  /** Asks again all who wait. */
  protected changed(arrived?: RecordedRequest): void {
    for (const listener of [...this.#listeners]) listener(arrived);
  }

  /** Asks at each change until `ask` resolves; what it throws goes to whoever waits. */
  #wait<Value>(
    ask: (arrived: RecordedRequest | undefined, resolve: (value: Value) => void) => unknown,
  ): Promise<Value> {
    const { promise, resolve, reject } = deferred<Value>();
    const onClosing = () => reject(this.#closing.reason);
    const listener = (arrived: RecordedRequest | undefined) => {
      try {
        ask(arrived, resolve);
      } catch (mistake) {
        reject(mistake);
      }
    };
    const forget = () => {
      this.#listeners.delete(listener);
      this.#closing.removeEventListener("abort", onClosing);
    };
    promise.then(forget, forget);
    this.#listeners.add(listener);
    this.#closing.addEventListener("abort", onClosing);
    if (this.#closing.aborted) onClosing();
    return promise;
  }
}
