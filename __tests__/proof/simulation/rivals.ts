import { seededRandom } from "../../support/seeded-random.js";
import { type HostPlan, QUIET_HOST, type Schedule, type Step, simulatedName } from "./schedule.js";
import { probeOf } from "./steps.js";

/** A name of their own: nobody else has left a mark on its row. */
const NAME = simulatedName(20);

/** Beside four hosts and the probe there is no letter left for two more. */
const MOST_HOSTS = 3;

/** What a waiter may need: how far it is from the table, and how it polls. All of them need less than the 5 s that are promised. */
const WAITERS = [
  { farMs: 0, poll: { minMs: 50, maxMs: 400 } },
  { farMs: 300, poll: { minMs: 50, maxMs: 400 } },
  { farMs: 600, poll: { minMs: 50, maxMs: 400 } },
  { farMs: 0, poll: { minMs: 2_000, maxMs: 2_000 } },
  { farMs: 300, poll: { minMs: 200, maxMs: 1_500 } },
];

/** What a message takes there and back in a calm, and timers that ring late. */
const NEAR_ANSWER_MS = 20;

const TTL_MS = 12_000;

/** How long all sections of the busy host take together: longer than the waiter may have to wait. */
const BUSY_MS = 40_000;

/** How much of a time a slow clock measures too late, both of them together. */
const SLOWEST = 1.002;

/** In a tenth of the schedules, when the faults are over: one host that wants a plain mutex all the time, and one that waits for it. */
export function rivalsIn({ seed, hosts, hurry }: Schedule): readonly HostPlan[] {
  const random = seededRandom(seed, "rivals");
  if (random() >= 0.1 || hosts.length > MOST_HOSTS) return [];
  const one = <Value>(values: readonly Value[]): Value => values[Math.floor(random() * values.length)] as Value;
  const { machine } = hosts[0] ?? QUIET_HOST;
  const waiter = one(WAITERS);
  const [busyHandOverMs, handOverMs] = [one([100, 300, 500]), one([100, 300, 500])];
  const holdMs = 40 + random() * 160;
  const callers = one([1, 2, 3]);
  const ask: Step = { ...probeOf("mutex", NAME), kind: one(["lock", "run"]) };
  const sections = { ...ask, withData: random() < 0.5, holdMs, times: Math.ceil(BUSY_MS / holdMs / callers) };
  const wait = { ...ask, kind: "lock" as const, pauseMs: 300 / hurry, holdMs: 10 };
  return [
    {
      ...QUIET_HOST,
      ttlMs: TTL_MS,
      fencing: random() < 0.3,
      handOverMs: busyHandOverMs,
      programs: Array.from({ length: callers }, () => [sections]),
    },
    {
      ...QUIET_HOST,
      ...waiter,
      machine,
      ttlMs: TTL_MS,
      handOverMs,
      servedWithinMs: boundMs(waiter, { handOverMs, busyHandOverMs, holdMs }),
      programs: [[wait, wait, wait]],
    },
  ];
}

/**
 * What a waiter may have to wait for: its own process stands back after its last section, if that section and its release took
 * `handOverMs`; its first poll after `handOverMs` marks the row; a look of the busy host, and the end of a section; what the waiter
 * needs from there. The busy host may stand back for an earlier mark, and be back just before its look: then all of that happens once more.
 */
function boundMs(
  { farMs, poll }: (typeof WAITERS)[number],
  busy: { readonly handOverMs: number; readonly busyHandOverMs: number; readonly holdMs: number },
): number {
  const answerMs = 2 * farMs + NEAR_ANSWER_MS;
  const needMs = Math.min(5_000, 1.25 * poll.maxMs + 3 * answerMs + 250);
  const markedMs = busy.handOverMs + 1.25 * poll.maxMs + 3 * answerMs;
  const busyMs = busy.busyHandOverMs + busy.holdMs + 3 * NEAR_ANSWER_MS;
  return SLOWEST * (needMs + answerMs + 2 * (markedMs + busyMs + needMs));
}
