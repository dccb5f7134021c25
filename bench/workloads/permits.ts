import { now } from "../../__tests__/support/monotonic.js";
import { median, show } from "../numbers.js";
import type { Bench, Line, Workload } from "../results.js";
import { Team } from "../worker-process.js";
import { type Kind, LONG_LEASE_MS, type Own, optionsOf, waitersSecond } from "./waiters-second.js";

const LEASE_MS = 3_000;
const PROCESSES = 16;
const PERMITS = 4;
const HOLD_MS = 10;
const FOR_MS = 30_000;
const ROUNDS = 1;
const WAITERS = 4;

interface Round {
  readonly perSecond: number;
  readonly requests: number;
  /** What the process that got least got, of what would be its share. */
  readonly leastShare: number;
}

export const permits: Workload = {
  name: "permits",
  title: "Semaphores and shared mutexes",
  async run(bench) {
    const cycle = {
      semaphore: await cycleOf(bench, { permits: PERMITS }),
      shared: await cycleOf(bench, { side: "shared" }),
    };
    const one: Partial<Record<Own, Round>> = {};
    const four: Partial<Record<Own, Round>> = {};
    for (const name of ["dynamutex", "fair"] as const) {
      one[name] = await crowd(bench, name, 1);
      four[name] = await crowd(bench, name, PERMITS);
    }
    bench.say("readers of one process");
    const rows = await readers(bench, 8);
    const waiting = {
      mutex: await waitersSecond(bench, "dynamutex", WAITERS),
      semaphore: await waitersSecond(bench, "dynamutex", WAITERS, { permits: PERMITS }),
      shared: await waitersSecond(bench, "dynamutex", WAITERS, { side: "shared" }),
      exclusive: await waitersSecond(bench, "dynamutex", WAITERS, { side: "exclusive" }),
    };
    const own = (value: (name: Own) => number): Line["values"] => ({
      dynamutex: value("dynamutex"),
      fair: value("fair"),
    });
    const ofFour = (of: keyof Round) => own((name) => four[name]?.[of] ?? Number.NaN);
    const gain = (name: Own): number => (four[name]?.perSecond ?? Number.NaN) / (one[name]?.perSecond ?? Number.NaN);
    const crowdTitle = `${PROCESSES} processes, ${PERMITS} permits, ${HOLD_MS} ms`;
    const only = (value: number): Line["values"] => ({ dynamutex: value });
    const line = (title: string, values: Line["values"], goal: number | undefined, more: Partial<Line> = {}): Line => {
      return { title, values, goal, ...more };
    };
    return {
      lines: [
        line("a permit, taken and released: requests", only(cycle.semaphore.requests), 3),
        line("a permit, taken and released", only(cycle.semaphore.write), 2, { unit: "WRU" }),
        line("shared, taken and released: requests", only(cycle.shared.requests), 3),
        line("shared, taken and released", only(cycle.shared.write), 2, { unit: "WRU" }),
        line("shared, taken and released", only(cycle.shared.read), 1, { unit: "RRU" }),
        line("8 readers of one process: rows", only(rows), 1),
        line(`${crowdTitle}: sections a second`, ofFour("perSecond"), undefined, { better: "more" }),
        line(`${crowdTitle}: against one permit`, own(gain), 3.2, { better: "more", unit: "×" }),
        line(`${crowdTitle}: requests a section`, ofFour("requests"), 3),
        line(`${crowdTitle}: least share`, ofFour("leastShare"), 0.3, { better: "more", unit: "×" }),
        line("a waiter's second, semaphore", only(waiting.semaphore), waiting.mutex * 1.25, { unit: "RRU" }),
        line("a waiter's second, shared side", only(waiting.shared), waiting.mutex * 1.25, { unit: "RRU" }),
        line("a waiter's second, exclusive side", only(waiting.exclusive), waiting.mutex * 1.25, { unit: "RRU" }),
      ],
      notes: [
        `For the fair semaphore the goals are 2.2 times as many sections as of one permit, and a least share of 0.8: it came to ` +
          `${show(gain("fair"))} and ${show(four.fair?.leastShare ?? Number.NaN)}.`,
        `A waiter's second: ${WAITERS} hosts wait for all that there is, ${LONG_LEASE_MS / 1_000} s leases; a mutex takes ` +
          `${show(waiting.mutex)} RRU.`,
      ],
    };
  },
};

/** A lock that nobody else wants, taken and released by a process that knows the time. */
async function cycleOf(bench: Bench, kind: Kind): Promise<{ requests: number; read: number; write: number }> {
  await using team = new Team(1);
  const { ground } = bench;
  const lock = ground.name();
  const tag = `cycle-${lock}`;
  await team.open("dynamutex", await optionsOf(bench, "dynamutex", LEASE_MS, tag, kind), lock);
  const before = ground.cost({ tag });
  const each = bench.quick ? 10 : 50;
  await team.only.ask("sections", { name: lock, tasks: 1, each, holdMs: 0 });
  const { requests, read, write } = ground.cost({ tag });
  return {
    requests: (requests - before.requests) / each,
    read: (read - before.read) / each,
    write: (write - before.write) / each,
  };
}

/** Many processes, with one caller each. */
async function crowd(bench: Bench, name: Own, permits: number): Promise<Round> {
  const { ground, quick, say } = bench;
  const rounds: Round[] = [];
  for (let round = 1; round <= (quick ? 1 : ROUNDS); round++) {
    say(`${PROCESSES} processes, ${permits} permits, ${name}, round ${round}`);
    await using team = new Team(PROCESSES);
    const lock = ground.name();
    const tag = `crowd-${lock}`;
    await team.open(name, await optionsOf(bench, name, LEASE_MS, tag, { permits }), lock, { cycles: 5 });
    const before = ground.cost({ tag }).requests;
    const forMs = quick ? 8_000 : FOR_MS;
    const all = await Promise.all(
      team.workers.map((worker) => worker.ask("sections", { name: lock, tasks: 1, forMs, holdMs: HOLD_MS })),
    );
    const counts = all.map(({ count }) => count);
    const total = counts.reduce((sum, count) => sum + count, 0);
    rounds.push({
      perSecond: (total / forMs) * 1_000,
      requests: (ground.cost({ tag }).requests - before) / total,
      leastShare: Math.min(...counts) / (total / PROCESSES),
    });
  }
  const middle = (of: keyof Round): number => median(rounds.map((round) => round[of]));
  return { perSecond: middle("perSecond"), requests: middle("requests"), leastShare: middle("leastShare") };
}

/** How many rows so many readers of one process take. */
async function readers(bench: Bench, count: number): Promise<number> {
  await using team = new Team(1);
  const { ground } = bench;
  const lock = ground.name();
  const tag = `readers-${lock}`;
  await team.open("dynamutex", await optionsOf(bench, "dynamutex", LEASE_MS, tag, { side: "shared" }), lock);
  const from = now();
  await team.only.ask("sections", { name: lock, tasks: count, each: 1, holdMs: 200 });
  return ground.requests({ tag, from }).filter(({ operation }) => operation === "PutItem").length;
}
