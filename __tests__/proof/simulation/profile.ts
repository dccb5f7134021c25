import { type Profiler, Session } from "node:inspector/promises";
import { explore } from "./explore.js";
import { dynamutex, type Protocol } from "./protocol.js";

const RUNS = Number(process.env.SIM_RUNS ?? 300);
const SEED = Number(process.env.SIM_SEED ?? 1);

/** How many functions are shown of each part. */
const MOST = 12;

/** Whose code a function is, by where it stands. */
const PARTS = {
  library: ["/lib/", "/node_modules/p-retry/", "/node_modules/zod/"],
  simulator: ["/__tests__/", "/node_modules/fast-check/", "/node_modules/pure-rand/"],
};

type Part = keyof typeof PARTS | "node";

/**
 * What the simulator's own code costs: its CPU time as a share of the library's, in the same run, so that neither the machine nor what
 * else it does counts; and for each simulated request, to compare it with another version on the same machine. Collected garbage and
 * Node's own code are nobody's.
 */
async function main(): Promise<void> {
  // The same schedules as below: what is compiled while it runs is not what a long run costs.
  const requests = await requestsOf(RUNS);
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.setSamplingInterval", { interval: 500 });
  await session.post("Profiler.start");
  const { runs, steps } = await explore(dynamutex, { seed: SEED }, RUNS);
  const { profile } = await session.post("Profiler.stop");
  session.disconnect();
  const times = selfTimes(profile);
  const sum = (part: Part): number => times.filter((one) => one.part === part).reduce((ms, one) => ms + one.ms, 0);
  const [library, simulator, node] = [sum("library"), sum("simulator"), sum("node")];
  console.log(`${runs} schedules of seed ${SEED}, ${steps} steps`);
  console.log(`simulator to library: ${(simulator / library).toFixed(2)}`);
  const each = (ms: number): string => ((1_000 * ms) / requests).toFixed(1);
  console.log(`for each of ${requests} requests, in us: simulator ${each(simulator)}, library ${each(library)}`);
  console.log(`in ms: simulator ${simulator.toFixed(0)}, library ${library.toFixed(0)}, Node ${node.toFixed(0)}`);
  for (const part of ["simulator", "library"] as const) {
    console.log(`\n${part}:`);
    const mine = times.filter((one) => one.part === part).sort((one, other) => other.ms - one.ms);
    for (const { name, ms } of mine.slice(0, MOST))
      console.log(`${((100 * ms) / sum(part)).toFixed(1).padStart(6)} %  ${name}`);
  }
}

/** How many requests the library sends in so many schedules. */
async function requestsOf(runs: number): Promise<number> {
  let requests = 0;
  const counted: Protocol = (surroundings) => {
    const { store } = surroundings;
    for (const request of ["write", "writeAll", "read", "query", "scan", "transact"] as const) {
      const send = store[request].bind(store) as (...sent: unknown[]) => unknown;
      Object.defineProperty(store, request, {
        value: (...sent: unknown[]) => {
          requests += 1;
          return send(...sent);
        },
      });
    }
    return dynamutex(surroundings);
  };
  await explore(counted, { seed: SEED }, runs);
  return requests;
}

interface Time {
  readonly part: Part;
  readonly name: string;
  ms: number;
}

/** How long each function itself has run. */
function selfTimes({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile): readonly Time[] {
  const byId = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const times = new Map<string, Time>();
  for (const [index, id] of samples.entries()) {
    const { url = "", functionName = "" } = byId.get(id) ?? {};
    if (functionName === "(idle)") continue;
    const name = `${functionName || "(anonymous)"} ${url.split("/.jest/").at(-1)}`;
    const time = times.get(name) ?? { part: partOf(url), name, ms: 0 };
    time.ms += (timeDeltas[index] ?? 0) / 1_000;
    times.set(name, time);
  }
  return [...times.values()];
}

function partOf(url: string): Part {
  const isIn = (part: keyof typeof PARTS): boolean => PARTS[part].some((folder) => url.includes(folder));
  return isIn("library") ? "library" : isIn("simulator") ? "simulator" : "node";
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
