import type { ContenderName } from "../contenders/index.js";
import { type Bench, KEEPERS, type Workload } from "../results.js";
import { Rounds } from "../rounds.js";
import { Team, type Worker } from "../worker-process.js";

const LEASE_MS = 3_000;
const TASKS = 32;
const EACH = 5;
/** Sections of each task where CPU time is measured: so many that Node has compiled what the next as many run. */
const LONG_EACH = 160;
const LONG_ROUNDS = 5;

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
    const costs = new Rounds<{ cold: number; warm: number }>(bench);
    for (let round = 1; round <= (bench.quick ? 1 : LONG_ROUNDS); round++) {
      bench.say(`round ${round}, CPU`);
      await costs.run("dynamutex", () => cpuUs(bench));
    }
    const each = (of: "perSecond" | "requests") => rounds.medians((round) => round[of]);
    const cost = (of: "cold" | "warm") => costs.medians((round) => round[of]);
    return {
      lines: [
        { title: "sections a second", better: "more", values: each("perSecond"), goal: 1_000 },
        { title: "requests a section", values: each("requests"), goal: 0.1 },
        { title: `CPU a section of ${TASKS * LONG_EACH} in a fresh process, µs`, values: cost("cold") },
        { title: "CPU a section of the next as many, µs", values: cost("warm") },
      ],
      notes: [
        `The medians of three rounds of dynamutex, of ${LONG_ROUNDS} for its CPU, and one round of the others.`,
        ...rounds.notes,
        ...costs.notes,
      ],
    };
  },
};

/** One round. */
export async function sections(
  { ground }: Bench,
  name: ContenderName,
): Promise<{ perSecond: number; requests: number }> {
  await using team = new Team(1);
  const lock = ground.name();
  await team.open(name, await ground.options(name, LEASE_MS, `tasks-${lock}`), lock);
  const before = ground.cost({ tag: `tasks-${lock}` }).requests;
  const [worker] = team.workers as [Worker];
  const { count, ms } = await worker.ask("sections", { name: lock, tasks: TASKS, each: EACH, holdMs: 0 });
  const requests = ground.cost({ tag: `tasks-${lock}` }).requests - before;
  return { perSecond: (count / ms) * 1_000, requests: requests / count };
}

/** CPU time of the whole process, for each section. */
export async function cpuUs(
  { ground }: Bench,
  contender: ContenderName = "dynamutex",
): Promise<{ cold: number; warm: number }> {
  await using team = new Team(1);
  const name = ground.name();
  await team.open(contender, await ground.options(contender, LEASE_MS, `cpu-${name}`), name);
  const [worker] = team.workers as [Worker];
  const once = async (): Promise<number> => {
    const { count, cpuMs } = await worker.ask("sections", { name, tasks: TASKS, each: LONG_EACH, holdMs: 0 });
    return (cpuMs * 1_000) / count;
  };
  return { cold: await once(), warm: await once() };
}
