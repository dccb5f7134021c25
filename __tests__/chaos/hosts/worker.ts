import { subscribe } from "node:diagnostics_channel";
import { setTimeout as sleep } from "node:timers/promises";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import {
  type Diagnostics,
  findLockLost,
  type Lock,
  LockError,
  LockLostError,
  LockTable,
  type Mutex,
} from "../../../lib/index.js";
import { testClientConfig } from "../../support/endpoint.js";
import { hostConfig, report } from "../../support/host-process.js";
import { now } from "../../support/monotonic.js";
import { type Random, seededRandom } from "../../support/seeded-random.js";
import { append } from "../append.js";
import { breakClock, breakLock, type SectionLock } from "../defects.js";
import { Register } from "../register.js";
import type { WorkerConfig, WorkerMessage } from "../worker-messages.js";
import { clocksOn, WrongTime } from "../wrong-time.js";

/** Less than the longer sections take. */
const DRAIN_MS = 500;

const config = hostConfig<WorkerConfig>();
const { tableName, lockName, worker, seed, defect } = config;
const ttlMs = config.mutex.ttlMs ?? 30_000;
const tell = (message: WorkerMessage): void => report(message);
const on = <Name extends keyof Diagnostics>(name: Name, listener: (message: Diagnostics[Name]) => void): void =>
  subscribe(name, (message) => listener(message as Diagnostics[Name]));

const stopping = new AbortController();
on("dynamutex:acquired", ({ takeover }) => tell({ kind: "acquired", takeover }));
on("dynamutex:lost", ({ reason }) => tell({ kind: "told lost", reason }));

const time = new WrongTime(seededRandom(seed, worker, "time"), (ms) => tell({ kind: "stepped", ms }));
const direct = new DynamoDBClient({
  ...testClientConfig(),
  endpoint: config.directEndpoint,
  requestHandler: { requestTimeout: 2_000, throwOnRequestTimeout: true },
});
const register = new Register(direct, tableName, lockName);
const locks = new LockTable({
  tableName,
  ...config.mutex,
  owner: worker,
  clock: breakClock(clocksOn[config.clock](time), defect),
});
let closing: Promise<void> | undefined;
process.once("SIGTERM", () => {
  stopping.abort();
  closing = locks.close({ drainMs: DRAIN_MS }).catch((error: unknown) => {
    if (findLockLost(error)?.reason !== "closed") throw error;
  });
});
await Promise.all(Array.from({ length: config.loops }, async (_, loop) => await work(loop)));
await (closing ?? locks.close());

async function work(loop: number): Promise<void> {
  const random = seededRandom(seed, worker, loop);
  const mutex = locks.mutex(lockName);
  for (let turn = 1; !stopping.signal.aborted; turn++) {
    const lock = await take(mutex, random);
    if (lock !== undefined) {
      await section(breakLock(lock, defect, { client: direct, tableName }), `${worker}.${loop}.${turn}`, random);
    }
    await sleep(60 * random());
  }
}

/** Wants the lock in one of the ways there are, and may be disappointed. */
async function take(mutex: Mutex, random: Random): Promise<Lock | undefined> {
  const lot = random();
  const { signal } = stopping;
  try {
    if (lot < 0.15) return (await mutex.tryLock()) ?? undefined;
    if (lot < 0.3) return await mutex.lock({ signal, waitMs: Math.ceil(300 * random()) });
    return await mutex.lock({ signal });
  } catch (error) {
    if (!signal.aborted && !(error instanceof LockError)) throw error;
    tell({ kind: "without", because: error instanceof LockError ? error.code : "stopping" });
    return undefined;
  }
}

/** Some lines in the log, over less than a lease or over several. */
async function section(lock: SectionLock, id: string, random: Random): Promise<void> {
  let belief: { from: number; to: number } | undefined;
  const look = (): void => {
    const before = now();
    if (!lock.held) return;
    belief ??= { from: now(), to: before };
    belief.to = before;
  };
  look();
  tell({ kind: "entered", section: id });
  let lost: string | undefined;
  try {
    const lines = 2 + Math.floor(3 * random());
    const pauseMs = random() < 0.2 ? (2 * ttlMs) / lines : 30;
    for (let step = 1; step <= lines; step++) {
      const { version } = await append(register, lock, id, step, ({ section: by }) =>
        tell({ kind: "late write", section: id, by }),
      );
      tell({ kind: "acknowledged", version, section: id, step });
      const until = now() + pauseMs * 2 * random();
      do {
        await sleep(10);
        look();
      } while (now() < until);
    }
  } catch (error) {
    if (!(error instanceof LockLostError)) throw error;
    lost = error.reason;
  }
  look();
  await lock.unlock().catch((error: unknown) => {
    if (!(error instanceof LockLostError)) throw error;
    lost ??= error.reason;
  });
  tell({ kind: "left", section: id, lost, ...(belief && { belief }) });
}
