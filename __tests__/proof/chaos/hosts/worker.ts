import { subscribe } from "node:diagnostics_channel";
import { setTimeout as sleep } from "node:timers/promises";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { type Diagnostics, findLockLost, LockError, LockTable, type TransferableLock } from "../../../../lib/index.js";
import { testClientConfig } from "../../../support/endpoint.js";
import { hostConfig, report } from "../../../support/host-process.js";
import { now } from "../../../support/monotonic.js";
import { type Random, seededRandom } from "../../../support/seeded-random.js";
import { believeTableAlone } from "../believe-table-alone.js";
import { breakClock, breakLock, breakToken } from "../defects.js";
import { GuardedLog, type GuardedOutcome } from "../guarded-log.js";
import { type Holding, sectionName } from "../holding.js";
import { guardedLogOf, TTL_MS } from "../lock-groups.js";
import { type Log, linesOf, Register } from "../register.js";
import { runSection } from "../section.js";
import { Shelf } from "../shelf.js";
import { SidesRegister } from "../sides-register.js";
import { resume, type Taken, take } from "../take.js";
import { offered, post, type Token } from "../tokens.js";
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
on("dynamutex:release-failed", ({ uuid }) => unreleased.add(uuid));

const time = new WrongTime(seededRandom(seed, worker, "time"), () => tell({ kind: "stepped" }));
const direct = new DynamoDBClient({
  ...testClientConfig(),
  endpoint: config.directEndpoint,
  requestHandler: { requestTimeout: 2_000, throwOnRequestTimeout: true },
});
/** For transactions that are sent by hand, through the faults. */
const proxied = new DynamoDBClient({ requestHandler: { requestTimeout: 1_000, throwOnRequestTimeout: true } });
believeTableAlone(proxied);
/** How many sections of this process run on each acquisition. */
const uuids = new Map<string, number>();
const tokens = new Shelf<Token>(direct, tableName, `tokens of ${group.names[0]}`);
const locks = new LockTable({ tableName, owner: worker, clock: breakClock(clocksOn[group.clock](time), defect) });
let closing: Promise<void> | undefined;
process.once("SIGTERM", () => {
  stopping.abort();
  closing = locks.close({ drainMs: DRAIN_MS }).catch((error: unknown) => {
    if (findLockLost(error)?.reason !== "closed") throw error;
  });
});
await Promise.all([
  ...Array.from({ length: config.loops }, async (_, loop) => await work(loop)),
  ...(group.handsOff ? [resumeAll()] : []),
]);
await (closing ?? locks.close());

async function work(loop: number): Promise<void> {
  const random = seededRandom(seed, worker, loop);
  for (let turn = 1; !stopping.signal.aborted; turn++) {
    const onWithout = (because: string): void => tell({ kind: "without", because });
    const taken = await take(locks, group, random, stopping.signal, onWithout, defect);
    if (taken !== undefined) await section(taken, sectionName(taken.holding, `${worker}.${loop}.${turn}`), random);
    await sleep(60 * random());
  }
}

/** Goes on with what sections of this process and of others hand off. Most of them are tried by each of the processes. */
async function resumeAll(): Promise<void> {
  const random = seededRandom(seed, worker, "resume");
  const known = new Set<string>();
  for (let turn = 1; !stopping.signal.aborted; turn++) {
    await sleep(200 + 300 * random());
    const all = await offered(tokens).catch(() => []);
    const fresh = all.filter(({ by }) => !known.has(by) || random() < 0.05);
    const token = fresh[Math.floor(fresh.length * random())];
    if (token === undefined) continue;
    known.add(token.by);
    const name = sectionName(token.holding, `${worker}.resumed.${turn}`);
    const taken = await resumed(token, name);
    if (taken !== undefined) await section(taken, name, random);
  }
}

async function resumed(token: Token, name: string): Promise<Taken | undefined> {
  const tried = { kind: "tried token", logs: logsFor(group.names, token.holding), of: token.by, at: now() } as const;
  tell(tried);
  try {
    await breakToken(token, defect, { client: direct, tableName });
    const taken = await resume(locks, group, token.token, defect);
    tell({ ...tried, section: name });
    return taken;
  } catch (error) {
    if (!stopping.signal.aborted && !(error instanceof LockError)) throw error;
    const because = findLockLost(error)?.reason ?? (error instanceof LockError ? error.code : "stopping");
    tell({ kind: "resume refused", because });
    return undefined;
  }
}

function logsFor(names: readonly string[], holding: Holding | undefined): string[] {
  const isGuarded = holding !== undefined && !holding.startsWith("permits");
  return [...names, ...(isGuarded ? names.map((name) => guardedLogOf(name, holding).name) : [])];
}

/** Those of the sections that are guarded write a log by guarded transactions; every other one a last line afterwards. */
async function section(taken: Taken, name: string, random: Random): Promise<void> {
  const { names, holding, guarding, transferable } = taken;
  const lock = breakLock(taken.lock, defect, { client: direct, tableName, names });
  const logs = new Map<string, Log>(names.map((each) => [each, new Register(linesOf(direct, tableName, each))]));
  const joined = guarding !== undefined && (uuids.get(guarding.uuid) ?? 0) > 0;
  const parts = { section: name, lock, logs, ttlMs: TTL_MS, random, tell, joined };
  const handOff = transferable && random() < 0.4 ? () => handOffTo(transferable, taken, name, random) : undefined;
  if (guarding === undefined) {
    await runSection({ ...parts, handOff });
    return;
  }
  const { uuid } = guarding;
  const { name: logName, isOfSides } =
    holding === undefined ? { name: names[0] ?? "" } : guardedLogOf(names[0] ?? "", holding);
  const lines = linesOf(direct, tableName, logName);
  const log = new GuardedLog({
    name: logName,
    section: name,
    register: isOfSides ? new SidesRegister(lines, name) : new Register(lines),
    lock: guarding,
    token: "fencingToken" in guarding ? String(guarding.fencingToken) : undefined,
    client: proxied,
    random,
    defect,
    tell,
  });
  logs.set(logName, log);
  let late: { readonly step: number; readonly send: () => Promise<GuardedOutcome> } | undefined;
  const beforeUnlock = async (step: number): Promise<void> => {
    if (random() < 0.5) return;
    const send = await log.prepare(step).catch(unlessLost);
    late = send && { step, send };
  };
  uuids.set(uuid, (uuids.get(uuid) ?? 0) + 1);
  const lost = await runSection({ ...parts, beforeUnlock, handOff });
  uuids.set(uuid, (uuids.get(uuid) ?? 1) - 1);
  if (late === undefined) return;
  // A row that several sections share outlives each of them.
  const isReleased = holding !== "shared" && lost === undefined && !unreleased.has(uuid);
  await sleep(100 * random());
  if (isReleased) tell({ kind: "sent after release", logs: [logName], section: name, step: late.step });
  tell({ kind: "late outcome", outcome: await late.send() });
}

/** @throws LockLostError */
async function handOffTo(lock: TransferableLock, taken: Taken, name: string, random: Random): Promise<void> {
  const validForMs = Math.ceil(1_000 + 3_000 * random());
  const until = now() + validForMs;
  const { uuid } = lock;
  const token = await lock.handOff({ validForMs }).catch((error: unknown) => {
    if (findLockLost(error) !== undefined || !(error instanceof LockError)) throw error;
    unreleased.add(uuid);
  });
  if (token === undefined) return;
  const dies = random() < 0.2;
  const logs = logsFor(taken.names, taken.holding);
  const from = now();
  await post(tokens, { by: name, holding: taken.holding, token }).catch(() => undefined);
  tell({ kind: "handed off", logs, section: name, from, until, dies });
  if (dies) process.kill(process.pid, "SIGKILL");
}

/** A line that could not be prepared is not sent. @throws LockLostError */
function unlessLost(error: unknown): undefined {
  if (findLockLost(error) !== undefined) throw error;
}
