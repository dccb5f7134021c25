import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { LockTable } from "dynamutex";
import { clientConfig } from "../contenders/locker.js";
import { show } from "../numbers.js";
import type { Workload } from "../results.js";

const LEASE_MS = 30_000;

/** Does what has to be there before a thing that a caller does. @returns what to do and to measure. */
type Prepare = (locks: LockTable, name: string, other: LockTable) => Promise<() => Promise<unknown>>;

const nothing = (): void => undefined;

const FEATURES: Readonly<Record<string, Prepare>> = {
  "lock and unlock": async (locks, name) => () => locks.mutex(name).run(nothing),
  "a renewal": async (locks, name) => {
    const lock = await locks.mutex(name).lock();
    return () => lock.extend();
  },
  "`tryLock()` where another host holds the lock": async (locks, name, other) => {
    await other.mutex(name).lock();
    return () => locks.mutex(name).tryLock();
  },
  "lock and unlock, `fencing: true`": async (locks, name) => () => locks.mutex(name, { fencing: true }).run(nothing),
  "lock and unlock, `fair: true`, nobody waiting": async (locks, name) => () =>
    locks.mutex(name, { fair: true }).run(nothing),
  "32 sections of one process, one after another": async (locks, name) => () =>
    Promise.all(Array.from({ length: 32 }, () => locks.mutex(name).run(nothing))),
  "the same with `fencing: true`": async (locks, name) => () =>
    Promise.all(Array.from({ length: 32 }, () => locks.mutex(name, { fencing: true }).run(nothing))),
  "`tryRun()` with `everyMs`, a tick that is granted": async (locks, name) => () =>
    locks.mutex(name).tryRun(nothing, { everyMs: 3_600_000 }),
  "the same, a tick that is done": async (locks, name, other) => {
    await other.mutex(name).tryRun(nothing, { everyMs: 3_600_000 });
    return () => locks.mutex(name).tryRun(nothing, { everyMs: 3_600_000 });
  },
  "lock and unlock with `holdAtLeastMs`": async (locks, name) => () =>
    locks.mutex(name).run(nothing, { holdAtLeastMs: 60_000 }),
  "the first `guard()` of a lock": async (locks, name) => {
    const lock = await locks.mutex(name).lock();
    return () => lock.guard();
  },
  "a further one": async (locks, name) => {
    const lock = await locks.mutex(name).lock();
    await lock.guard();
    return () => lock.guard();
  },
  "`lockAll()` of 4 and its unlock": async (locks, name) => async () => {
    const set = await locks.lockAll(["a", "b", "c", "d"].map((letter) => `${name}-${letter}`));
    await set.unlock();
  },
  "a permit of a semaphore of 10, taken and released": async (locks, name) => () =>
    locks.semaphore(name, { permits: 10 }).run(nothing),
  "the same where another host has 9 of the permits": async (locks, name, other) => {
    const theirs = other.semaphore(name, { permits: 10 });
    for (let taken = 0; taken < 9; taken += 1) await theirs.lock();
    return () => locks.semaphore(name, { permits: 10 }).run(nothing);
  },
  "4 permits of that semaphore at once, taken and released": async (locks, name) => () =>
    locks.semaphore(name, { permits: 10 }).run(nothing, { permits: 4 }),
  "a renewal of these 4": async (locks, name) => {
    const lock = await locks.semaphore(name, { permits: 10 }).lock({ permits: 4 });
    // A process that has had an answer to one renewal sends two together, and so on.
    for (let count = 0; count < 3; count += 1) await lock.extend();
    return () => lock.extend();
  },
  "a try of 4 where 3 are free": async (locks, name, other) => {
    await other.semaphore(name, { permits: 10 }).lock({ permits: 7 });
    return () => locks.semaphore(name, { permits: 10 }).tryLock({ permits: 4 });
  },
  "`inspect()` of 1 000 permits that are all taken": async (locks, name, other) => {
    const theirs = other.semaphore(name, { permits: 1_000 });
    await Promise.all(Array.from({ length: 1_000 }, () => theirs.lock()));
    return () => locks.semaphore(name, { permits: 1_000 }).inspect();
  },
  "the shared side of a shared mutex, taken and released": async (locks, name) => () =>
    locks.sharedMutex(name).shared.run(nothing),
  "8 sections of one process on the shared side, at once": async (locks, name) => () =>
    Promise.all(Array.from({ length: 8 }, () => locks.sharedMutex(name).shared.run(nothing))),
  "the exclusive side, taken and released": async (locks, name) => () => locks.sharedMutex(name).exclusive.run(nothing),
  "`handOff()` of a lock that was just taken": async (locks, name) => {
    const lock = await locks.mutex(name).lock();
    return () => lock.handOff({ validForMs: 60_000 });
  },
  "`resume()`": async (locks, name, other) => {
    const token = await (await other.mutex(name).lock()).handOff({ validForMs: 60_000 });
    return () => locks.mutex(name).resume(token);
  },
  "`inspect()`": async (locks, name) => () => locks.mutex(name).inspect(),
};

export const features: Workload = {
  name: "features",
  title: "What each feature costs",
  async run({ ground }) {
    const rows: string[][] = [];
    for (const [title, prepare] of Object.entries(FEATURES)) {
      const name = ground.name();
      const [ours, other] = await Promise.all(
        [`ours-${name}`, `other-${name}`].map(async (tag) => {
          const { endpoint, tableName } = await ground.options("dynamutex", LEASE_MS, tag);
          const client = new DynamoDBClient(clientConfig(endpoint));
          const locks = new LockTable({ tableName, client, ttlMs: LEASE_MS });
          // By then it knows the table's time.
          await locks.mutex(`first-${tag}`).run(nothing);
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
        await locks.close({ drainMs: 0 }).catch(nothing);
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
