import type { RecordedRequest } from "../../__tests__/support/fault-proxy.js";
import type { ContenderName } from "../contenders/index.js";
import { type Bench, KEEPERS, type Line, type Workload } from "../results.js";
import { Rounds } from "../rounds.js";
import { Worker } from "../worker-process.js";

/** Short leases, which are renewed often, and many that are renewed as seldom as by default. */
const SIZES = [
  { locks: 500, leaseMs: 3_000, keptMs: 6_000 },
  { locks: 5_000, leaseMs: 30_000, keptMs: 30_000 },
] as const;

type Size = (typeof SIZES)[number];

interface Round {
  readonly lapses: number;
  readonly requests: number;
  readonly cpuMs: number;
}

export const kept: Workload = {
  name: "kept",
  title: "500 locks of 3 s, and 5 000 of 30 s, kept by one process",
  async run(bench) {
    const lines: Line[] = [];
    const notes: string[] = [];
    for (const size of SIZES) {
      const rounds = new Rounds<Round>(bench);
      for (let round = 1; round <= (bench.quick ? 1 : 3); round++) {
        // Whoever comes first finds another engine than the others.
        for (const name of round % 2 === 1 ? KEEPERS : [...KEEPERS].reverse()) {
          bench.say(`${size.locks} locks, round ${round}, ${name}`);
          await rounds.run(name, () => keep(bench, name, size));
        }
      }
      const each = (of: keyof Round) => rounds.medians((round) => round[of]);
      const what = `of ${size.locks} of ${size.leaseMs / 1_000} s`;
      lines.push(
        { title: `leases that lapsed, ${what}`, values: each("lapses"), goal: 0 },
        { title: `requests a lock and second, ${what}`, values: each("requests") },
        { title: `CPU a second, ${what}`, unit: "ms", values: each("cpuMs") },
      );
      notes.push(...rounds.notes);
    }
    const lapse = "A lease lapsed where its row was not written again within the lease, as seen from the table.";
    return { lines, notes: [lapse, ...notes] };
  },
};

async function keep({ ground }: Bench, name: ContenderName, { locks, leaseMs, keptMs }: Size): Promise<Round> {
  await using worker = new Worker();
  const lock = ground.name();
  const tag = `kept-${lock}`;
  await worker.ask("open", { name, options: await ground.options(name, leaseMs, tag) });
  await worker.ask("warmUp", { name: `warm-${lock}`, cycles: 20 });
  const { cpuMs, from, to } = await worker.ask("keep", { name: lock, count: locks, forMs: keptMs });
  const writes = ground.requests({ tag, to });
  return {
    lapses: lapsesIn(writes, lock, { leaseMs, until: to }),
    requests: ground.cost({ tag, from, to }).requests / locks / ((to - from) / 1_000),
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
  for (const request of requests) {
    for (const lock of writtenBy(request)) {
      if (!lock.startsWith(`${name}-`)) continue;
      const before = written.get(lock);
      if (before !== undefined && request.arrivedAt - before > leaseMs) lapses += 1;
      written.set(lock, request.arrivedAt);
    }
  }
  for (const last of written.values()) if (until - last > leaseMs) lapses += 1;
  return lapses;
}

/** The locks whose rows a request has written: one, or those of the statements of a batch that were applied. */
function writtenBy({ operation, body, table }: RecordedRequest): readonly string[] {
  if (operation === "GetItem" || table?.status !== 200) return [];
  if (body.Statements === undefined) return [body.Item?.name?.S ?? body.Key?.name?.S ?? ""];
  const responses = table.body.Responses as readonly { readonly Error?: object }[];
  const statements = body.Statements as readonly Statement[];
  return statements.flatMap(({ Statement, Parameters }, index) => {
    // The key comes right after WHERE, behind the values that are set.
    const before = Statement.slice(0, Statement.indexOf("WHERE")).split("?").length - 1;
    return responses[index]?.Error === undefined ? [Parameters[before]?.S ?? ""] : [];
  });
}

interface Statement {
  readonly Statement: string;
  readonly Parameters: readonly { readonly S?: string }[];
}
