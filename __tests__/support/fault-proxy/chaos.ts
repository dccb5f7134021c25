import { type Random, seededRandom } from "../seeded-random.js";
import {
  cutReply,
  delay,
  delayReply,
  duplicate,
  type Fault,
  hang,
  hangAfter,
  resetAfter,
  resetBefore,
  type Strange,
  status500,
  stranger,
  throttle,
  transactionConflict,
} from "./faults.js";
import type { RecordedRequest } from "./recorded-request.js";

/** What a load balancer, a proxy or a captive portal says in the table's place. */
const PAGES: readonly Strange[] = [
  {},
  { text: "{}", headers: { "x-amzn-requestid": "1" } },
  { text: "<html>back soon</html>", headers: { "content-type": "text/html" } },
  { status: 403, text: "<html>no</html>", headers: { "content-type": "text/html" } },
];

/** Each fault by its kind: the share of requests that meet it, and how it is made of a number from 0 to 1. */
const FAULTS = {
  delay: [0.06, (share: number) => delay(10 + share * 490)],
  delayReply: [0.04, (share: number) => delayReply(10 + share * 490)],
  resetBefore: [0.02, () => resetBefore()],
  resetAfter: [0.03, () => resetAfter()],
  hang: [0.01, () => hang()],
  hangAfter: [0.02, () => hangAfter()],
  status500: [0.02, () => status500()],
  throttle: [0.02, () => throttle()],
  transactionConflict: [0.01, () => transactionConflict()],
  cutReply: [0.02, () => cutReply()],
  stranger: [
    0.03,
    (share: number) => stranger(PAGES[Math.floor(share * PAGES.length)], { applied: (share * 16) % 1 < 0.5 }),
  ],
  duplicate: [0.05, (share: number) => duplicate(1_000 + share * 4_000)],
} as const satisfies Record<string, readonly [number, (share: number) => Fault]>;

export type ChaosKind = keyof typeof FAULTS;

const KINDS = Object.keys(FAULTS) as ChaosKind[];

/** Chooses faults by lot: the same seed gives the same fault to the same request, counted in order of arrival. */
export class Chaos {
  /** How many requests have met each fault so far. */
  readonly injected: Record<ChaosKind, number>;
  readonly #random: Random;
  #running = true;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
    this.injected = Object.fromEntries(KINDS.map((kind) => [kind, 0])) as Record<ChaosKind, number>;
  }

  /** No more faults; copies that are still in the network arrive all the same. */
  stop(): void {
    this.#running = false;
  }

  take({ operation }: RecordedRequest): Fault | undefined {
    if (!this.#running) return undefined;
    // Always both draws, so that what one request meets does not depend on what another one met.
    const [lot, share] = [this.#random(), this.#random()];
    let edge = 0;
    const kind = KINDS.find((candidate) => {
      edge += FAULTS[candidate][0];
      return lot < edge;
    });
    // Plain reads meet no other transaction.
    const isPossible = kind !== "transactionConflict" || /^(Put|Update|Delete|TransactWrite)/.test(operation);
    if (kind === undefined || !isPossible) return undefined;
    this.injected[kind] += 1;
    return FAULTS[kind][1](share);
  }
}
