import { setTimeout as sleep } from "node:timers/promises";
import type { ContenderName } from "../contenders/index.js";
import { median } from "../numbers.js";
import { type Bench, KEEPERS, type Workload } from "../results.js";
import { Rounds } from "../rounds.js";
import { Team, type Worker } from "../worker-process.js";

const LEASE_MS = 3_000;
/** How wrong the clocks of holder and waiter are, for those who trust none. */
const WRONG_BY_MS = 3_600_000;

export const takeover: Workload = {
  name: "takeover",
  title: "A killed holder, 3 s leases: taken over so long after its lease ended",
  async run(bench) {
    const rounds = new Rounds<number>(bench);
    const count = bench.quick ? 2 : 10;
    for (let round = 1; round <= count; round++) {
      bench.say(`round ${round}, all at once`);
      await Promise.all(KEEPERS.map((name) => rounds.run(name, () => takeOver(bench, name))));
    }
    return {
      lines: [
        { title: "median", unit: "ms", values: rounds.each(median), goal: 300 },
        { title: "longest", unit: "ms", values: rounds.each((lates) => Math.max(...lates)), goal: 300 },
      ],
      notes: [
        `Of ${count} rounds. A lease is counted from when its last write arrived. dynamutex's holder has a clock that is an ` +
          "hour slow, and its waiter one that is an hour fast; the others trust the hosts' clocks, so theirs are right. " +
          "All processes have used the table for a few seconds before.",
        ...rounds.notes,
      ],
    };
  },
};

async function takeOver({ ground }: Bench, name: ContenderName): Promise<number> {
  await using holders = new Team(1);
  await using waiters = new Team(1);
  const lock = ground.name();
  const tag = `holder-of-${lock}`;
  const wrong = (byMs: number) => (name === "dynamutex" ? { clockWrongByMs: byMs } : {});
  const [forHolder, forWaiter] = await Promise.all([
    ground.options(name, LEASE_MS, tag),
    ground.options(name, LEASE_MS, `waiter-for-${lock}`),
  ]);
  await Promise.all([
    holders.open(name, { ...forHolder, ...wrong(-WRONG_BY_MS) }, lock, { cycles: 120 }),
    waiters.open(name, { ...forWaiter, ...wrong(WRONG_BY_MS) }, lock, { cycles: 120 }),
  ]);
  const [holder] = holders.workers as [Worker];
  const [waiter] = waiters.workers as [Worker];
  await holder.ask("lock", { name: lock });
  const passing = waiter.ask("pass", { name: lock });
  await sleep(LEASE_MS + LEASE_MS * Math.random());
  await holder.kill();
  const [enteredAt = Number.NaN] = await passing;
  const lastWrite = ground
    .requests({ tag })
    .findLast(({ operation, table }) => operation !== "GetItem" && table?.status === 200);
  return enteredAt - ((lastWrite?.arrivedAt ?? Number.NaN) + LEASE_MS);
}
