import { fork } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { Coverage } from "./coverage.js";
import { explore, parseStart } from "./explore.js";
import { figuresOf } from "./figures.js";
import { dynamutex } from "./protocol.js";
import { originNow, writeReport } from "./report.js";

/** How many schedules a worker plays at once: each such part has a seed of its own, which its failure names. */
const PART = 1_000;

/**
 * A world is thrown away after a moment: with room for it, most of it is never copied. That gains a fifth of the time. Source maps
 * cost more than they show: a failure is replayed in a process that has them.
 */
const YOUNG = "--max-semi-space-size=64";

/** Elections warn of what has failed, which is most of what happens here. */
const QUIET = "--disable-warning=DynamutexWarning";

/** What a worker has done. */
interface Played {
  readonly runs: number;
  readonly steps: number;
  readonly coverage: readonly (readonly [string, number])[];
}

type Answer = { readonly played: Played } | { readonly failure: string };

interface Part {
  readonly seed: number;
  readonly runs: number;
}

/**
 * A long run with a report: `SIM_RUNS=100000 npm run proof -- simulation`, in as many processes as there are processors or
 * `SIM_WORKERS` says. `SIM_SEED=7` plays the seeds from 7 on, 1 000 schedules each; `SIM_SEED=7/…` one failure again. With
 * `--report`, the report's page is written.
 */
async function main(): Promise<void> {
  const runs = Number(process.env.SIM_RUNS ?? 10_000);
  const start = parseStart(process.env.SIM_SEED ?? String(Math.floor(Math.random() * 2 ** 30)));
  if (start.path !== undefined) {
    await explore(dynamutex, start, 1);
    console.log("no violation");
    return;
  }
  const parts = Array.from({ length: Math.ceil(runs / PART) }, (_, index) => ({
    seed: start.seed + index,
    runs: Math.min(PART, runs - index * PART),
  }));
  const seeds = `${parts[0]?.seed} to ${parts.at(-1)?.seed}`;
  console.log(`${runs} schedules: SIM_SEED from ${seeds}`);
  const startedAt = performance.now();
  const workers = Number(process.env.SIM_WORKERS ?? availableParallelism());
  const { total, coverage, failed } = await playAll(parts, workers);
  const seconds = (performance.now() - startedAt) / 1_000;
  const found =
    failed === 0
      ? "no violation"
      : `**a violation in ${failed} of ${parts.length} parts**, which ended there and do not count`;
  const done = `${total.runs} schedules in ${seconds.toFixed(0)} s`;
  const rates = `${(total.runs / seconds).toFixed(0)} a second, ${total.steps} steps`;
  console.log(`${done}: ${rates}, ${found}\n${coverage}`);
  if (failed > 0) process.exitCode = 1;
  if (!process.argv.includes("--report")) return;
  const { date, commit } = originNow();
  const head = `${date}, commit ${commit}, seeds ${seeds}: ${done}, ${found}.`;
  const report = `${head}\n\n\`\`\`\n${figuresOf(coverage)}\n\`\`\``;
  await writeReport("simulation", report);
}

async function playAll(parts: readonly Part[], workers: number) {
  const coverage = new Coverage();
  const total = { runs: 0, steps: 0 };
  /** A part that fails ends, and the others are played to their end: each failure is one to look at. */
  let failed = 0;
  const left = [...parts];
  const work = async (): Promise<void> => {
    const worker = fork(fileURLToPath(import.meta.url), ["--worker"], { execArgv: [YOUNG, QUIET] });
    const end = ended(worker);
    end.catch(() => undefined);
    try {
      for (let part = left.shift(); part !== undefined; part = left.shift()) {
        worker.send(part);
        const [answer] = (await Promise.race([once(worker, "message"), end])) as [Answer];
        if ("failure" in answer) {
          failed += 1;
          console.error(answer.failure);
          continue;
        }
        const { runs, steps, coverage: counts } = answer.played;
        total.runs += runs;
        total.steps += steps;
        for (const [what, count] of counts) coverage.count(what, count);
        if (total.runs % 10_000 < PART) console.log(`  ${total.runs} schedules`);
      }
    } finally {
      left.length = 0;
      worker.kill();
    }
  };
  await Promise.all(Array.from({ length: Math.max(1, Math.min(workers, parts.length)) }, work));
  return { total, coverage, failed };
}

async function ended(worker: ReturnType<typeof fork>): Promise<never> {
  const [code, signal] = await once(worker, "exit");
  throw new Error(`A worker ended with ${code ?? signal}`);
}

/** Plays what it is told to, part after part, until it is killed. */
function serve(): void {
  const play = async ({ seed, runs }: Part): Promise<Answer> => {
    try {
      const played = await explore(dynamutex, { seed }, runs);
      return { played: { ...played, coverage: played.coverage.entries } };
    } catch (error) {
      return { failure: error instanceof Error ? error.message : String(error) };
    }
  };
  process.on("message", (part: Part) => {
    void play(part).then((answer) => process.send?.(answer));
  });
}

if (process.argv.includes("--worker")) serve();
else {
  main().catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  });
}
