import type { ContenderName } from "../contenders/index.js";
import { contender } from "../contenders/index.js";
import { show } from "../numbers.js";
import type { Bench, Workload } from "../results.js";
import { Rounds } from "../rounds.js";
import { Worker } from "../worker-process.js";
import { lapsesIn } from "./kept.js";

const LEASE_MS = 30_000;

/** How many locks, for how long, and where. */
interface Case {
  readonly name: ContenderName;
  readonly count: number;
  readonly keptMs: number;
}

/** Those of one list are held at once, each by a process of its own: together they leave the machine half idle. */
const CASES: readonly (readonly Case[])[] = [
  [
    { name: "dynamutex", count: 2_000, keptMs: 180_000 },
    { name: "in-memory", count: 10_000, keptMs: 180_000 },
    { name: "dynamutex", count: 100, keptMs: 60_000 },
    { name: "in-memory", count: 100, keptMs: 60_000 },
    { name: "in-memory", count: 1_000, keptMs: 60_000 },
  ],
  [
    { name: "dynamutex", count: 1_000, keptMs: 60_000 },
    { name: "deliveryhero", count: 1_000, keptMs: 60_000 },
    { name: "lock-client", count: 1_000, keptMs: 60_000 },
    { name: "deliveryhero", count: 100, keptMs: 60_000 },
    { name: "lock-client", count: 100, keptMs: 60_000 },
  ],
];

interface Held {
  readonly lapses: number;
  readonly requests: number;
  readonly cpuMs: number;
  readonly bytesPerLock: number;
}

export const held: Workload = {
  name: "held",
  title: "Many locks held by one process, 30 s leases",
  async run(bench) {
    const rounds = new Rounds<Case & Held>(bench);
    for (const cases of CASES) {
      const chosen = bench.quick ? cases.filter(({ count }) => count === 100) : cases;
      if (chosen.length === 0) continue;
      bench.say(chosen.map(({ name, count }) => `${count} locks, ${name}`).join("; "));
      await Promise.all(
        chosen.map(async (one) => {
          const keptMs = bench.quick ? 35_000 : one.keptMs;
          await rounds.run(one.name, async () => ({ ...one, keptMs, ...(await hold(bench, { ...one, keptMs })) }));
        }),
      );
    }
    const names = (["dynamutex", "deliveryhero", "lock-client", "in-memory"] as const).filter(
      (name) => rounds.of(name).length > 0,
    );
    const done = names.flatMap((name) => [...rounds.of(name)].sort((one, other) => one.count - other.count));
    return {
      charts: [
        {
          file: "held-cpu",
          title: "CPU time to keep many locks, leases of 30 s",
          x: { title: "locks held", log: true },
          y: { title: "CPU, ms a second", log: true },
          series: names.map((name) => ({
            title: contender(name).short,
            points: done.filter((one) => one.name === name).map(({ count, cpuMs }) => [count, cpuMs] as const),
          })),
        },
      ],
      detail: {
        columns: [
          "",
          "locks",
          "kept, s",
          "lapsed",
          "requests a lock and second",
          "CPU a second, ms",
          "memory a lock, kB",
        ],
        rows: done.map(({ name, count, keptMs, lapses, requests, cpuMs, bytesPerLock }) => [
          contender(name).title,
          show(count),
          show(keptMs / 1_000),
          show(lapses),
          show(requests),
          show(cpuMs),
          show(bytesPerLock / 1_024),
        ]),
      },
      notes: [
        "Memory is what the heap grew by, after a garbage collection, for each lock held. In memory: dynamutex on a store in the " +
          "process itself that takes 5 ms for each request, so that the figures are those of the library without SDK and network; " +
          "its memory includes the rows. A lock lapsed if its row was written too late, or its holder was told of a loss.",
        ...rounds.notes,
      ],
    };
  },
};

async function hold({ ground }: Bench, { name, count, keptMs }: Case): Promise<Held> {
  await using worker = new Worker({ flags: ["--expose-gc"] });
  const lock = ground.name();
  const tag = `held-${lock}`;
  await worker.ask("open", { name, options: await ground.options(name, LEASE_MS, tag) });
  await worker.ask("warmUp", { name: `warm-${lock}`, cycles: 200 });
  const kept = await worker.ask("keep", { name: lock, count, forMs: keptMs });
  const seconds = (kept.to - kept.from) / 1_000;
  const late = lapsesIn(ground.requests({ tag, to: kept.to }), lock, { leaseMs: LEASE_MS, until: kept.to });
  const requests = kept.requests ?? ground.cost({ tag, from: kept.from, to: kept.to }).requests;
  return {
    lapses: Math.max(late, kept.lost),
    requests: requests / count / seconds,
    cpuMs: kept.cpuMs,
    bytesPerLock: kept.bytesPerLock ?? Number.NaN,
  };
}
