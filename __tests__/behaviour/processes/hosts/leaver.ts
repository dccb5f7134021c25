import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { type Lock, type LockLostError, LockTable, type MutexOptions } from "../../../../lib/index.js";
import { hostConfig, report } from "../../../support/host-process.js";

export interface LeaverConfig {
  readonly tableName: string;
  readonly mutex: MutexOptions;
  readonly ending: Ending;
}

/** What a program has done with its lock when its last line is done. None of them calls `process.exit()`. */
export type Ending = keyof typeof ENDINGS;

const ENDINGS = {
  "holding a lock": async (locks: LockTable) => {
    await locks.mutex("free").lock();
  },
  "holding a lock whose signal somebody listens to": async (locks: LockTable) => {
    const lock = await locks.mutex("free").lock();
    lock.signal.addEventListener("abort", () => undefined);
  },
  "after a section of several renewals": async (locks: LockTable) => {
    const mutex = locks.mutex("free", { ttlMs: 30_000, renewEveryMs: 50 });
    await mutex.run(async (lock) => {
      const { expires } = lock;
      while (lock.expires.getTime() < expires.getTime() + 150) await sleep(10);
    });
  },
  "after a close that waited for its section": async (locks: LockTable) => {
    // Nothing but the close keeps the process alive.
    const lock = await locks.mutex("free").lock();
    lock.signal.addEventListener("abort", () => void lock.unlock().catch(() => undefined));
    await locks.close({ drainMs: 300 }).catch((error: AggregateError) => {
      report({ kind: "revoked", reason: error.errors[0].reason });
    });
  },
  "after a section that outlived the close": async (locks: LockTable) => {
    const lock = await locks.mutex("free", { releaseWithinMs: 1_000 }).lock();
    await locks.close({ drainMs: 0 }).catch(() => undefined);
    await lock.unlock().catch((error: LockLostError) => report({ kind: "unlocked", reason: error.reason }));
  },
  "after a tryLock that found the lock taken": async (locks: LockTable) => {
    await locks.mutex("taken").tryLock();
  },
  "after a wait that timed out": async (locks: LockTable) => {
    await locks
      .mutex("taken")
      .lock({ waitMs: 200 })
      .catch((error: Error) => report({ kind: "waited", error: error.name }));
  },
  "after a wait that was aborted": async (locks: LockTable) => {
    const controller = new AbortController();
    const waiting = locks.mutex("taken").lock({ signal: controller.signal });
    setTimeout(() => controller.abort(new Error("enough")), 200);
    await waiting.catch((error: Error) => report({ kind: "waited", error: error.message }));
  },
  "after a close that ended a wait": async (locks: LockTable) => {
    const waiting = locks.mutex("taken").lock();
    setTimeout(() => void locks.close(), 200);
    await waiting.catch((error: Error) => report({ kind: "waited", error: error.name }));
  },
  "after its row was deleted": async (locks: LockTable) => {
    await untilLost(await locks.mutex("free", { ttlMs: 30_000, renewEveryMs: 100 }).lock());
  },
  "after the table was out of reach": async (locks: LockTable) => {
    await untilLost(await locks.mutex("free", { ttlMs: 1_500 }).lock());
  },
  "after a wait behind a section of its own that timed out": async (locks: LockTable) => {
    const mutex = locks.mutex("free");
    await mutex.lock();
    await mutex.lock({ waitMs: 1_000 }).catch((error: Error) => report({ kind: "waited", error: error.name }));
  },
  "waiting for a lock": async (locks: LockTable) => {
    const lock = await locks.mutex("taken").lock();
    report({ kind: "held" });
    await lock.unlock();
  },
};

const { tableName, mutex, ending } = hostConfig<LeaverConfig>();
process.once("exit", () => report({ kind: "exit", at: performance.now() }));
await ENDINGS[ending](new LockTable({ tableName, ...mutex }));
report({ kind: "done", at: performance.now() });

/** A loss, of which its holder takes no further notice. */
async function untilLost(lock: Lock): Promise<void> {
  report({ kind: "held" });
  const section = setInterval(() => undefined, 1_000);
  await once(lock.signal, "abort");
  clearInterval(section);
  report({ kind: "lost", reason: lock.signal.reason.reason });
}
