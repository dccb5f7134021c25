import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { type ClientRequest, request } from "node:http";
import { setImmediate } from "node:timers/promises";
import { DynamoDBClient, ListTablesCommand } from "@aws-sdk/client-dynamodb";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { Connections } from "../../../lib/dynamodb/connections.js";
import { defaultClient } from "../../../lib/dynamodb/default-client.js";
import { LockTable } from "../../../lib/index.js";
import { answeredWithin } from "../../../lib/session/overdue.js";
import { AnsweringThread } from "../../support/answering-thread.js";
import { hear } from "../../support/diagnostics.js";
import { eventually } from "../../support/eventually.js";
import { LateTime } from "../../support/late-time.js";
import { ManualTime } from "../../support/manual-time.js";
import { MemoryHost } from "../../support/memory-host.js";

const ENVIRONMENT = { AWS_REGION: "us-east-1", AWS_ACCESS_KEY_ID: "test", AWS_SECRET_ACCESS_KEY: "test" };

/** How long a section computes in one go, longer than the timeout of an attempt for a lease of 10 s. */
const COMPUTES_MS = 2_600;

/** For Node's timers to be due. */
const A_FEW_MS = 5;

let table: AnsweringThread;
let before: NodeJS.ProcessEnv;
const ends: (() => unknown)[] = [];

beforeEach(async () => {
  table = await AnsweringThread.start();
  before = { ...process.env };
  Object.assign(process.env, ENVIRONMENT, { AWS_ENDPOINT_URL_DYNAMODB: table.endpoint });
});

afterEach(async () => {
  for (const end of ends.splice(0)) end();
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, before);
  await table.close();
});

/** Counts the requests of this process that have left, and does something right after one has: its bytes are on their way. */
function watchRequests() {
  const watched = { left: 0, next: (): void => undefined };
  const left = (message: unknown): void => {
    const { next } = watched;
    watched.next = () => undefined;
    // One that needs a connection leaves later than it starts.
    (message as { readonly request: ClientRequest }).request.once("finish", () => {
      watched.left += 1;
      next();
    });
  };
  subscribe("http.client.request.start", left);
  ends.push(() => unsubscribe("http.client.request.start", left));
  return watched;
}

/** A lock table on a time that passes while a section computes, and such a section: the table answers everything meanwhile. */
function scene() {
  const time = new LateTime();
  const requests = watchRequests();
  const client = new DynamoDBClient({ maxAttempts: 1 });
  ends.push(() => client.destroy());
  const locks = new LockTable({ tableName: "locks", client, clock: time.clock });
  const compute = (ms: number): void => {
    time.passWhile(ms, () => table.blockUntil("answers", requests.left, A_FEW_MS));
  };
  return { locks, requests, compute };
}

describe("a late timer judges no reply", () => {
  test("its alarm counts when the sockets were polled, and not if the reply is there by then", async () => {
    const time = new ManualTime();
    const polls: (() => void)[] = [];
    const afterPoll = (act: () => void) => {
      polls.push(act);
      return () => void polls.splice(polls.indexOf(act), 1);
    };
    const clock = { ...time.clock(), afterPoll };
    const replies: ((reply: string) => void)[] = [];
    const wait = () => answeredWithin(clock, 100, new Promise<string>((resolve) => replies.push(resolve)));
    const [answered, unanswered] = [wait(), wait()];
    await time.advance(500);
    expect(polls).toHaveLength(2);
    replies[0]?.("here");
    expect(await answered).toBe("here");
    expect(polls).toHaveLength(1);
    polls[0]?.();
    expect(await unanswered).toBeUndefined();
  });

  test("trap 16: a section that computes for 2.6 s at a time on a lease of 10 s, and yields in between, keeps its lock", async () => {
    const { locks, requests, compute } = scene();
    const lock = await locks.mutex("job", { ttlMs: 10_000 }).lock();
    const leftBefore = requests.left;
    const [renewed, failed] = [hear("dynamutex:renewed"), hear("dynamutex:renewal-failed")];
    for (let step = 0; step < 20; step += 1) {
      compute(COMPUTES_MS);
      await setImmediate();
      expect(lock.held).toBe(true);
    }
    expect(failed).toEqual([]);
    expect(renewed.length).toBeGreaterThan(5);
    // Each left once. One that is in flight as its client is destroyed leaves a timer of the SDK's behind.
    await eventually(() => requests.left - leftBefore === renewed.length);
    await lock.unlock();
  });

  test("a call gets the lock that it has taken by the end of its wait", async () => {
    const { locks, requests, compute } = scene();
    await (await locks.mutex("job").lock()).unlock();
    requests.next = () => compute(COMPUTES_MS);
    await (await locks.mutex("job").lock({ waitMs: 1_000 })).unlock();
  });
});

describe("a connection of the library's own client", () => {
  test("is not given up while it is there, although a section computed for longer than connecting may take", async () => {
    const client = defaultClient({ connectMs: A_FEW_MS });
    ends.push(() => client.destroy());
    const compute = (): void => table.blockUntil("connections", 1, 4 * A_FEW_MS);
    // By the second tick, Node has begun to connect.
    const block = (): void => process.nextTick(() => process.nextTick(compute));
    subscribe("net.client.socket", block);
    ends.push(() => unsubscribe("net.client.socket", block));
    await client.send(new ListTablesCommand({}));
    // The thread's message may come after its answer.
    await eventually(() => table.operations.length > 0);
    expect(table.operations).toEqual(["ListTables"]);
  });

  test("is given up if it is not made in time", async () => {
    const { httpAgent: agent } = new Connections({ connectMs: A_FEW_MS });
    ends.push(() => agent.destroy());
    // Its name is never resolved.
    const [error] = await once(request({ agent, host: "nowhere.test", lookup: () => undefined }), "error");
    expect(error).toMatchObject({ code: "ETIMEDOUT", message: "no connection within 5 ms" });
  });
});

describe("the loss of a lease says why", () => {
  /** A holder whose table is out of reach from now on, on a time that the test moves. */
  async function cutOff() {
    const time = new ManualTime();
    const host = new MemoryHost(time);
    const lock = await host.mutex("job", { ttlMs: 10_000 }).lock();
    return { time, host, lock };
  }

  test("that the process did not run, and for how long", async () => {
    const { time, lock } = await cutOff();
    time.skip(12_000);
    expect(lock.held).toBe(false);
    expect(String(lock.signal.reason)).toMatch(
      /before a renewal got through\. This process did not run for 11\.0 s: its event loop/,
    );
  });

  test("the same if timers find it", async () => {
    const { time, lock } = await cutOff();
    await time.advance(4_500);
    time.skip(12_000);
    await time.advance(0);
    expect(String(lock.signal.reason)).toMatch(/did not run for 11\.5 s/);
  });

  test("nothing of that if it ran", async () => {
    const { time, host, lock } = await cutOff();
    host.fate = () => "lost";
    await time.advance(12_000);
    expect(lock.held).toBe(false);
    expect(String(lock.signal.reason)).toMatch(/before a renewal got through$/);
  });

  test("nothing of a pause that was over before the lease was last renewed", async () => {
    const { time, host, lock } = await cutOff();
    time.skip(7_000);
    await time.advance(10_000);
    expect(lock.held).toBe(true);
    host.fate = () => "lost";
    await time.advance(12_000);
    expect(String(lock.signal.reason)).toMatch(/before a renewal got through$/);
  });
});
