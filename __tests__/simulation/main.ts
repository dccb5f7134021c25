import { explore, parseStart } from "./explore.js";
import { dynamutex } from "./protocol.js";

/** A long run with a report: `SIM_RUNS=100000 npm run simulate`, `SIM_SEED=… npm run simulate`. */
async function main(): Promise<void> {
  const runs = Number(process.env.SIM_RUNS ?? 10_000);
  const start = parseStart(process.env.SIM_SEED ?? String(Math.floor(Math.random() * 2 ** 31)));
  const startedAt = performance.now();
  console.log(`${runs} schedules from SIM_SEED=${start.seed}`);
  let done = 0;
  const onRun = (): void => {
    done += 1;
    if (done % 10_000 === 0) console.log(`  ${done} schedules`);
  };
  const { coverage, steps } = await explore(dynamutex, start, runs, { onRun });
  const seconds = (performance.now() - startedAt) / 1_000;
  console.log(
    `${done} schedules in ${seconds.toFixed(1)} s: ${(done / seconds).toFixed(0)} a second, ${steps} steps, no violation`,
  );
  console.log(coverage.toString());
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
