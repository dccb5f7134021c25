/** What the projects of the matrix run: sections of two hosts, on one table, that may not overlap. */

const BODY_OF_SECTIONS = `
  let inside = 0;
  let most = 0;
  let ended = 0;
  const section = async () => {
    inside += 1;
    most = Math.max(most, inside);
    await new Promise((resolve) => setTimeout(resolve, 2));
    inside -= 1;
    ended += 1;
  };`;

/** What the program prints if all is well. */
export const PRINTED = "6 sections of 2 hosts, at most 1 at a time";

/** Plain JavaScript, for any way to load \`dynamutex\`. Where it cannot say \`await using\`, it closes by hand. */
export const CONTEND = `
async function contend(tableName) {
  const hosts = [new LockTable({ tableName }), new LockTable({ tableName })];
  await hosts[0].create();
${BODY_OF_SECTIONS}
  const held = await hosts[0].mutex("report").lock();
  const waiting = [0, 1, 0, 1, 0, 1].map((host) => hosts[host].mutex("report").run(section));
  const refused = await hosts[1].mutex("report").tryLock();
  await held.unlock();
  await Promise.all(waiting);
  const timedOut = await hosts[0].mutex("other").run(() => {
    return hosts[1].mutex("other").lock({ waitMs: 50 }).catch((error) => error);
  });
  for (const host of hosts) await host.close();
  if (refused !== null) throw new Error("a lock was granted that another host held");
  if (!(timedOut instanceof LockTimeoutError)) throw timedOut;
  return ended + " sections of 2 hosts, at most " + most + " at a time";
}
`;

/** The same in TypeScript, with types of each kind: classes, a class with a type parameter, interfaces, errors. */
export const CONTEND_TS = `
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { type FencedLock, findLockLost, type Lock, type Lockable, LockLostError, LockTable, LockTimeoutError, type Mutex } from "dynamutex";

class Fake implements Lockable<{ readonly name: string }> {
  async lock() { return { name: "fake" }; }
  async tryLock() { return null; }
  async run<T>(fn: (lock: { readonly name: string }) => T | Promise<T>): Promise<T> { return await fn(await this.lock()); }
  async tryRun() { return { ran: false as const, reason: "held" as const, holder: undefined }; }
}

class MyLoss extends LockLostError {
  readonly mine: boolean = true;
}

export async function contend(tableName: string): Promise<string> {
  await using first = new LockTable({ tableName });
  await using second = new LockTable({ tableName, client: new DynamoDBClient({}) });
  await first.create();
  const hosts = [first, second] as const;
${BODY_OF_SECTIONS}
  const fenced: Mutex<FencedLock> = second.mutex("fenced", { fencing: true });
  const name: string = await new Fake().run((lock) => lock.name);
  const loss: LockLostError | undefined = findLockLost(new MyLoss(name, "uuid", "expired"));
  if (!(loss instanceof MyLoss) || !loss.mine) throw new Error("the loss was not found");
  let refused: Lock | null;
  let waiting: Promise<void>[];
  {
    await using held = await first.mutex("report").lock();
    waiting = [0, 1, 0, 1, 0, 1].map((host) => hosts[host as 0 | 1].mutex("report").run(section));
    refused = await second.mutex("report").tryLock();
    held.assertHeld();
  }
  await Promise.all(waiting);
  const token: bigint = await fenced.run((lock) => lock.fencingToken);
  const timedOut: unknown = await fenced.run(() => first.mutex("fenced").lock({ waitMs: 50 }).catch((error: unknown) => error));
  if (refused !== null || token < 1n) throw new Error("a lock was granted that another host held");
  if (!(timedOut instanceof LockTimeoutError)) throw timedOut;
  return ended + " sections of 2 hosts, at most " + most + " at a time";
}

contend(process.env["TABLE_NAME"]!).then(
  (told) => console.log(told),
  (error: unknown) => {
    console.error(error);
    process.exitCode = 1;
  },
);
`;

/** Prints what {@link CONTEND} tells, and which of the two builds was loaded. */
const MAIN = `
contend(process.env.TABLE_NAME).then(
  (told) => console.log(told),
  (error) => {
    console.error(error);
    process.exitCode = 1;
  },
);
`;

export const ESM = `import { LockTable, LockTimeoutError } from "dynamutex";\n${CONTEND}${MAIN}`;

/** The same with a client of the application's copy of the SDK. */
export const CLIENT_OF_THE_APPLICATION = `import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { LockTable as Table, LockTimeoutError } from "dynamutex";
class LockTable extends Table {
  constructor(options) {
    super({ ...options, client: new DynamoDBClient({}) });
  }
}
${CONTEND}${MAIN}`;

/** What another runtime has to do as Node does: contend, be told of a loss and publish it, and run the command. */
export const RUNTIME = `import { execFileSync } from "node:child_process";
import { subscribe } from "node:diagnostics_channel";
import { findLockLost, LockTable, LockTimeoutError } from "dynamutex";
${CONTEND}
const told = await contend(process.env.TABLE_NAME);
const losses = [];
subscribe("dynamutex:lost", ({ reason }) => losses.push(reason));
const locks = new LockTable({ tableName: process.env.TABLE_NAME });
const lock = await locks.mutex("forced").lock();
await locks.mutex("forced").forceUnlock(lock.uuid);
const error = await lock.unlock().catch((thrown) => thrown);
if (!lock.signal.aborted || findLockLost(error)?.reason !== "forced") throw new Error("the loss was not told: " + error);
if (losses.join() !== "forced") throw new Error("the channel told " + losses.join());
await locks.close();
const [program, ...words] = JSON.parse(process.env.COMMAND);
const run = [...words, "run", "--table", process.env.TABLE_NAME, "echoing", "--", "echo", "ran"];
const echoed = execFileSync(program, run, { encoding: "utf8" });
if (echoed.trim() !== "ran") throw new Error("the command printed " + echoed);
console.log(told);
`;

export const COMMONJS = `const { LockTable, LockTimeoutError } = require("dynamutex");\n${CONTEND}${MAIN}`;

/** In one process, loaded in every way that Node has: it must be one copy. */
export const BOTH = `import { createRequire } from "node:module";
import * as imported from "dynamutex";
const required = createRequire(import.meta.url)("dynamutex");
if (required.LockTable !== imported.LockTable) throw new Error("import and require() gave two copies");
const { LockTable, LockTimeoutError } = required;
${CONTEND}${MAIN}`;

/** The two builds, loaded side by side as no one should: errors of one are errors of the other, and locks exclude. */
export const TWO_COPIES = `import { LockTable, LockTimeoutError, LockError, LockLostError, LockStoreError, findLockLost } from "dynamutex";
const other = await import("../node_modules/dynamutex/dist/index.js");
if (other.LockTable === LockTable) throw new Error("these are not two copies");
const mine = new LockLostError("a", "b", "expired");
const theirs = new other.LockLostError("a", "b", "expired");
class Derived extends LockError {}
const expected = [
  theirs instanceof LockLostError, theirs instanceof LockError, findLockLost(new AggregateError([theirs])) === theirs,
  mine instanceof other.LockLostError, mine instanceof other.LockError, other.findLockLost({ cause: mine }) === mine,
  !(theirs instanceof LockStoreError), !(theirs instanceof Derived), !(new Error("x") instanceof LockError),
];
if (expected.includes(false)) throw new Error("errors of two copies: " + expected);
${CONTEND.replace("new LockTable({ tableName })];", "new other.LockTable({ tableName, clock: tableClock() })];")}
import { tableClock } from "dynamutex";
${MAIN}`;

/** Whatever the package exports, by `import` and by `require()`. */
export const ENTRY_POINTS = `import { createRequire } from "node:module";
const require = createRequire(import.meta.url);
for (const entry of Object.keys(require("dynamutex/package.json").exports)) {
  if (entry === "./package.json") continue;
  const imported = await import("dynamutex" + entry.slice(1));
  const required = require("dynamutex" + entry.slice(1));
  const names = Object.keys(required).sort();
  if (names.length === 0 || names.join() !== Object.keys(imported).sort().join()) throw new Error(entry + ": other names");
  for (const name of names) if (required[name] !== imported[name]) throw new Error(entry + ": two copies of " + name);
}
console.log(${JSON.stringify(PRINTED)});
`;

export const JEST_ENTRY_POINTS = `
const entries = Object.keys(require("dynamutex/package.json").exports);
test.each(entries)("%s can be required", (entry) => {
  expect(Object.keys(require("dynamutex" + entry.slice(1)))).not.toEqual([]);
});
`;

export const BOTH_BUNDLED = `import * as imported from "dynamutex";
const required = require("dynamutex");
if (required.LockTable !== imported.LockTable) throw new Error("import and require() gave two copies");
const { LockTable, LockTimeoutError } = required;
${CONTEND}${MAIN}`;

/** A CommonJS file that is given a table by an ES module. */
export const CTS = `import { type FencedLock, LockLostError, type LockTable, type Mutex } from "dynamutex";
export async function used(locks: LockTable, mutex: Mutex<FencedLock>): Promise<LockLostError> {
  const token = await mutex.run(({ fencingToken }) => String(fencingToken));
  return new LockLostError(token, await locks.mutex("a").run(({ uuid }) => uuid), "expired");
}
`;

export const MTS = `import { LockLostError, LockTable } from "dynamutex";
import { used } from "./use.cjs";
const locks = new LockTable({ tableName: process.env["TABLE_NAME"]! });
await locks.create();
const lost: LockLostError = await used(locks, locks.mutex("b", { fencing: true }));
await locks.close();
if (!(lost instanceof LockLostError)) throw new Error("not an error of this copy");
console.log(${JSON.stringify(PRINTED)});
`;

export const JEST_TEST = `const { LockTable, LockTimeoutError } = require("dynamutex");
${CONTEND}
test("a contended lock", async () => {
  expect(await contend(process.env.TABLE_NAME)).toBe(${JSON.stringify(PRINTED)});
}, 60000);
`;

export const JEST_ESM_TEST = `import { LockTable, LockTimeoutError } from "dynamutex";
${CONTEND}
test("a contended lock", async () => {
  expect(await contend(process.env.TABLE_NAME)).toBe(${JSON.stringify(PRINTED)});
}, 60000);
`;

/** On a simulated DOM, whose AbortSignals are not Node's: a lock that is waited for, lost, and aborted by a caller's signal. */
const ON_A_DOM = `
async function onADom({ TestTable }) {
  if (typeof window !== "object" || !(new AbortController().signal instanceof window.AbortSignal)) throw new Error("no DOM");
  const table = new TestTable();
  const [one, other] = [table.host(), table.host()];
  const controller = new AbortController();
  const lock = await one.mutex("a").lock({ signal: controller.signal });
  const refused = other.mutex("a").lock({ signal: controller.signal }).catch((error) => error.message);
  controller.abort(new Error("enough"));
  const told = [await refused, lock.signal.aborted];
  const waiting = other.mutex("a").run((held) => held.signal.aborted);
  await lock.unlock();
  told.push(await waiting);
  const lost = await one.mutex("b").lock();
  lost.signal.addEventListener("abort", () => told.push(lost.signal.reason.code));
  await one.mutex("b").forceUnlock(lost.uuid);
  told.push(lost.signal.aborted, await lost.unlock().catch((error) => error.reason));
  const ending = new AbortController();
  await one.mutex("c").run((held) => { ending.abort(); told.push(held.signal.aborted); }, { signal: ending.signal });
  await Promise.all([one.close(), other.close()]);
  return told.join();
}
`;
const ON_A_DOM_TOLD = "enough,false,false,LOCK_LOST,true,forced,true";

export const JEST_DOM_TEST = `
${ON_A_DOM}
test("dynamutex/testing", async () => {
  expect(await onADom(require("dynamutex/testing"))).toBe(${JSON.stringify(ON_A_DOM_TOLD)});
}, 60000);
`;

/** What the SDK needs of Node, and Jest's jsdom lacks. */
export const JEST_DOM_GLOBALS = `
const { TextDecoder, TextEncoder } = require("node:util");
Object.assign(globalThis, { TextDecoder, TextEncoder });
`;

/** Jest takes the SDK's files for browsers, which it cannot load, unless it is told otherwise. */
export const JEST_DOM_IMPORT = `
test("dynamutex", async () => {
  const { LockTable } = require("dynamutex");
  await new LockTable({ tableName: "locks" }).close();
});
`;

export const VITEST_DOM_TEST = `import { LockTable } from "dynamutex";
import * as testing from "dynamutex/testing";
import { expect, test } from "vitest";
${ON_A_DOM}
test("dynamutex and dynamutex/testing", async () => {
  await new LockTable({ tableName: "locks" }).close();
  expect(await onADom(testing)).toBe(${JSON.stringify(ON_A_DOM_TOLD)});
}, 60000);
`;

/** Exports functions whose types nobody wrote down: the compiler has to name them, in a package that does not depend on the SDK. */
export const INFERRED_TYPES = `import { type Lock, LockTable } from "dynamutex";
import { TestTable } from "dynamutex/testing";

export function guardOf(lock: Lock) {
  return lock.guard();
}

export const mutexOf = (locks: LockTable, name: string) => locks.mutex(name, { fencing: true });
export const setOf = async (locks: LockTable) => await locks.lockAll(["a", locks.mutex("b")]);
export const stateOf = (locks: LockTable) => locks.semaphore("a", { permits: 2 }).inspect();
export async function written(lock: Lock) {
  return { plain: await lock.guard(), document: await lock.guard({ document: true }), shown: lock.toJSON() };
}

const lock = await new TestTable().host().mutex("a").lock();
const { plain } = await written(lock);
if (plain.ConditionCheck === undefined) throw new Error("no guard");
await lock.unlock();
console.log(${JSON.stringify(PRINTED)});
`;

export const VITEST_TEST = `import { LockTable, LockTimeoutError } from "dynamutex";
import { expect, test } from "vitest";
${CONTEND}
test("a contended lock", async () => {
  expect(await contend(process.env.TABLE_NAME)).toBe(${JSON.stringify(PRINTED)});
}, 60000);
`;

export const NODE_TEST = `import assert from "node:assert/strict";
import test from "node:test";
import { LockTable, LockTimeoutError } from "dynamutex";
${CONTEND}
test("a contended lock", async () => {
  assert.equal(await contend(process.env.TABLE_NAME), ${JSON.stringify(PRINTED)});
});
`;

/** A Lambda handler, as one is bundled. */
export const HANDLER = `import { LockTable, LockTimeoutError } from "dynamutex";
${CONTEND}
export const handler = async () => await contend(process.env.TABLE_NAME);
`;

/** A handler for what is measured: a program with one lock. */
export const SMALL_HANDLER = `import { LockTable } from "dynamutex";
const locks = new LockTable({ tableName: process.env.TABLE_NAME });
export const handler = async (event) => await locks.mutex(event.id).run(async () => event);
`;

export const INVOKE = (bundle) => `import(${JSON.stringify(bundle)}).then(
  async (module) => console.log(await (module.handler ?? module.default.handler)()),
).catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
`;

/** Two applications of NestJS, with decorators as TypeScript compiles them. */
export const NEST_TS = `import { Injectable, Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { type Lock, LockTable } from "dynamutex";
import { HeldLock, InjectLocks, Locked, LockModule, OncePer } from "dynamutex/nestjs";
${BODY_OF_SECTIONS}
let ticks = 0;

@Injectable()
class Reports {
  constructor(@InjectLocks() readonly locks: LockTable) {}

  @Locked((name) => \`report \${name}\`)
  async report(name: string, @HeldLock() lock?: Lock): Promise<void> {
    if (lock?.name !== "report a" || !lock.held) throw new Error("no lock");
    await section();
  }

  @OncePer(3_600_000, { name: "tick" })
  async tick(): Promise<void> {
    ticks += 1;
  }
}

@Injectable()
class Service {
  constructor(readonly reports: Reports) {}
}

@Module({
  imports: [LockModule.forRootAsync({ useFactory: () => ({ tableName: process.env["TABLE_NAME"]! }) })],
  providers: [Reports, Service],
})
class AppModule {}

async function main(): Promise<void> {
  const hosts = [0, 1].map(() => NestFactory.createApplicationContext(AppModule, { logger: false }));
  const applications = await Promise.all(hosts);
  const reports = applications.map((application) => application.get(Service).reports);
  await reports[0]!.locks.create();
  await Promise.all([0, 1, 0, 1, 0, 1].map((host) => reports[host]!.report("a")));
  for (const host of reports) await host.tick();
  for (const application of applications) await application.close();
  if (ticks !== 1) throw new Error(ticks + " ticks");
  console.log(ended + " sections of 2 hosts, at most " + most + " at a time");
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
`;

/** The work that a page leaves to its reader: it tells how many of it run at once, or whether its process may still take locks. */
export const SHIPPING = `import { setTimeout as sleep } from "node:timers/promises";
import { locks } from "./locks";

let running = 0;

export async function ship(order: string, signal: AbortSignal): Promise<string> {
  running += 1;
  const most = running;
  await sleep(order === "slow" ? 3_000 : 50, undefined, { signal });
  running -= 1;
  if (order !== "slow") return String(most);
  return await locks.mutex("another").tryLock().then(() => "open", (error) => error.code);
}
`;

export const NEXT_CONFIG = `import { join } from "node:path";
const root = join(import.meta.dirname, "..");
export default { turbopack: { root }, outputFileTracingRoot: root };
`;

export const NEXT_CHECK = `import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { LockTable } from "dynamutex";

const locks = new LockTable({ tableName: process.env.TABLE_NAME });
await locks.create();
const server = spawn(process.execPath, ["../node_modules/next/dist/bin/next", "start", "--port", "0"]);
const ended = once(server, "exit");
let told = "";
for (const stream of [server.stdout, server.stderr]) stream.on("data", (data) => (told += data));
try {
  const address = () => told.match(/http:.{2}localhost:[0-9]+/)?.[0];
  while (!told.includes("Ready")) await Promise.race([once(server.stdout, "data"), ended.then(() => Promise.reject(told))]);
  const ask = (order) => fetch(address() + "/orders/" + order, { method: "POST" });
  const contending = await Promise.all([1, 2, 3, 4, 5, 6].map(() => ask("7").then((reply) => reply.text())));
  expect("at once", contending, ["1", "1", "1", "1", "1", "1"]);
  await locks.mutex("order#8").run(async () => expect("held", (await ask("8")).status, 409));
  const slow = ask("slow");
  while ((await locks.mutex("order#slow").inspect()) === null) await sleep(50);
  server.kill("SIGTERM");
  expect("after SIGTERM", await (await slow).text(), "LOCK_CLOSED");
  await ended;
  expect("left", await locks.mutex("order#slow").inspect(), null);
} finally {
  server.kill("SIGKILL");
  await locks.close();
}
console.log(${JSON.stringify(PRINTED)});

function expect(what, actual, expected) {
  const [is, should] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (is !== should) throw new Error(what + ": " + is + ", and should be " + should + "; Next.js said " + told);
}
`;
