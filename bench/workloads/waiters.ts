import { setTimeout as sleep } from "node:timers/promises";
import { now } from "../../__tests__/support/monotonic.js";
import type { ContenderName } from "../contenders/index.js";
import { contender } from "../contenders/index.js";
import { show } from "../numbers.js";
import { type Bench, KEEPERS, moneyOf, type Workload } from "../results.js";
import { Rounds } from "../rounds.js";
import { Team } from "../worker-process.js";

const LEASE_MS = 3_000;
const COUNTS = [1, 4, 16, 64];
/** By then a crowd that came at once has lined up, where there is a line. */
const START_MS = 6_000;
const WINDOW_MS = 4_000;
/** Who has not let all of them in by then is not waited for. */
const PATIENCE_MS = 20_000;

interface Point {
  readonly count: number;
  readonly money: number;
  /** From the release to when the last was in, divided by how many there were. */
  readonly handOverMs: number;
}

export const waiters: Workload = {
  name: "waiters",
  title: "Cost against the number of waiting hosts",
  async run(bench) {
    const counts = bench.quick ? [1, 4] : COUNTS;
    const rounds = new Rounds<Point>(bench);
    for (const count of counts) {
      for (const name of KEEPERS) {
        bench.say(`${count} waiting, ${name}`);
        await rounds.run(name, () => wait(bench, name, count));
      }
    }
    const pointOf = (name: ContenderName, count: number, of: "money" | "handOverMs"): number =>
      rounds.of(name).find((point) => point.count === count)?.[of] ?? Number.NaN;
    const series = (of: "money" | "handOverMs") =>
      KEEPERS.map((name) => ({
        title: contender(name).short,
        points: counts
          .map((count) => [count, pointOf(name, count, of)] as const)
          .filter(([, value]) => Number.isFinite(value)),
      }));
    const cells = (of: "money" | "handOverMs") =>
      KEEPERS.map((name) => [
        `${contender(name).title}: ${of === "money" ? "RRU a waiter and second" : "ms a hand-over"}`,
        ...counts.map((count) => show(pointOf(name, count, of))),
      ]);
    const x = { title: "waiting hosts", log: true };
    return {
      charts: [
        {
          file: "waiters-cost",
          title: "What a waiter costs",
          x,
          y: { title: "RRU a waiter and second (a WRU is five)" },
          series: series("money"),
        },
        {
          file: "waiters-hand-over",
          title: "How fast the lock goes round",
          x,
          y: { title: "ms a hand-over", log: true },
          series: series("handOverMs"),
        },
      ],
      detail: { columns: ["waiting hosts", ...counts.map(String)], rows: [...cells("money"), ...cells("handOverMs")] },
      notes: [
        `Every waiter is a host of its own as far as the table can tell: a lock table and a client for each, in one process. Costs are those ` +
          `of ${WINDOW_MS / 1_000} s from ${START_MS / 1_000} s after they began. – where not all were in within ${PATIENCE_MS / 1_000} s of the release.`,
        ...rounds.notes,
      ],
    };
  },
};

async function wait({ ground }: Bench, name: ContenderName, count: number): Promise<Point> {
  await using holders = new Team(1);
  await using others = new Team(1);
  const lock = ground.name();
  const tag = `waiters-for-${lock}`;
  await Promise.all([
    holders.open(name, await ground.options(name, LEASE_MS, `holder-of-${lock}`), lock),
    others.open(name, await ground.options(name, LEASE_MS, tag), lock, { count }),
  ]);
  const [holder, waiter] = [holders.only, others.only];
  await holder.ask("lock", { name: lock });
  const from = now() + START_MS;
  const passing = waiter.ask("pass", { name: lock });
  await sleep(START_MS + WINDOW_MS);
  const cost = ground.cost({ tag, from, to: from + WINDOW_MS });
  const released = await holder.ask("unlock", { name: lock });
  const entered = await Promise.race([passing, sleep(PATIENCE_MS, undefined, { ref: false })]);
  return {
    count,
    money: moneyOf(cost) / count / (WINDOW_MS / 1_000),
    handOverMs: entered === undefined ? Number.NaN : (Math.max(...entered) - released) / count,
  };
}
