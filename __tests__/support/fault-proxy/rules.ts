import { deferred } from "./deferred.js";
import type { Exchange } from "./exchange.js";
import type { Fault } from "./faults.js";
import { type Match, matches, type RecordedRequest } from "./recorded-request.js";

export interface Rule {
  /** Resolves when the fault has had its effect as many times as the rule allows; rejects when the rule ends before. */
  readonly done: Promise<void>;
  /** How many requests it has met. */
  readonly used: number;
  /** No more requests will meet it; those that have, still do. */
  remove(): void;
}

/** How many requests a rule is for; 1 unless told. */
export interface RuleOptions {
  readonly times?: number;
}

/** The rules of a proxy. A request meets the oldest that matches and is not used up. */
export class RuleBook {
  #rules: ActiveRule[] = [];

  add(match: Match, times: number, fault: Fault): Rule {
    const rule = new ActiveRule(match, times, fault);
    this.#rules.push(rule);
    return rule;
  }

  take(request: RecordedRequest): Fault | undefined {
    this.#rules = this.#rules.filter((rule) => rule.live);
    return this.#rules.find((rule) => rule.matches(request))?.take();
  }

  clear(): void {
    for (const rule of this.#rules) rule.remove();
  }
}

class ActiveRule implements Rule {
  readonly done: Promise<void>;
  used = 0;
  live = true;
  #effects = 0;
  readonly #match: Match;
  readonly #times: number;
  readonly #fault: Fault;
  readonly #done = deferred<void>();

  constructor(match: Match, times: number, fault: Fault) {
    this.#match = match;
    this.#times = times;
    this.#fault = fault;
    this.done = this.#done.promise;
  }

  matches(request: RecordedRequest): boolean {
    return this.live && matches(request, this.#match);
  }

  remove(): void {
    if (!this.live) return;
    this.live = false;
    this.#done.reject(
      new Error(`the rule for ${this.#fault.kind} was removed after ${this.used} of ${this.#times} uses`),
    );
  }

  take(): Fault {
    this.used += 1;
    this.live = this.used < this.#times;
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
