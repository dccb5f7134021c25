import { setTimeout as sleep } from "node:timers/promises";
import { now } from "../../__tests__/support/monotonic.js";
import type { ContenderName } from "../contenders/index.js";
import { type Bench, KEEPERS, moneyOf, type Workload } from "../results.js";
import { Rounds } from "../rounds.js";
import { Team, type Worker } from "../worker-process.js";

const LEASE_MS = 3_000;
const WAITERS = 4;
/** The start of a wait, with its first try, is counted apart. */
const START_MS = 1_000;

/** What one round came to. Costs are per waiter and second, or per waiter. */
export interface Round {
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
    const count = bench.quick ? 3 : 10;
    const rounds = await waitAll(bench, KEEPERS, count);
    const each = (of: (round: Round) => number) => rounds.medians(of);
    return {
      lines: [
        { title: "read units, per waiter and second", unit: "RRU", values: each(({ read }) => read), goal: 2.5 },
        { title: "write units, per waiter and second", unit: "WRU", values: each(({ write }) => write), goal: 0 },
        { title: "money, per waiter and second", unit: "RRU", values: each(moneyOf) },
        {
          title: "write units in the first second, per waiter",
          unit: "WRU",
          values: each(({ startWrites }) => startWrites),
        },
        { title: "first in after the release", unit: "ms", values: each(({ firstMs }) => firstMs), goal: 120 },
        { title: "last of the 4 in", unit: "ms", values: each(({ lastMs }) => lastMs), goal: 800 },
      ],
      notes: [
        `Medians of ${count} rounds, all contenders at once, each with a table and five processes. What the waiters send, without the holder's renewals. A release comes ` +
          "at a random moment of the second after 4 s. Money counts a WRU as five RRU, which is what it costs.",
        ...rounds.notes,
      ],
    };
  },
};

/** So many rounds of each, all contenders at once. */
export async function waitAll(bench: Bench, names: readonly ContenderName[], count: number): Promise<Rounds<Round>> {
  const rounds = new Rounds<Round>(bench);
  await using holders = new Team(names.length);
  await using waiters = new Team(names.length * WAITERS);
  const stages = names.map((name, index) => ({
    name,
    holder: holders.workers[index] as Worker,
    waiters: waiters.workers.slice(index * WAITERS, (index + 1) * WAITERS),
  }));
  // One after another, and before any round: starting takes more of the machine than all the waiting.
  for (const stage of stages) {
    bench.say(`starting ${stage.name}`);
    await open(bench, stage).catch((error) => bench.say(`${stage.name} could not be opened: ${error}`));
  }
  for (let round = 1; round <= count; round++) {
    bench.say(`round ${round}, all at once`);
    await Promise.all(stages.map((stage) => rounds.run(stage.name, () => wait(bench, stage))));
  }
  return rounds;
}

/** The processes of one contender, which stay from round to round, as hosts do. */
interface Stage {
  readonly name: ContenderName;
  readonly holder: Worker;
  readonly waiters: readonly Worker[];
}

/** By which the requests of a contender's waiters are known. */
function tagOf({ name }: Stage): string {
  return `waiters-${name}`;
}

async function open({ ground }: Bench, stage: Stage): Promise<void> {
  const { name, holder, waiters } = stage;
  const lock = ground.name();
  await holder.open(name, await ground.options(name, LEASE_MS, `holder-${name}`), lock);
  const options = await ground.options(name, LEASE_MS, tagOf(stage));
  await Promise.all(waiters.map((waiter) => waiter.open(name, options, lock)));
}

async function wait({ ground, quick }: Bench, stage: Stage): Promise<Round> {
  const { holder, waiters } = stage;
  const tag = tagOf(stage);
  const lock = ground.name();
  await holder.ask("lock", { name: lock });
  const from = now();
  const passes = waiters.map((waiter) => waiter.ask("pass", { name: lock }));
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
