/** A process of one contender (of two where their CPU is compared), which does what the bench tells it. */
import { setTimeout as sleep } from "node:timers/promises";
import { now } from "../__tests__/support/monotonic.js";
import { type ContenderName, contender } from "./contenders/index.js";
import type { Locker, LockerOptions } from "./contenders/locker.js";
import { countLooks, type Listeners, listen, lookNs } from "./listeners.js";
import { median } from "./numbers.js";

/** Each of the two has a turn of so many cycles, over and over. */
export interface CyclesOptions {
  readonly contenders: readonly { readonly name: ContenderName; readonly options: LockerOptions }[];
  readonly batches: number;
  readonly cyclesPerBatch: number;
}

export interface Cycles {
  /** Of each batch, in the order of the contenders: CPU time of one cycle, in µs. */
  readonly cpuUs: readonly (readonly number[])[];
  /** The median over all cycles, in ms. */
  readonly latencyMs: readonly number[];
}

export interface ChannelsOptions {
  readonly options: LockerOptions;
  readonly who: readonly Listeners[];
  readonly batches: number;
  readonly cyclesPerBatch: number;
}

export interface Channels {
  /** How often one cycle looks whether somebody listens, and what one look takes. */
  readonly looks: number;
  readonly lookNs: number;
  /** Of each batch, in the order of the listeners: CPU time of one cycle, in µs. */
  readonly cpuUs: readonly (readonly number[])[];
}

export interface SectionsOptions {
  readonly name: string;
  readonly tasks: number;
  /** How many each task has to do, or for how long they all go on. */
  readonly each?: number;
  readonly forMs?: number;
  readonly holdMs: number;
}

export interface Sections {
  readonly count: number;
  readonly ms: number;
  readonly cpuMs: number;
}

export interface Kept {
  readonly lockedMs: number;
  /** CPU time a second, in ms, while they were held. */
  readonly cpuMs: number;
  readonly bytesPerLock: number | undefined;
  /** How many could not be released, because they had been lost. */
  readonly lost: number;
  /** How many requests were sent meanwhile, where no proxy counts them. */
  readonly requests: number | undefined;
  /** By `now()`: when all were held, and when the first was let go. */
  readonly from: number;
  readonly to: number;
}

/** How many of many locks are taken at once. */
const LOCKED_AT_ONCE = 16;

let lockers: Locker[] = [];
const held = new Map<string, () => Promise<void>>();

/** What a worker does when told. Arguments and answers go through IPC. */
const TASKS = {
  /** Opens `count` lockers, each with a client of its own: as many hosts, as far as the table can tell. */
  async open({ name, options, count = 1 }: { name: ContenderName; options: LockerOptions; count?: number }) {
    lockers = await Promise.all(Array.from({ length: count }, () => contender(name).open(options)));
  },

  /** So that connections, code and clocks are what they are later on. */
  async warmUp({ name, cycles }: { name: string; cycles: number }) {
    const warm = async (locker: Locker, index: number): Promise<void> => {
      for (let cycle = 0; cycle < cycles; cycle++) await (await locker.lock(`${name}-${index}`))();
    };
    await Promise.all(lockers.map(warm));
  },

  async lock({ name }: { name: string }) {
    held.set(name, await first().lock(name));
    return now();
  },

  /** @returns when the release was asked for. */
  async unlock({ name }: { name: string }) {
    const from = now();
    await held.get(name)?.();
    held.delete(name);
    return from;
  },

  /** Every locker waits for the lock, and lets it go at once. @returns when each had it. */
  async pass({ name }: { name: string }) {
    return await Promise.all(
      lockers.map(async (locker) => {
        const release = await locker.lock(name);
        const at = now();
        await release();
        return at;
      }),
    );
  },

  /** Every locker takes the lock over and over. @returns when each section began and ended, in the order of beginning. */
  async goRound({ name, forMs, holdMs }: { name: string; forMs: number; holdMs: number }) {
    const until = now() + forMs;
    const sections: { locker: number; from: number; to: number }[] = [];
    const goRound = async (locker: Locker, index: number): Promise<void> => {
      while (now() < until) {
        const release = await locker.lock(name);
        const from = now();
        await sleep(holdMs);
        sections.push({ locker: index, from, to: now() });
        await release();
      }
    };
    await Promise.all(lockers.map(goRound));
    return sections.sort((one, other) => one.from - other.from);
  },

  /** Every locker asks so many times at once, and the next one a moment later. @returns in which order they got it. */
  async standInLine({ name, each, apartMs }: { name: string; each: number; apartMs: number }) {
    const entered: number[] = [];
    const asked: Promise<void>[] = [];
    for (const locker of lockers) {
      for (let time = 0; time < each; time++) {
        const number = asked.length;
        const enter = async (release: () => Promise<void>): Promise<void> => {
          entered.push(number);
          await release();
        };
        asked.push(locker.lock(name).then(enter));
      }
      if (apartMs > 0) await sleep(apartMs);
    }
    await Promise.all(asked);
    return entered;
  },

  async sections({ name, tasks, each = Number.POSITIVE_INFINITY, forMs, holdMs }: SectionsOptions): Promise<Sections> {
    const from = now();
    const until = from + (forMs ?? Number.POSITIVE_INFINITY);
    const cpu = process.cpuUsage();
    let count = 0;
    const task = async (): Promise<void> => {
      for (let section = 0; section < each && now() < until; section++) {
        const release = await first().lock(name);
        if (holdMs > 0) await sleep(holdMs);
        if (now() < until) count += 1;
        await release();
      }
    };
    await Promise.all(Array.from({ length: tasks }, task));
    return { count, ms: now() - from, cpuMs: cpuMsSince(cpu) };
  },

  async keep({ name, count, forMs }: { name: string; count: number; forMs: number }): Promise<Kept> {
    const before = heapBytes();
    const from = now();
    const releases = await lockMany(name, count);
    const lockedAt = now();
    const cpu = process.cpuUsage();
    const sent = first().requests?.() ?? 0;
    await sleep(forMs);
    const cpuMs = (cpuMsSince(cpu) / (now() - lockedAt)) * 1_000;
    const after = heapBytes();
    const bytesPerLock = before === undefined || after === undefined ? undefined : (after - before) / count;
    const to = now();
    const requests = first().requests === undefined ? undefined : (first().requests?.() ?? 0) - sent;
    const lost = await releaseMany(releases);
    return { lost, requests, lockedMs: lockedAt - from, cpuMs, bytesPerLock, from: lockedAt, to };
  },

  async cycles({ contenders, batches, cyclesPerBatch }: CyclesOptions): Promise<Cycles> {
    const all = await Promise.all(
      contenders.map(async ({ name, options }) => ({ name, locker: await contender(name).open(options) })),
    );
    const cpuUs: number[][] = [];
    const latencies: number[][] = all.map(() => []);
    const run = async (index: number, count: number): Promise<number> => {
      const { name, locker } = all[index] as (typeof all)[number];
      const cpu = process.cpuUsage();
      for (let cycle = 0; cycle < count; cycle++) {
        const from = now();
        await (await locker.lock(`cycle-${name}`))();
        latencies[index]?.push(now() - from);
      }
      return (cpuMsSince(cpu) * 1_000) / count;
    };
    for (let index = 0; index < all.length; index++) await run(index, cyclesPerBatch * 4);
    for (let batch = 0; batch < batches; batch++) {
      // Whoever comes second finds other caches: so they change places.
      const order = all.map((_, index) => (batch % 2 === 0 ? index : all.length - 1 - index));
      const costs: number[] = [];
      for (const index of order) costs[index] = await run(index, cyclesPerBatch);
      cpuUs.push(costs);
    }
    for (const { locker } of all) await locker.close();
    return { cpuUs, latencyMs: latencies.map(median) };
  },

  async channels({ options, who, batches, cyclesPerBatch }: ChannelsOptions): Promise<Channels> {
    const locker = await contender("dynamutex").open(options);
    const cycle = async (): Promise<void> => await (await locker.lock("channels"))();
    const run = async (listeners: Listeners): Promise<number> => {
      const end = listen(listeners);
      const cpu = process.cpuUsage();
      for (let index = 0; index < cyclesPerBatch; index++) await cycle();
      const us = (cpuMsSince(cpu) * 1_000) / cyclesPerBatch;
      end();
      return us;
    };
    for (const listeners of [...who, ...who]) await run(listeners);
    const cpuUs: number[][] = [];
    for (let batch = 0; batch < batches; batch++) {
      const costs: number[] = [];
      for (let index = 0; index < who.length; index++) {
        const at = (index + batch) % who.length;
        costs[at] = await run(who[at] ?? "none");
      }
      cpuUs.push(costs);
    }
    const looks = await countLooks(cycle);
    await locker.close();
    return { looks, lookNs: lookNs(), cpuUs };
  },

  async close() {
    await Promise.all(lockers.map((locker) => locker.close()));
  },
};

export type Tasks = typeof TASKS;

async function lockMany(name: string, count: number): Promise<(() => Promise<void>)[]> {
  const releases: (() => Promise<void>)[] = [];
  let next = 0;
  const lockOneByOne = async (): Promise<void> => {
    while (next < count) {
      next += 1;
      releases.push(await first().lock(`${name}-${next}`));
    }
  };
  await Promise.all(Array.from({ length: LOCKED_AT_ONCE }, lockOneByOne));
  return releases;
}

/** @returns how many of them rejected. */
async function releaseMany(releases: readonly (() => Promise<void>)[]): Promise<number> {
  const left = [...releases];
  let lost = 0;
  const releaseOneByOne = async (): Promise<void> => {
    for (let release = left.pop(); release !== undefined; release = left.pop()) {
      await release().catch(() => {
        lost += 1;
      });
    }
  };
  await Promise.all(Array.from({ length: LOCKED_AT_ONCE }, releaseOneByOne));
  return lost;
}

function first(): Locker {
  const [locker] = lockers;
  if (locker === undefined) throw new Error("This worker has not been opened");
  return locker;
}

function cpuMsSince(start: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1_000;
}

/** What is alive on the heap; undefined without `--expose-gc`. */
function heapBytes(): number | undefined {
  if (globalThis.gc === undefined) return undefined;
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}

process.on("message", ({ id, task, args }: { id: number; task: keyof Tasks; args: never }) => {
  TASKS[task](args).then(
    (value) => process.send?.({ id, value }),
    (error) => process.send?.({ id, error: error instanceof Error ? error.stack : String(error) }),
  );
});
process.on("disconnect", () => process.exit());
process.on("error", () => process.exit()); // the bench has ended in the middle of an answer
