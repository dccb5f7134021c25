import { deferred } from "./deferred.js";
import type { Exchange } from "./exchange.js";
import type { Fault } from "./faults.js";
import { type Match, matches, type RecordedRequest } from "./recorded-request.js";

/** A fault, and which requests meet it. */
export class Rule {
  /** How many requests it has met. */
  used = 0;
  readonly #match: Match;
  readonly #times: number;
  readonly #fault: Fault;
  #isRemoved = false;
  #effects = 0;
  readonly #done = deferred<void>();

  constructor(match: Match, times: number, fault: Fault) {
    this.#match = match;
    this.#times = times;
    this.#fault = fault;
  }

  /** Resolves when the fault has had its effect as many times as the rule allows; rejects when the rule ends before. */
  get done(): Promise<void> {
    return this.#done.promise;
  }

  /** No more requests will meet it; those that have, still do. */
  remove(): void {
    this.#isRemoved = true;
    const uses = `${this.used} of ${this.#times} uses`;
    if (this.used < this.#times)
      this.#done.reject(new Error(`the rule for ${this.#fault.kind} was removed after ${uses}`));
  }

  isFor(request: RecordedRequest): boolean {
    return !this.#isRemoved && this.used < this.#times && matches(request, this.#match);
  }

  take(): Fault {
    this.used += 1;
    return { kind: this.#fault.kind, apply: (exchange) => this.#apply(exchange) };
  }

  async #apply(exchange: Exchange): Promise<void> {
    try {
      await this.#fault.apply(exchange);
    } catch (reason) {
      this.#done.reject(reason);
      throw reason;
    }
    this.#effects += 1;
    if (this.#effects === this.#times) this.#done.resolve();
  }
}
