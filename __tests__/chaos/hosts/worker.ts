import { subscribe } from "node:diagnostics_channel";
import { setTimeout as sleep } from "node:timers/promises";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { type Diagnostics, type FencedLock, findLockLost, LockTable } from "../../../lib/index.js";
import { testClientConfig } from "../../support/endpoint.js";
import { hostConfig, report } from "../../support/host-process.js";
import { type Random, seededRandom } from "../../support/seeded-random.js";
import { breakClock, breakLock } from "../defects.js";
import { GuardedLog, type GuardedOutcome } from "../guarded-log.js";
import { TTL_MS } from "../lock-groups.js";
import { Register } from "../register.js";
import { runSection } from "../section.js";
import { type Taken, take } from "../take.js";
import type { WorkerConfig, WorkerMessage } from "../worker-messages.js";
import { clocksOn, WrongTime } from "../wrong-time.js";

/** Less than the longer sections take. */
const DRAIN_MS = 500;

const { tableName, group, worker, seed, defect, ...config } = hostConfig<WorkerConfig>();
const tell = (message: WorkerMessage): void => report(message);
const on = <Name extends keyof Diagnostics>(name: Name, listener: (message: Diagnostics[Name]) => void): void =>
  subscribe(name, (message) => listener(message as Diagnostics[Name]));

const stopping = new AbortController();
/** The uuids of leases that may still be on their rows, though their sections have ended. */
const unreleased = new Set<string>();
on("dynamutex:acquired", ({ takeover }) => tell({ kind: "acquired", takeover }));
on("dynamutex:lost", ({ reason }) => tell({ kind: "told lost", reason }));
on("dynamutex:release-failed", ({ uuid }) => unreleased.add(uuid));

const time = new WrongTime(seededRandom(seed, worker, "time"), (ms) => tell({ kind: "stepped", ms }));
const direct = new DynamoDBClient({
  ...testClientConfig(),
  endpoint: config.directEndpoint,
  requestHandler: { requestTimeout: 2_000, throwOnRequestTimeout: true },
});
/** For transactions that are sent by hand, through the faults. */
const proxied = new DynamoDBClient({ requestHandler: { requestTimeout: 1_000, throwOnRequestTimeout: true } });
const locks = new LockTable({ tableName, owner: worker, clock: breakClock(clocksOn[group.clock](time), defect) });
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
  for (let turn = 1; !stopping.signal.aborted; turn++) {
    const taken = await take(locks, group, random, stopping.signal, (because) => tell({ kind: "without", because }));
    if (taken?.fenced !== undefined) await guardedSection(taken.fenced, `${worker}.${loop}.${turn}`, random);
    else if (taken !== undefined) await plainSection(taken, `${worker}.${loop}.${turn}`, random);
    await sleep(60 * random());
  }
}

async function plainSection({ names, lock }: Taken, section: string, random: Random): Promise<void> {
  const broken = breakLock(lock, defect, { client: direct, tableName, names });
  const logs = new Map(names.map((name) => [name, new Register(direct, tableName, name)]));
  await runSection({ section, lock: broken, logs, ttlMs: TTL_MS, random, tell });
}

/** Every other one sends a last line when it has unlocked. */
async function guardedSection(fenced: FencedLock, section: string, random: Random): Promise<void> {
  const { name, uuid, fencingToken } = fenced;
  const register = new Register(direct, tableName, name);
  const events = {
    looked: (version: number) => tell({ kind: "looked", log: name, section, token: String(fencingToken), version }),
    refused: (held: boolean) => tell({ kind: "refused", log: name, section, held }),
  };
  const log = new GuardedLog({ register, lock: fenced, client: proxied, random, defect, events });
  let late: { readonly step: number; readonly send: () => Promise<GuardedOutcome> } | undefined;
  const beforeUnlock = async (step: number): Promise<void> => {
    if (random() < 0.5) return;
    const send = await log.prepare({ section, step }).catch(unlessLost);
    late = send && { step, send };
  };
  const lock = breakLock(fenced, defect, { client: direct, tableName, names: [name] });
  const logs = new Map([[name, log]]);
  const lost = await runSection({ section, lock, logs, ttlMs: TTL_MS, random, tell, beforeUnlock });
  if (late === undefined) return;
  const isReleased = lost === undefined && !unreleased.has(uuid);
  await sleep(100 * random());
  tell({ kind: "sent late", log: name, section, step: late.step, isReleased });
  tell({ kind: "late outcome", section, outcome: await late.send() });
}

/** A line that could not be prepared is not sent. @throws LockLostError */
function unlessLost(error: unknown): undefined {
  if (findLockLost(error) !== undefined) throw error;
}
