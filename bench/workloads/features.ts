import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { LockTable } from "dynamutex";
import { clientConfig } from "../contenders/locker.js";
import { show } from "../numbers.js";
import type { Workload } from "../results.js";

const LEASE_MS = 30_000;

/** One thing that a caller does, with what has to be there before it and what goes after it. */
interface Feature {
  readonly title: string;
  /** @returns what to do and to measure. */
  readonly prepare: (locks: LockTable, name: string, other: LockTable) => Promise<() => Promise<unknown>>;
}

const FEATURES: readonly Feature[] = [
  {
    title: "lock and unlock",
    prepare: async (locks, name) => () => locks.mutex(name).run(() => undefined),
  },
  {
    title: "a renewal",
    prepare: async (locks, name) => {
      const lock = await locks.mutex(name).lock();
      return () => lock.extend();
    },
  },
  {
    title: "`tryLock()` where another host holds the lock",
    prepare: async (locks, name, other) => {
      await other.mutex(name).lock();
      return () => locks.mutex(name).tryLock();
    },
  },
  {
    title: "lock and unlock, `fencing: true`",
    prepare: async (locks, name) => () => locks.mutex(name, { fencing: true }).run(() => undefined),
  },
  {
    title: "lock and unlock, `fair: true`, nobody waiting",
    prepare: async (locks, name) => () => locks.mutex(name, { fair: true }).run(() => undefined),
  },
  {
    title: "32 sections of one process, one after another",
    prepare: async (locks, name) => () =>
      Promise.all(Array.from({ length: 32 }, () => locks.mutex(name).run(() => undefined))),
  },
  {
    title: "the same with `fencing: true`",
    prepare: async (locks, name) => () =>
      Promise.all(Array.from({ length: 32 }, () => locks.mutex(name, { fencing: true }).run(() => undefined))),
  },
  {
    title: "`tryRun()` with `everyMs`, a tick that is granted",
    prepare: async (locks, name) => () => locks.mutex(name).tryRun(() => undefined, { everyMs: 3_600_000 }),
  },
  {
    title: "the same, a tick that is done",
    prepare: async (locks, name, other) => {
      await other.mutex(name).tryRun(() => undefined, { everyMs: 3_600_000 });
      return () => locks.mutex(name).tryRun(() => undefined, { everyMs: 3_600_000 });
    },
  },
  {
    title: "lock and unlock with `holdAtLeastMs`",
    prepare: async (locks, name) => () => locks.mutex(name).run(() => undefined, { holdAtLeastMs: 60_000 }),
  },
  {
    title: "the first `guard()` of a lock",
    prepare: async (locks, name) => {
      const lock = await locks.mutex(name).lock();
      return () => lock.guard();
    },
  },
  {
    title: "a further one",
    prepare: async (locks, name) => {
      const lock = await locks.mutex(name).lock();
      await lock.guard();
      return () => lock.guard();
    },
  },
  {
    title: "`lockAll()` of 4 and its unlock",
    prepare: async (locks, name) => async () => {
      const set = await locks.lockAll(["a", "b", "c", "d"].map((letter) => `${name}-${letter}`));
      await set.unlock();
    },
  },
  {
    title: "a permit of a semaphore of 10, taken and released",
    prepare: async (locks, name) => () => locks.semaphore(name, { permits: 10 }).run(() => undefined),
  },
  {
    title: "the same where another host has 9 of the permits",
    prepare: async (locks, name, other) => {
      const theirs = other.semaphore(name, { permits: 10 });
      for (let taken = 0; taken < 9; taken += 1) await theirs.lock();
      return () => locks.semaphore(name, { permits: 10 }).run(() => undefined);
    },
  },
  {
    title: "a look at 1 000 permits that are all taken",
    prepare: async (locks, name, other) => {
      const theirs = other.semaphore(name, { permits: 1_000 });
      await Promise.all(Array.from({ length: 1_000 }, () => theirs.lock()));
      return () => locks.semaphore(name, { permits: 1_000 }).inspect();
    },
  },
  {
    title: "the shared side of a shared mutex, taken and released",
    prepare: async (locks, name) => () => locks.sharedMutex(name).shared.run(() => undefined),
  },
  {
    title: "8 sections of one process on the shared side, at once",
    prepare: async (locks, name) => () =>
      Promise.all(Array.from({ length: 8 }, () => locks.sharedMutex(name).shared.run(() => undefined))),
  },
  {
    title: "the exclusive side, taken and released",
    prepare: async (locks, name) => () => locks.sharedMutex(name).exclusive.run(() => undefined),
  },
  {
    title: "`handOff()` of a lock that was just taken",
    prepare: async (locks, name) => {
      const lock = await locks.mutex(name).lock();
      return () => lock.handOff({ withinMs: 60_000 });
    },
  },
  {
    title: "`resume()`",
    prepare: async (locks, name, other) => {
      const token = await (await other.mutex(name).lock()).handOff({ withinMs: 60_000 });
      return () => locks.mutex(name).resume(token);
    },
  },
  {
    title: "`inspect()`",
    prepare: async (locks, name) => () => locks.mutex(name).inspect(),
  },
];

export const features: Workload = {
  name: "features",
  title: "What each feature costs",
  async run({ ground }) {
    const rows: string[][] = [];
    for (const { title, prepare } of FEATURES) {
      const name = ground.name();
      const [ours, other] = await Promise.all(
        [`ours-${name}`, `other-${name}`].map(async (tag) => {
          const { endpoint, tableName } = await ground.options("dynamutex", LEASE_MS, tag);
          const client = new DynamoDBClient(clientConfig(endpoint));
          const locks = new LockTable({ tableName, client, ttlMs: LEASE_MS });
          // By then it knows the table's time.
          await locks.mutex(`first-${tag}`).run(() => undefined);
          return { locks, client };
        }),
      );
      if (ours === undefined || other === undefined) continue;
      const work = await prepare(ours.locks, name, other.locks);
      const before = ground.requests({ tag: `ours-${name}` }).length;
      await work();
      const requests = ground.requests({ tag: `ours-${name}` }).slice(before);
      const sum = (unit: "read" | "write"): number => requests.reduce((total, { units }) => total + units[unit], 0);
      rows.push([
        title,
        requests.map(({ operation }) => `\`${operation}\``).join(", "),
        show(sum("write")),
        show(sum("read")),
      ]);
      for (const { locks, client } of [ours, other]) {
        // Some have left a lock held: it is revoked.
        await locks.close({ drainMs: 0 }).catch(() => undefined);
        client.destroy();
      }
    }
    return { detail: { columns: ["", "requests", "WRU", "RRU"], rows: rows.map(shorten) } };
  },
};

/** Many of one kind are counted. */
function shorten([title = "", requests = "", ...units]: readonly string[]): readonly string[] {
  const all = requests === "" ? [] : requests.split(", ");
  const kinds = [...new Set(all)].map((kind) => [kind, all.filter((one) => one === kind).length] as const);
  const short = kinds.map(([kind, count]) => (count === 1 ? kind : `${count} × ${kind}`)).join(", ");
  return [title, short === "" ? "none" : short, ...units];
}
