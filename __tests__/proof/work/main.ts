import { fork } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { originNow } from "../simulation/report.js";
import { BOUND_PERCENT, readBaseline, SEEDS, writeBaseline } from "./baseline.js";
import { changes, figuresOf, lineOf, type Work } from "./judge.js";
import { WORKLOADS, workOf } from "./workloads.js";
import type { Counts } from "./world.js";

const HELP = `npm run proof -- work [--only semaphore] [--accept "why it changes"]`;

/** How many seeds a worker plays at once. */
const PART = 50;

interface Part {
  readonly name: string;
  readonly seed: number;
}

type Answer = { readonly counts: readonly Counts[] } | { readonly failure: string };

/**
 * How much work the library gets done, and with how many requests: each kind of lock, as means of 1 000 seeds on virtual time,
 * compared with the baseline. `--accept` writes them into it, with the reason, where all of them or some have changed.
 */
async function main(): Promise<void> {
  const { values } = parseArgs({ options: { only: { type: "string" }, accept: { type: "string" } } });
  const names = Object.keys(WORKLOADS).filter((name) => name.includes(values.only ?? ""));
  if (names.length === 0 || values.accept?.trim() === "") throw new Error(HELP);
  const startedAt = performance.now();
  const work = await measure(names);
  const baseline = await readBaseline();
  const changed = changes(baseline.work, work, BOUND_PERCENT).map(lineOf);
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(0);
  console.log(JSON.stringify(work, undefined, 2));
  console.log(`${names.length} kinds of work, ${SEEDS} seeds each, in ${seconds} s`);
  for (const line of changed) console.log(line);
  if (values.accept === undefined) {
    if (changed.length > 0) process.exitCode = 1;
    return;
  }
  const known = Object.fromEntries(Object.entries(baseline.work).filter(([name]) => name in WORKLOADS));
  const accepted = { ...originNow(), why: values.accept, changes: Object.keys(known).length === 0 ? [] : changed };
  await writeBaseline({
    seeds: SEEDS,
    work: { ...known, ...work },
    accepted: [accepted, ...baseline.accepted],
  });
}

/** In as many processes as there are processors. */
async function measure(names: readonly string[]): Promise<Work> {
  const counts = new Map<string, Counts[]>(names.map((name) => [name, []]));
  const left = names.flatMap((name) =>
    Array.from({ length: SEEDS / PART }, (_, index): Part => ({ name, seed: 1 + index * PART })),
  );
  const work = async (): Promise<void> => {
    const worker = fork(fileURLToPath(import.meta.url), ["--worker"]);
    const ended = once(worker, "exit").then(([code]): never => {
      throw new Error(`A worker ended with ${code}`);
    });
    ended.catch(() => undefined);
    try {
      for (let part = left.shift(); part !== undefined; part = left.shift()) {
        worker.send(part);
        const [answer] = (await Promise.race([once(worker, "message"), ended])) as [Answer];
        if ("failure" in answer) throw new Error(`${part.name}, seeds from ${part.seed}: ${answer.failure}`);
        counts.get(part.name)?.push(...answer.counts);
      }
    } finally {
      left.length = 0;
      worker.kill();
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
  return Object.fromEntries([...counts].map(([name, all]) => [name, figuresOf(all)]));
}

function serve(): void {
  const play = async ({ name, seed }: Part): Promise<Answer> => {
    const counts: Counts[] = [];
    for (let next = seed; next < seed + PART; next += 1) counts.push(await workOf(name, next));
    return { counts };
  };
  process.on("message", (part: Part) => {
    void play(part)
      .catch((error: unknown): Answer => ({ failure: error instanceof Error ? `${error.stack}` : String(error) }))
      .then((answer) => process.send?.(answer));
  });
}

if (process.argv.includes("--worker")) serve();
else {
  main().catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  });
}
