import type { Random } from "../../support/seeded-random.js";
import type { SimLockable, SimMutex } from "../simulation/protocol.js";
import { type Counts, type WorkHost, WorkWorld } from "./world.js";

/** What hosts do with one kind of lock. */
interface Workload {
  readonly hosts: number;
  /** For how long, in virtual time. */
  readonly forMs: number;
  /** Starts the callers of one host. */
  readonly start: (world: WorkWorld, host: WorkHost) => void;
}

const TTL = { ttlMs: 10_000 };
const NAME = "wanted by all";

const between = (random: Random, least: number, most: number): number => least + random() * (most - least);
const sectionMs = (random: Random): number => between(random, 5, 25);
const pauseMs = (random: Random): number => between(random, 0, 60);

/** Callers that lock one name again and again. */
function sections(
  callers: number,
  lockableOf: (host: WorkHost) => SimLockable,
  { what = "sections", data }: { readonly what?: string; readonly data?: Readonly<Record<string, number>> } = {},
): Workload["start"] {
  return (world, host) => {
    const lockable = lockableOf(host);
    const options = data === undefined ? {} : { data };
    const call = async (): Promise<void> => {
      for (;;) {
        await world.sleep(pauseMs(host.random));
        const lock = await lockable.lock(options);
        world.count(what);
        await world.sleep(sectionMs(host.random));
        await lock.unlock();
      }
    };
    for (let caller = 0; caller < callers; caller += 1) world.start(call);
  };
}

const mutex = (host: WorkHost, more: Parameters<WorkHost["mutex"]>[1] = {}): SimMutex =>
  host.mutex(NAME, { ...TTL, ...more });
const semaphore = (host: WorkHost, fair: boolean): SimLockable => host.semaphore(NAME, { ...TTL, fair, permits: 3 });
const side = (which: "shared" | "exclusive", fair: boolean) => (host: WorkHost) =>
  host.sharedMutex(NAME, { ...TTL, fair })[which];

const own: Workload["start"] = (world, host) => sections(1, () => host.mutex(`own ${host.number}`, TTL))(world, host);

/** Callers that do not wait. */
const tries: Workload["start"] = (world, host) => {
  const lockable = mutex(host);
  const call = async (): Promise<void> => {
    for (;;) {
      await world.sleep(pauseMs(host.random));
      const lock = await lockable.tryLock({});
      if (lock === null) continue;
      world.count("sections");
      await world.sleep(sectionMs(host.random));
      await lock.unlock();
    }
  };
  for (let caller = 0; caller < 2; caller += 1) world.start(call);
};

const both =
  (...starts: readonly Workload["start"][]): Workload["start"] =>
  (world, host) => {
    for (const start of starts) start(world, host);
  };

const SET_NAMES = ["a", "b", "c", "d", "e"];

/** One host takes three of five locks at once, the others take one of them. */
const sets: Workload["start"] = (world, host) => {
  const { random } = host;
  const call = async (): Promise<void> => {
    for (;;) {
      await world.sleep(4 * pauseMs(random));
      const names = SET_NAMES.map((name) => ({ name, at: random() }))
        .sort((one, other) => one.at - other.at)
        .map(({ name }) => name);
      const taken =
        host.number <= 2
          ? await host.lockAll(names.slice(0, 3), TTL, {})
          : await host.mutex(names[0] ?? "", TTL).lock({});
      world.count(host.number <= 2 ? "sets" : "locks");
      await world.sleep(sectionMs(random));
      await taken.unlock();
    }
  };
  for (let caller = 0; caller < 2; caller += 1) world.start(call);
};

/** Callers that share what one of them comes to. */
const flights: Workload["start"] = (world, host) => {
  const lockable = mutex(host);
  const call = async (): Promise<void> => {
    for (;;) {
      await world.sleep(pauseMs(host.random));
      await lockable.singleFlight?.(
        async () => {
          world.count("runs");
          await world.sleep(sectionMs(host.random));
          return { made: world.now };
        },
        { freshMs: host.random() < 0.5 ? 0 : 50 },
      );
      world.count("answers");
    }
  };
  for (let caller = 0; caller < 3; caller += 1) world.start(call);
};

/** All hosts ask for each period; with `untilSuccess`, a third of the runs of each host fail. */
const ticks =
  (isRetried: boolean): Workload["start"] =>
  (world, host) => {
    const lockable = mutex(host);
    const how = isRetried ? { untilSuccess: true as const } : {};
    let runs = 0;
    const call = async (): Promise<void> => {
      for (;;) {
        await world.sleep(between(host.random, 50, 150));
        const run = async (): Promise<void> => {
          world.count("runs");
          runs += 1;
          await world.sleep(sectionMs(host.random));
          if (isRetried && runs % 3 === 1) throw new FailedRun();
        };
        await lockable.tryRun?.(run, { everyMs: 1_000, ...how }).catch((error: unknown) => {
          if (!(error instanceof FailedRun)) throw error;
        });
      }
    };
    world.start(call);
  };

class FailedRun extends Error {}

/** A leader ends the election after a term, and stands for the next. */
const elections: Workload["start"] = (world, host) => {
  const lockable = mutex(host);
  const lead = async (): Promise<void> => {
    world.count("terms");
    await world.sleep(between(host.random, 200, 600));
  };
  world.start(async () => {
    for (;;) {
      await lockable.elect?.(lead, {}).done;
      await world.sleep(pauseMs(host.random));
    }
  });
};

/** Each lock is handed off, and its token goes to another host. */
function handOffs(): Workload["start"] {
  const others: WorkHost[] = [];
  return (world, host) => {
    others.push(host);
    const lockable = mutex(host);
    world.start(async () => {
      for (;;) {
        await world.sleep(pauseMs(host.random));
        const lock = await lockable.lock({});
        world.count("sections");
        await world.sleep(sectionMs(host.random));
        const token = (await lock.handOff?.({ validForMs: 2_000 })) ?? "";
        await world.sleep(20);
        const other = others[Math.floor(host.random() * others.length)] ?? host;
        const resumed = await mutex(other).resume?.(token, {});
        world.count("resumed");
        await world.sleep(sectionMs(host.random));
        await resumed?.unlock();
      }
    });
  };
}

const three = (forMs: number, start: Workload["start"]): Workload => ({ hosts: 3, forMs, start });

/**
 * Each kind of lock, as hosts that contend for it use it. What differs more from seed to seed is played for longer, so that the mean of
 * 1 000 seeds is good to half a per cent.
 */
export const WORKLOADS: Readonly<Record<string, () => Workload>> = {
  "mutex that nobody contends for": () => three(500, own),
  "mutex of one process": () => ({ hosts: 1, forMs: 600, start: sections(8, mutex) }),
  mutex: () => three(2_000, sections(2, mutex)),
  "mutex with data": () => three(1_500, sections(2, mutex, { data: { job: 1 } })),
  "mutex with tokens": () =>
    three(
      1_500,
      sections(2, (host) => mutex(host, { fencing: true })),
    ),
  "mutex that callers try": () => three(800, tries),
  "fair mutex": () =>
    three(
      3_000,
      sections(2, (host) => mutex(host, { fair: true })),
    ),
  semaphore: () =>
    three(
      2_500,
      sections(4, (host) => semaphore(host, false)),
    ),
  "fair semaphore": () =>
    three(
      1_500,
      sections(4, (host) => semaphore(host, true)),
    ),
  "shared mutex": () => three(6_000, sides(false)),
  "fair shared mutex": () => three(1_500, sides(true)),
  "sets of mutexes": () => ({ hosts: 4, forMs: 2_000, start: sets }),
  flights: () => three(1_000, flights),
  ticks: () => three(4_000, ticks(false)),
  "ticks until success": () => three(5_000, ticks(true)),
  elections: () => three(5_000, elections),
  "hand-offs": () => three(1_500, handOffs()),
};

function sides(fair: boolean): Workload["start"] {
  const shared = sections(2, side("shared", fair), { what: "shared sections" });
  return both(shared, sections(1, side("exclusive", fair), { what: "exclusive sections" }));
}

/** What the hosts of one workload get done, by one seed. */
export async function workOf(name: string, seed: number): Promise<Counts> {
  const workload = WORKLOADS[name]?.();
  if (workload === undefined) throw new RangeError(`There is no workload ${name}`);
  const world = new WorkWorld(seed);
  const hosts = Array.from({ length: workload.hosts }, () => world.host());
  for (const host of hosts) workload.start(world, host);
  return await world.play(workload.forMs);
}
