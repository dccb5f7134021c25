import type { RecordedRequest } from "../../__tests__/support/fault-proxy.js";
import type { ContenderName } from "../contenders/index.js";
import type { Cost, Ground } from "../ground.js";
import { median } from "../numbers.js";
import { type Bench, type Line, type Outcome, TAKERS, type Workload } from "../results.js";
import { Rounds } from "../rounds.js";
import { Worker } from "../worker-process.js";

const LEASE_MS = 3_000;

/** What a contender takes turns with. */
type Floor = "raw" | "bare" | "before";

/** What else the CPU time is set against, without the proxy. */
const OTHER_RATIOS: readonly { readonly title: string; readonly name?: ContenderName; readonly floor?: Floor }[] = [
  { title: "with a client of the caller's", name: "shared" },
  { title: "against a floor without signals", floor: "bare" },
];
const CYCLES_PER_BATCH = 20;

export interface Measured {
  readonly ratio: number;
  readonly cpuUs: number;
  readonly rawCpuUs: number;
  readonly latencyMs: number;
  readonly rawLatencyMs: number;
}

export const uncontended: Workload = {
  name: "uncontended",
  title: "A lock that nobody else wants: lock and unlock",
  async run(bench) {
    const direct = new Rounds<Measured>(bench);
    const proxied = new Rounds<Measured>(bench);
    for (const name of TAKERS) {
      bench.say(`${name} and the floor in turn, past the proxy`);
      await direct.run(name, () => measure(bench, name, { proxied: false }));
      bench.say(`${name} and the floor in turn, through the proxy`);
      await proxied.run(name, () => measure(bench, name, { proxied: true }));
    }
    const others: Line[] = [];
    for (const { title, name = "dynamutex", floor = "raw" } of OTHER_RATIOS) {
      bench.say(`dynamutex ${title} in turn, past the proxy`);
      const rounds = new Rounds<Measured>(bench);
      await rounds.run("dynamutex", () => measure(bench, name, { proxied: false, floor }));
      others.push({ title, unit: "×", values: rounds.medians(({ ratio }) => ratio) });
    }
    return outcome(bench, { direct, proxied, others });
  },
};

/** Both in one process, so that whatever disturbs one disturbs the other; the ratio is taken batch by batch. */
export async function measure(
  { ground, quick }: Bench,
  name: ContenderName,
  { proxied, floor = "raw" }: { readonly proxied: boolean; readonly floor?: Floor },
): Promise<Measured> {
  await using worker = new Worker();
  const contenders = await Promise.all(
    ([floor, name] as const).map(async (one) => ({
      name: one,
      options: await ground.options(one, LEASE_MS, proxied ? `uncontended-${one}` : undefined),
    })),
  );
  const full = name === "dynamutex" || name === "shared" ? 120 : 25;
  const { cpuUs, latencyMs } = await worker.ask("cycles", {
    contenders,
    batches: quick ? 20 : full,
    cyclesPerBatch: CYCLES_PER_BATCH,
  });
  const column = (index: number): number => median(cpuUs.map((batch) => batch[index] ?? Number.NaN));
  return {
    ratio: median(cpuUs.map(([raw = Number.NaN, other = Number.NaN]) => other / raw)),
    rawCpuUs: column(0),
    cpuUs: column(1),
    rawLatencyMs: latencyMs[0] ?? Number.NaN,
    latencyMs: latencyMs[1] ?? Number.NaN,
  };
}

function outcome(
  { ground }: Bench,
  {
    direct,
    proxied,
    others,
  }: Readonly<Record<"direct" | "proxied", Rounds<Measured>>> & { readonly others: readonly Line[] },
): Outcome {
  const names = ["raw", ...TAKERS] as const;
  const perCycle = (name: ContenderName, of: keyof Cost): number => costOfCycle(ground, name)[of];
  const each = (value: (name: ContenderName) => number) =>
    Object.fromEntries(names.map((name) => [name, value(name)])) as Record<ContenderName, number>;
  const own = (of: Rounds<Measured>, mine: keyof Measured, floor: keyof Measured) =>
    each((name) => of.of(name === "raw" ? "dynamutex" : name)[0]?.[name === "raw" ? floor : mine] ?? Number.NaN);
  const ratios = (of: Rounds<Measured>) => each((name) => (name === "raw" ? 1 : (of.of(name)[0]?.ratio ?? Number.NaN)));
  return {
    lines: [
      { title: "requests", values: each((name) => perCycle(name, "requests")), goal: 2 },
      { title: "write units", unit: "WRU", values: each((name) => perCycle(name, "write")), goal: 2 },
      { title: "read units", unit: "RRU", values: each((name) => perCycle(name, "read")), goal: 0 },
      { title: "CPU against the floor", unit: "×", values: ratios(proxied), goal: 1.2 },
      { title: "the same without the proxy", unit: "×", values: ratios(direct), goal: 1.2 },
      ...others,
      { title: "CPU", unit: "µs", values: own(proxied, "cpuUs", "rawCpuUs") },
      { title: "time", unit: "ms", values: own(proxied, "latencyMs", "rawLatencyMs") },
    ],
    notes: [
      "CPU is that of the process, all threads. Each contender takes turns with the floor in one process, " +
        `${CYCLES_PER_BATCH} cycles at a time; shown is the median of the ratios of neighbouring turns. Requests and units ` +
        "are those of all locks of a process but its first.",
      "A floor without signals sends the same two requests with no bound of their own on their time, only the client's. " +
        "Its middleware is cached where its client has `cacheMiddleware`, which the SDK heeds for such requests alone.",
      ...direct.notes,
      ...proxied.notes,
    ],
  };
}

/** What one cycle of a contender came to, through the proxy: what is deleted last is one cycle. */
export function costOfCycle(ground: Ground, name: ContenderName): Cost {
  const tag = `uncontended-${name}`;
  const sent = afterFirstCycle(ground.requests({ tag }));
  const { requests, read, write } = ground.cost({ tag, from: sent[0]?.arrivedAt ?? Number.NaN });
  const cycles = cyclesIn(sent.map(({ operation }) => operation));
  return { requests: requests / cycles, read: read / cycles, write: write / cycles };
}

/** The first lock of a process may have to learn the time, which is a workload of its own. */
function afterFirstCycle(requests: readonly RecordedRequest[]): readonly RecordedRequest[] {
  const released = requests.findIndex(({ operation }) => operation === "DeleteItem");
  const puts = requests.flatMap(({ operation }, index) => (operation === "PutItem" ? [index] : []));
  return requests.slice((released === -1 ? (puts[1] ?? 0) : released) + 1);
}

/** Every contender begins a cycle with one put; the lock client ends it with another. */
function cyclesIn(operations: readonly string[]): number {
  const count = (operation: string): number => operations.filter((one) => one === operation).length;
  return count("DeleteItem") || count("PutItem") / 2;
}
