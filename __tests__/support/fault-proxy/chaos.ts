import { type Random, seededRandom } from "../seeded-random.js";
import {
  delay,
  delayReply,
  duplicate,
  type Fault,
  hang,
  hangAfter,
  resetAfter,
  resetBefore,
  status500,
  throttle,
  transactionConflict,
} from "./faults.js";
import { type Match, matches, type RecordedRequest } from "./recorded-request.js";

export type ChaosKind = keyof typeof FAULTS;

export interface ChaosOptions {
  /** The same seed gives the same fault to the same request, counted in order of arrival. */
  readonly seed: number;
  /** The share of requests that meet each fault; together at most 1. */
  readonly rates: Partial<Record<ChaosKind, number>>;
  /** Which requests are exposed; all unless told. */
  readonly match?: Match;
  /** Bounds of `delay` and `delayReply`; 10 to 500 ms unless told. */
  readonly delayMs?: readonly [number, number];
  /** Bounds of the time after which a `duplicate` arrives; 1 to 5 s unless told. */
  readonly redeliverMs?: readonly [number, number];
  readonly onFault?: (kind: ChaosKind, request: RecordedRequest) => void;
}

export interface Chaos {
  readonly seed: number;
  /** How many requests have met each fault so far. */
  readonly injected: Readonly<Record<ChaosKind, number>>;
  readonly total: number;
  /** No more faults; copies that are still in the network arrive all the same. */
  stop(): void;
}

/** Chooses faults by lot. */
export class ChaosSource implements Chaos {
  readonly seed: number;
  readonly injected: Record<ChaosKind, number>;
  readonly #options: ChaosOptions;
  readonly #random: Random;
  #running = true;

  constructor(options: ChaosOptions) {
    const sum = Object.values(options.rates).reduce((total, rate) => total + rate, 0);
    if (sum > 1) throw new RangeError(`the rates of a chaos run add up to ${sum}: at most 1`);
    this.seed = options.seed;
    this.#options = options;
    this.#random = seededRandom(options.seed);
    this.injected = Object.fromEntries(KINDS.map((kind) => [kind, 0])) as Record<ChaosKind, number>;
  }

  get total(): number {
    return Object.values(this.injected).reduce((sum, count) => sum + count, 0);
  }

  stop(): void {
    this.#running = false;
  }

  take(request: RecordedRequest): Fault | undefined {
    if (!this.#running || !matches(request, this.#options.match ?? {})) return undefined;
    // Always both draws, so that what one request meets does not depend on what another one met.
    const [lot, length] = [this.#random(), this.#random()];
    const kind = this.#draw(lot);
    if (kind === undefined || (kind === "transactionConflict" && !canConflict(request))) return undefined;
    this.injected[kind] += 1;
    this.#options.onFault?.(kind, request);
    return this.#fault(kind, length);
  }

  #draw(lot: number): ChaosKind | undefined {
    let edge = 0;
    return KINDS.find((kind) => {
      edge += this.#options.rates[kind] ?? 0;
      return lot < edge;
    });
  }

  #fault(kind: ChaosKind, length: number): Fault {
    const { delayMs = [10, 500], redeliverMs = [1_000, 5_000] } = this.#options;
    return FAULTS[kind](between(kind === "duplicate" ? redeliverMs : delayMs, length));
  }
}

/** Each from a length of time in ms, which most have no use for. */
const FAULTS = {
  delay: (ms: number) => delay(ms),
  delayReply: (ms: number) => delayReply(ms),
  resetBefore: () => resetBefore(),
  resetAfter: () => resetAfter(),
  hang: () => hang(),
  hangAfter: () => hangAfter(),
  status500: () => status500(),
  throttle: () => throttle(),
  transactionConflict: () => transactionConflict(),
  duplicate: (ms: number) => duplicate({ until: ms }),
};

const KINDS = Object.keys(FAULTS) as ChaosKind[];

/** Plain reads never do. */
function canConflict({ operation }: RecordedRequest): boolean {
  return /^(Put|Update|Delete|TransactWrite)/.test(operation);
}

function between([from, to]: readonly [number, number], share: number): number {
  return from + share * (to - from);
}
