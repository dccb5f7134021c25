import { setTimeout as sleep } from "node:timers/promises";
import { now } from "../../__tests__/support/monotonic.js";
import { median, show } from "../numbers.js";
import type { Bench, Workload } from "../results.js";
import { Team, type Worker } from "../worker-process.js";

const LEASE_MS = 3_000;
const WAITERS = 4;
const SETTINGS = [100, 200, 300, 400, 600, 800, 1_600].map((maxMs) => ({ minMs: 50, maxMs }));
/** By then the pause between two looks has grown to its longest. */
const START_MS = 3_000;

type Poll = (typeof SETTINGS)[number];

interface Round {
  readonly read: number;
  readonly firstMs: number;
  readonly lastMs: number;
}

export const polling: Workload = {
  name: "polling",
  title: "The longest pause of a waiter: cost against hand-over",
  async run(bench) {
    const count = bench.quick ? 1 : 10;
    await using holders = new Team(SETTINGS.length);
    await using waiters = new Team(SETTINGS.length);
    const stages = SETTINGS.map((poll, index) => ({
      poll,
      holder: holders.workers[index] as Worker,
      waiter: waiters.workers[index] as Worker,
    }));
    // One after another, and before any round: starting takes more of the machine than all the waiting.
    for (const stage of stages) await open(bench, stage);
    const rounds: Round[][] = SETTINGS.map(() => []);
    for (let round = 1; round <= count; round++) {
      bench.say(`round ${round}, all settings at once`);
      const came = await Promise.all(stages.map((stage) => wait(bench, stage)));
      for (const [index, one] of came.entries()) rounds[index]?.push(one);
    }
    const medians = rounds.map((all) => ({
      read: median(all.map(({ read }) => read)),
      firstMs: median(all.map(({ firstMs }) => firstMs)),
      lastMs: median(all.map(({ lastMs }) => lastMs)),
    }));
    const series = (of: "firstMs" | "lastMs") => medians.map((one) => [one.read, one[of]] as const);
    return {
      charts: [
        {
          file: "polling",
          title: "poll.maxMs from 1 600 (left) to 100 ms (right)",
          x: { title: "RRU a waiter and second" },
          y: { title: "ms after the release" },
          series: [
            { title: "last of 4 in", points: series("lastMs") },
            { title: "first in", points: series("firstMs") },
          ],
        },
      ],
      detail: {
        columns: ["`poll.maxMs`", "RRU a waiter and second", "first in, ms", "last of 4 in, ms"],
        rows: SETTINGS.map(({ maxMs }, index) => {
          const { read, firstMs, lastMs } = medians[index] ?? {
            read: Number.NaN,
            firstMs: Number.NaN,
            lastMs: Number.NaN,
          };
          return [show(maxMs), show(read), show(firstMs), show(lastMs)];
        }),
      },
    };
  },
};

/** A holder, and four waiters who are hosts of their own as far as the table can tell, with the same setting. */
interface Stage {
  readonly poll: Poll;
  readonly holder: Worker;
  readonly waiter: Worker;
}

/** By which the requests of the waiters with a setting are known. */
function tagOf({ poll }: Stage): string {
  return `pollers-${poll.maxMs}`;
}

async function open({ ground }: Bench, stage: Stage): Promise<void> {
  const { poll, holder, waiter } = stage;
  const lock = ground.name();
  await holder.open("dynamutex", await ground.options("dynamutex", LEASE_MS, `holder-${poll.maxMs}`), lock);
  const options = { ...(await ground.options("dynamutex", LEASE_MS, tagOf(stage))), poll };
  await waiter.open("dynamutex", options, lock, { count: WAITERS });
}

async function wait({ ground }: Bench, stage: Stage): Promise<Round> {
  const { holder, waiter } = stage;
  const tag = tagOf(stage);
  const lock = ground.name();
  await holder.ask("lock", { name: lock });
  const from = now() + START_MS;
  const passing = waiter.ask("pass", { name: lock });
  await sleep(START_MS + 2_000 + 1_000 * Math.random());
  const released = await holder.ask("unlock", { name: lock });
  const entered = await passing;
  const seconds = (WAITERS * (released - from)) / 1_000;
  return {
    read: ground.cost({ tag, from, to: released }).read / seconds,
    firstMs: Math.min(...entered) - released,
    lastMs: Math.max(...entered) - released,
  };
}
