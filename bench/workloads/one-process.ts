import type { ContenderName } from "../contenders/index.js";
import { type Bench, KEEPERS, type Workload } from "../results.js";
import { Rounds } from "../rounds.js";
import { Team, type Worker } from "../worker-process.js";

const LEASE_MS = 3_000;
const TASKS = 32;
const EACH = 5;

export const oneProcess: Workload = {
  name: "one-process",
  title: `${TASKS} tasks of one process, ${TASKS * EACH} empty sections`,
  async run(bench) {
    const rounds = new Rounds<{ perSecond: number; requests: number }>(bench);
    for (const name of KEEPERS) {
      const count = name === "dynamutex" && !bench.quick ? 3 : 1;
      for (let round = 1; round <= count; round++) {
        bench.say(`round ${round}, ${name}`);
        await rounds.run(name, () => sections(bench, name));
      }
    }
    const each = (of: "perSecond" | "requests") => rounds.medians((round) => round[of]);
    return {
      lines: [
        { title: "sections a second", better: "more", values: each("perSecond"), goal: 1_000 },
        { title: "requests a section", values: each("requests"), goal: 0.1 },
      ],
      notes: ["The medians of three rounds of dynamutex, and one round of the others.", ...rounds.notes],
    };
  },
};

async function sections({ ground }: Bench, name: ContenderName): Promise<{ perSecond: number; requests: number }> {
  await using team = new Team(1);
  const lock = ground.name();
  await team.open(name, await ground.options(name, LEASE_MS, `tasks-${lock}`), lock);
  const before = ground.cost({ tag: `tasks-${lock}` }).requests;
  const [worker] = team.workers as [Worker];
  const { count, ms } = await worker.ask("sections", { name: lock, tasks: TASKS, each: EACH, holdMs: 0 });
  const requests = ground.cost({ tag: `tasks-${lock}` }).requests - before;
  return { perSecond: (count / ms) * 1_000, requests: requests / count };
}
