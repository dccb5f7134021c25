/// <reference lib="esnext.disposable" preserve="true" />
import { LockTable } from "dynamutex";
import { Program } from "./program.js";
import { runExample } from "./run-example.js";

const TABLE_NAME = process.env.TABLE_NAME ?? "locks";

/**
 * Starts three hosts, shows what they print, and kills the one that ran last when half of the runs are over.
 *
 * @param program a host: its argument is its name, and it prints `NAME runs TICK` for each tick that it runs.
 * The exit code is 0 if no tick ran twice, and the other two went on after the kill.
 */
export async function threeHosts(program: URL, { runs }: { readonly runs: number }): Promise<void> {
  await runExample(async () => {
    {
      await using locks = new LockTable({ tableName: TABLE_NAME });
      await locks.create();
    }
    const seen = await watch(program, runs);
    const ticks = seen.map(({ tick }) => tick);
    const twice = ticks.filter((tick, index) => ticks.indexOf(tick) < index);
    const by = [...new Set(seen.map(({ host }) => host))].join(", ");
    console.log(`\n${ticks.length} ticks were run by ${by}; ${twice.length} of them twice${twice.map((t) => ` ${t}`)}`);
    return twice.length === 0;
  });
}

interface Run {
  readonly host: string;
  readonly tick: string;
}

/** @returns the first so many runs. */
async function watch(program: URL, runs: number): Promise<readonly Run[]> {
  let stop = (): void => undefined;
  const enough = new Promise<void>((resolve) => {
    stop = resolve;
  });
  const seen: Run[] = [];
  const onLine = (line: string): void => {
    console.log(line);
    const [host, tick] = /^(\w+) runs (\S+)$/.exec(line)?.slice(1) ?? [];
    if (host === undefined || tick === undefined || seen.length === runs) return;
    seen.push({ host, tick });
    if (seen.length === Math.floor(runs / 2)) {
      console.log(`${host} is killed`);
      hosts[host]?.kill("SIGKILL");
    }
    if (seen.length === runs) stop();
  };
  await using a = new Program(program, ["a"], { onLine });
  await using b = new Program(program, ["b"], { onLine });
  await using c = new Program(program, ["c"], { onLine });
  const hosts: Readonly<Record<string, Program>> = { a, b, c };
  await enough;
  for (const host of [a, b, c]) host.kill("SIGTERM"); // each ends after what it does
  await Promise.all([a, b, c].map((host) => host.exited));
  return seen;
}
