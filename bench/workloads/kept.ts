import type { RecordedRequest } from "../../__tests__/support/fault-proxy.js";
import type { ContenderName } from "../contenders/index.js";
import { type Bench, KEEPERS, type Workload } from "../results.js";
import { Rounds } from "../rounds.js";
import { Worker } from "../worker-process.js";

const LEASE_MS = 3_000;
const LOCKS = 500;
const KEPT_MS = 6_000;

interface Round {
  readonly lapses: number;
  readonly requests: number;
  readonly cpuMs: number;
}

export const kept: Workload = {
  name: "kept",
  title: `${LOCKS} locks kept by one process for 6 s, 3 s leases`,
  async run(bench) {
    const rounds = new Rounds<Round>(bench);
    for (let round = 1; round <= (bench.quick ? 1 : 3); round++) {
      // Whoever comes first finds another engine than the others.
      for (const name of round % 2 === 1 ? KEEPERS : [...KEEPERS].reverse()) {
        bench.say(`round ${round}, ${name}`);
        await rounds.run(name, () => keep(bench, name));
      }
    }
    const each = (of: keyof Round) => rounds.medians((round) => round[of]);
    return {
      lines: [
        { title: "leases that lapsed", unit: "", better: "less", values: each("lapses"), goal: 0 },
        { title: "requests a lock and second", unit: "", better: "less", values: each("requests") },
        { title: "CPU a second", unit: "ms", better: "less", values: each("cpuMs") },
      ],
      notes: [
        "A lease lapsed where its row was not written again within the lease, as seen from the table.",
        ...rounds.notes,
      ],
    };
  },
};

async function keep({ ground }: Bench, name: ContenderName): Promise<Round> {
  await using worker = new Worker();
  const lock = ground.name();
  const tag = `kept-${lock}`;
  await worker.ask("open", { name, options: await ground.options(name, LEASE_MS, tag) });
  await worker.ask("warmUp", { name: `warm-${lock}`, cycles: 20 });
  const { cpuMs, from, to } = await worker.ask("keep", { name: lock, count: LOCKS, forMs: KEPT_MS });
  const writes = ground.requests({ tag, to });
  return {
    lapses: lapsesIn(writes, lock, { leaseMs: LEASE_MS, until: to }),
    requests: ground.cost({ tag, from, to }).requests / LOCKS / ((to - from) / 1_000),
    cpuMs,
  };
}

/** How many leases of locks of this name ended before they were written again. */
export function lapsesIn(
  requests: readonly RecordedRequest[],
  name: string,
  { leaseMs, until }: { readonly leaseMs: number; readonly until: number },
): number {
  const written = new Map<string, number>();
  let lapses = 0;
  for (const { operation, body, table, arrivedAt } of requests) {
    const lock = body.Item?.name?.S ?? body.Key?.name?.S ?? "";
    if (operation === "GetItem" || table?.status !== 200 || !lock.startsWith(`${name}-`)) continue;
    const before = written.get(lock);
    if (before !== undefined && arrivedAt - before > leaseMs) lapses += 1;
    written.set(lock, arrivedAt);
  }
  for (const last of written.values()) if (until - last > leaseMs) lapses += 1;
  return lapses;
}
