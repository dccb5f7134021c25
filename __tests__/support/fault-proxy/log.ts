import { deferred } from "./deferred.js";
import { type Match, matches, type RecordedRequest, type Units } from "./recorded-request.js";
import type { RequestRecord } from "./request-record.js";
import { addUnits } from "./units.js";

/** Every request of every client, in order of arrival, and waiting for more. */
export class RequestLog {
  requests: RecordedRequest[] = [];
  #lastSeq = 0;
  readonly #closing: AbortSignal;
  readonly #listeners = new Set<(arrived: RecordedRequest | undefined) => void>();

  constructor(closing: AbortSignal) {
    this.#closing = closing;
  }

  nextSeq(): number {
    this.#lastSeq += 1;
    return this.#lastSeq;
  }

  add(request: RequestRecord): void {
    this.requests.push(request);
    this.changed(request);
    void request.settled.then(() => this.changed());
  }

  /** Those before are forgotten; their numbers are not given again. */
  clear(): void {
    this.requests = [];
  }

  select(match: Match): RecordedRequest[] {
    return this.requests.filter((request) => matches(request, match));
  }

  counts(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { operation } of this.requests) counts[operation] = (counts[operation] ?? 0) + 1;
    return counts;
  }

  units(match: Match): Units {
    return this.select(match)
      .map(({ units }) => units)
      .reduce(addUnits, { read: 0, write: 0 });
  }

  next(match: Match): Promise<RecordedRequest> {
    return this.#wait((arrived, resolve) => arrived && matches(arrived, match) && resolve(arrived));
  }

  until(condition: (requests: readonly RecordedRequest[]) => boolean): Promise<void> {
    const fulfilled = this.#wait<void>((_, resolve) => condition(this.requests) && resolve());
    this.changed();
    return fulfilled;
  }

  /** Asks at each change until `ask` resolves; what it throws goes to whoever waits. */
  #wait<Value>(
    ask: (arrived: RecordedRequest | undefined, resolve: (value: Value) => void) => unknown,
  ): Promise<Value> {
    const { promise, resolve, reject } = deferred<Value>();
    const onClosing = () => finish(() => reject(this.#closing.reason));
    const listener = (arrived: RecordedRequest | undefined) => {
      try {
        ask(arrived, (value) => finish(() => resolve(value)));
      } catch (mistake) {
        finish(() => reject(mistake));
      }
    };
    const finish = (settle: () => void) => {
      this.#listeners.delete(listener);
      this.#closing.removeEventListener("abort", onClosing);
      settle();
    };
    this.#listeners.add(listener);
    this.#closing.addEventListener("abort", onClosing, { once: true });
    if (this.#closing.aborted) onClosing();
    return promise;
  }

  /** Asks again all who wait. */
  changed(arrived?: RecordedRequest): void {
    for (const listener of [...this.#listeners]) listener(arrived);
  }
}
