import type { ContenderName } from "../contenders/index.js";
import { type Bench, KEEPERS, type Workload } from "../results.js";
import { Rounds } from "../rounds.js";
import { Team } from "../worker-process.js";

const LEASE_MS = 3_000;
const PROCESSES = 4;
const TASKS = 4;
const HOLD_MS = 10;
const FOR_MS = 30_000;

interface Round {
  readonly perSecond: number;
  readonly requests: number;
  /** What the process that got least got, of what would be its share. */
  readonly leastShare: number;
}

export const fourProcesses: Workload = {
  name: "four-processes",
  title: "4 processes × 4 tasks, sections of 10 ms, for 30 s",
  async run(bench) {
    const rounds = new Rounds<Round>(bench);
    for (const name of KEEPERS) {
      const ours = name === "dynamutex";
      for (let round = 1; round <= (ours && !bench.quick ? 3 : 1); round++) {
        bench.say(`round ${round}, ${name}`);
        await rounds.run(name, () => sections(bench, name, ours ? FOR_MS : FOR_MS / 2));
      }
    }
    const each = (of: keyof Round) => rounds.medians((round) => round[of]);
    return {
      lines: [
        { title: "sections a second", better: "more", values: each("perSecond"), goal: 50 },
        { title: "requests a section", values: each("requests"), goal: 2 },
        { title: "least share of a process", unit: "×", better: "more", values: each("leastShare"), goal: 0.5 },
      ],
      notes: [
        "A share of 1 is a quarter of all sections; shown is that of the process that got least. The medians of three " +
          "rounds of dynamutex, and half a round of each of the others, whose rates need no more.",
        ...rounds.notes,
      ],
    };
  },
};

/** One round. */
export async function sections({ ground, quick }: Bench, name: ContenderName, fullMs: number): Promise<Round> {
  await using team = new Team(PROCESSES);
  const lock = ground.name();
  const tag = `processes-${lock}`;
  await team.open(name, await ground.options(name, LEASE_MS, tag), lock);
  const before = ground.cost({ tag }).requests;
  const forMs = quick ? 8_000 : fullMs;
  const all = await Promise.all(
    team.workers.map((worker) => worker.ask("sections", { name: lock, tasks: TASKS, forMs, holdMs: HOLD_MS })),
  );
  const counts = all.map(({ count }) => count);
  const total = counts.reduce((sum, count) => sum + count, 0);
  return {
    perSecond: (total / forMs) * 1_000,
    requests: (ground.cost({ tag }).requests - before) / total,
    leastShare: Math.min(...counts) / (total / PROCESSES),
  };
}
