import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import type { ContenderName } from "../contenders/index.js";
import { median, show } from "../numbers.js";
import { ROOT } from "../record.js";
import type { Bench, Workload } from "../results.js";
import { cpuMsOf, PROGRAMS } from "./first-lock.js";
import { sections as contended } from "./four-processes.js";
import { cpuUs, sections as inside } from "./one-process.js";
import { costOfCycle, measure } from "./uncontended.js";
import { waitAll } from "./waiting.js";

type Side = "before" | "dynamutex";
type Values = Readonly<Record<Side, readonly number[]>>;

/** What is measured of both, with the values of each round: those of one round belong together. */
interface Compared extends Values {
  readonly title: string;
}

/** This library against another checkout of it: whether what one pays for is what it was. */
export function before(folder: string): Workload {
  const checkout = resolve(folder);
  if (!existsSync(join(checkout, "dist", "index.mjs"))) {
    console.error(`${checkout} has no dist/index.mjs: run \`npm ci && npm run build\` there first.`);
    process.exit(1);
  }
  // For the workers, which inherit it.
  process.env.BENCH_BEFORE = checkout;
  return {
    name: "before",
    title: "before and now",
    async run(bench) {
      const compared = [
        ...(await uncontended(bench)),
        await fresh(bench, checkout),
        ...(await waits(bench)),
        ...(await insideOne(bench)),
        ...(await between(bench)),
      ];
      return {
        detail: { columns: ["", "before", "now", "now / before", "least", "most"], rows: compared.map(rowOf) },
        notes: ["Medians. A ratio is the median of those of the rounds, with the least and the most of them."],
      };
    },
  };
}

/** Both in one process, 20 cycles of each in turn. */
async function uncontended(bench: Bench): Promise<readonly Compared[]> {
  const direct = [];
  for (let round = 1; round <= (bench.quick ? 1 : 5); round++) {
    bench.say(`round ${round}, cycles of nobody else`);
    direct.push(await measure(bench, "dynamutex", { proxied: false, floor: "before" }));
  }
  bench.say("cycles of nobody else, through the proxy");
  // One after another: each takes its endpoint, by which the proxy tells them apart, from the environment.
  for (const side of ["before", "dynamutex"] as const) await measure(bench, side, { proxied: true });
  const cost = { before: costOfCycle(bench.ground, "before"), dynamutex: costOfCycle(bench.ground, "dynamutex") };
  const perCycle = (title: string, of: "requests" | "read" | "write"): Compared => ({
    title: `a cycle of nobody else, ${title}`,
    before: [cost.before[of]],
    dynamutex: [cost.dynamutex[of]],
  });
  return [
    perCycle("requests", "requests"),
    perCycle("RRU", "read"),
    perCycle("WRU", "write"),
    {
      title: "a cycle of nobody else, µs of CPU",
      before: direct.map(({ rawCpuUs }) => rawCpuUs),
      dynamutex: direct.map(({ cpuUs: ours }) => ours),
    },
    {
      title: "a cycle of nobody else, ms",
      before: direct.map(({ rawLatencyMs }) => rawLatencyMs),
      dynamutex: direct.map(({ latencyMs }) => latencyMs),
    },
  ];
}

async function fresh(bench: Bench, checkout: string): Promise<Compared> {
  const options = await bench.ground.options("dynamutex", 30_000, undefined);
  bench.say("fresh processes");
  return await inTurns("a fresh process, ms of CPU", bench.quick ? 3 : 25, async (side) =>
    cpuMsOf(PROGRAMS.dynamutex, options, side === "before" ? checkout : ROOT),
  );
}

async function waits(bench: Bench): Promise<readonly Compared[]> {
  const rounds = await waitAll(bench, ["before", "dynamutex"], bench.quick ? 2 : 15);
  const each = (title: string, of: "read" | "write" | "firstMs" | "lastMs"): Compared => ({
    title,
    before: rounds.of("before").map((round) => round[of]),
    dynamutex: rounds.of("dynamutex").map((round) => round[of]),
  });
  return [
    each("a waiter's second, RRU", "read"),
    each("a waiter's second, WRU", "write"),
    each("the first of 4 waiters in, ms", "firstMs"),
    each("the last of 4 waiters in, ms", "lastMs"),
  ];
}

async function insideOne(bench: Bench): Promise<readonly Compared[]> {
  bench.say("sections of 32 tasks of one process");
  const requests = await inTurns("hand-over inside a process, requests a section", 3, async (side) => {
    return (await inside(bench, side)).requests;
  });
  const cold: Record<Side, number[]> = { before: [], dynamutex: [] };
  const warm = await inTurns(
    "hand-over inside a process, warm, µs of CPU a section",
    bench.quick ? 2 : 11,
    async (side) => {
      const measured = await cpuUs(bench, side);
      cold[side].push(measured.cold);
      return measured.warm;
    },
  );
  return [requests, { title: "hand-over inside a process, cold, µs of CPU a section", ...cold }, warm];
}

async function between(bench: Bench): Promise<readonly Compared[]> {
  bench.say("sections of 4 processes");
  const requests: Record<Side, number[]> = { before: [], dynamutex: [] };
  const perSecond = await inTurns(
    "4 processes of 4 tasks, sections a second (more is better)",
    bench.quick ? 1 : 5,
    async (side) => {
      const round = await contended(bench, side, 10_000);
      requests[side].push(round.requests);
      return round.perSecond;
    },
  );
  return [perSecond, { title: "4 processes of 4 tasks, requests a section", ...requests }];
}

/** Whoever comes second finds other caches: so they change places. */
async function inTurns(
  title: string,
  rounds: number,
  run: (side: Side & ContenderName) => Promise<number>,
): Promise<Compared> {
  const values: Record<Side, number[]> = { before: [], dynamutex: [] };
  for (let round = 0; round < rounds; round++) {
    const order = round % 2 === 0 ? (["before", "dynamutex"] as const) : (["dynamutex", "before"] as const);
    for (const side of order) values[side].push(await run(side));
  }
  return { title, ...values };
}

function rowOf({ title, before: earlier, dynamutex: now }: Compared): readonly string[] {
  const ratios = now
    .map((value, round) => value / (earlier[round] ?? Number.NaN))
    .filter((ratio) => !Number.isNaN(ratio));
  const spread = ratios.length === 0 ? [] : [median(ratios), Math.min(...ratios), Math.max(...ratios)];
  return [title, show(median(earlier)), show(median(now)), ...[0, 1, 2].map((at) => show(spread[at] ?? Number.NaN))];
}
