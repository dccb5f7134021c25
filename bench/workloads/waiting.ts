import { setTimeout as sleep } from "node:timers/promises";
import { now } from "../../__tests__/support/monotonic.js";
import type { ContenderName } from "../contenders/index.js";
import { median } from "../numbers.js";
import { type Bench, moneyOf, WAITING, type Workload } from "../results.js";
import { Team, type Worker } from "../worker-process.js";

const LEASE_MS = 3_000;
const WAITERS = 4;
/** The start of a wait, with its first try, is counted apart. */
const START_MS = 1_000;

/** What one round came to. Costs are per waiter and second, or per waiter. */
interface Round {
  readonly read: number;
  readonly write: number;
  readonly startWrites: number;
  readonly firstMs: number;
  readonly lastMs: number;
}

export const waiting: Workload = {
  name: "waiting",
  title: "4 processes wait 4 s for a fifth, 3 s leases",
  async run(bench) {
    const rounds: Record<string, Round[]> = {};
    for (let round = 1; round <= (bench.quick ? 3 : 10); round++) {
      for (const name of WAITING) {
        bench.say(`round ${round}, ${name}`);
        rounds[name] = [...(rounds[name] ?? []), await wait(bench, name)];
      }
    }
    const each = (of: (round: Round) => number) =>
      Object.fromEntries(WAITING.map((name) => [name, median((rounds[name] ?? []).map(of))]));
    return {
      lines: [
        {
          title: "read units, per waiter and second",
          unit: "RRU",
          better: "less",
          values: each(({ read }) => read),
          goal: 2.5,
        },
        {
          title: "write units, per waiter and second",
          unit: "WRU",
          better: "less",
          values: each(({ write }) => write),
          goal: 0,
        },
        { title: "money, per waiter and second", unit: "RRU", better: "less", values: each(moneyOf) },
        {
          title: "write units in the first second, per waiter",
          unit: "WRU",
          better: "less",
          values: each(({ startWrites }) => startWrites),
        },
        {
          title: "first in after the release",
          unit: "ms",
          better: "less",
          values: each(({ firstMs }) => firstMs),
          goal: 120,
        },
        { title: "last of the 4 in", unit: "ms", better: "less", values: each(({ lastMs }) => lastMs), goal: 800 },
      ],
      notes: [
        `Medians of ${bench.quick ? 3 : 10} rounds. What the waiters send, without the holder's renewals. A release comes ` +
          "at a random moment of the second after 4 s. Money counts a WRU as five RRU, which is what it costs.",
      ],
    };
  },
};

async function wait({ ground, quick }: Bench, name: ContenderName): Promise<Round> {
  await using holders = new Team(1);
  await using waiters = new Team(WAITERS);
  const lock = ground.name();
  const tag = `waiters-of-${lock}`;
  await Promise.all([
    holders.open(name, await ground.options(name, LEASE_MS, `holder-of-${lock}`), lock),
    waiters.open(name, await ground.options(name, LEASE_MS, tag), lock),
  ]);
  const [holder] = holders.workers as [Worker];
  await holder.ask("lock", { name: lock });
  const from = now();
  const passes = waiters.workers.map((waiter) => waiter.ask("pass", { name: lock }));
  await sleep((quick ? 2_500 : 4_000) + 1_000 * Math.random());
  const released = await holder.ask("unlock", { name: lock });
  const entered = (await Promise.all(passes)).flat();
  const seconds = (WAITERS * (released - from - START_MS)) / 1_000;
  const steady = ground.cost({ tag, from: from + START_MS, to: released });
  const start = ground.cost({ tag, from, to: from + START_MS });
  return {
    read: steady.read / seconds,
    write: steady.write / seconds,
    startWrites: start.write / WAITERS,
    firstMs: Math.min(...entered) - released,
    lastMs: Math.max(...entered) - released,
  };
}
