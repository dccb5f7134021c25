import { once } from "node:events";
import type { Agent, IncomingMessage } from "node:http";
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { Connections } from "../../lib/dynamodb/connections.js";
import { LockTable } from "../../lib/index.js";
import { clientEnv } from "../support/endpoint.js";
import { eventually } from "../support/eventually.js";
import type { Cut } from "../support/fault-proxy/links.js";
import {
  createGate,
  type FaultProxy,
  type RecordedRequest,
  resetAfter,
  resetBefore,
  startFaultProxy,
} from "../support/fault-proxy.js";
import { ManualTime } from "../support/manual-time.js";
import { useScene } from "../support/scene.js";
import { testEndpoint } from "../support/table.js";
import { TLS_IDENTITY } from "../support/tls-identity.js";

const scene = useScene();
const ends: (() => Promise<void> | void)[] = [];

beforeEach(() => {
  const before = { ...process.env };
  Object.assign(process.env, clientEnv(scene.proxy.endpoint));
  ends.push(() => {
    for (const name of Object.keys(process.env)) delete process.env[name];
    Object.assign(process.env, before);
  });
});

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** A host whose client the library has made, on a time that the test moves. */
function hostOn(time: ManualTime): LockTable {
  return new LockTable({ tableName: scene.tableName, clock: time.clock() });
}

/** Sends so many reads at once, each on a connection of its own, and resolves when all of these are idle. */
async function open(locks: LockTable, connections: number): Promise<void> {
  const hold = scene.proxy.hold("GetItem", { times: connections });
  const reads = Array.from({ length: connections }, (_, index) => locks.mutex(`idle-${index}`).inspect());
  await scene.proxy.until(() => hold.held.length === connections);
  hold.release();
  await Promise.all(reads);
  await scene.quiet();
}

interface Cost {
  readonly dead: number;
  readonly answered: number;
  readonly connections: number;
}

/** What the client sends and opens while `act` runs on the given time. */
async function costOf(time: ManualTime, act: () => Promise<unknown>): Promise<Cost> {
  const { proxy } = scene;
  const [from, connections] = [proxy.requests.length, proxy.connections];
  let hasEnded = false;
  const acting = act().finally(() => {
    hasEnded = true;
  });
  await scene.play(time, () => hasEnded);
  await acting;
  const sent = proxy.requests.slice(from);
  const count = (is: (request: RecordedRequest) => boolean): number => sent.filter(is).length;
  return {
    dead: count(({ fault }) => fault === "dead connection"),
    answered: count(({ ending }) => ending === "answered"),
    connections: proxy.connections - connections,
  };
}

describe.each<readonly [number, Cut]>([
  [12, "reset"],
  [40, "hang"],
])("trap 49: when all %i idle connections are dead (%s)", (connections, how) => {
  test("a lock and its unlock cost one attempt more, and one new connection", async () => {
    const time = new ManualTime();
    const locks = hostOn(time);
    await open(locks, connections);
    scene.proxy.killConnections(how);
    const cost = await costOf(time, async () => {
      await (await locks.mutex(scene.name).lock()).unlock();
    });
    expect(cost).toEqual({ dead: 1, answered: 2, connections: 1 });
    await locks.close();
  });

  test("a lock of 10 s is renewed by the second attempt", async () => {
    const time = new ManualTime();
    const locks = hostOn(time);
    await open(locks, connections);
    const lock = await locks.mutex(scene.name, { ttlMs: 10_000 }).lock();
    const { proxy } = scene;
    scene.proxy.killConnections(how);
    const from = proxy.requests.length;
    const renewed = proxy.until((requests) => requests.slice(from).some(({ ending }) => ending === "answered"));
    const cost = await costOf(time, () => Promise.race([renewed, once(lock.signal, "abort")]));
    expect(cost).toEqual({ dead: 1, answered: 1, connections: 1 });
    expect(lock.held).toBe(true);
    await lock.unlock();
    await locks.close();
  });

  test("a request for the table costs one attempt more as well", async () => {
    const time = new ManualTime();
    const locks = hostOn(time);
    await open(locks, connections);
    const { answered } = await costOf(time, () => locks.check());
    scene.proxy.killConnections(how);
    const cost = await costOf(time, () => locks.check());
    expect(cost).toMatchObject({ dead: 1, answered });
    await locks.close();
  });
});

test("a close ends all connections", async () => {
  const locks = hostOn(new ManualTime());
  await open(locks, 3);
  expect(scene.proxy.openConnections).toBe(3);
  await locks.close();
  await eventually(() => scene.proxy.openConnections === 0);
});

describe.each(["http", "https"] as const)("a pool of %s connections", (protocol) => {
  let proxy: FaultProxy;
  let connections: Connections;
  let agent: Agent;

  beforeEach(async () => {
    proxy = await startFaultProxy({ target: testEndpoint(), ...(protocol === "https" && { tls: TLS_IDENTITY }) });
    connections = new Connections();
    agent = protocol === "https" ? connections.httpsAgent : connections.httpAgent;
    ends.push(() => {
      agent.destroy();
      return proxy.close();
    });
  });

  const idle = () => Object.values(agent.freeSockets).flatMap((sockets) => sockets ?? []);

  /** Any request and any reply will do. */
  function send(operation: string): Promise<void> {
    const headers = { "x-amz-target": `DynamoDB_20120810.${operation}` };
    const options = { agent, method: "POST", headers, ca: TLS_IDENTITY.cert };
    return connections.send(async () => {
      const request = (protocol === "https" ? httpsRequest : httpRequest)(proxy.endpoint, options).end("{}");
      const [response] = (await once(request, "response")) as [IncomingMessage];
      await once(response.resume(), "end");
    });
  }

  /** @returns how many connections so many requests at once have made. */
  async function atOnce(count: number): Promise<number> {
    const before = proxy.connections;
    const hold = proxy.hold("GetItem", { times: count });
    const sent = Array.from({ length: count }, () => send("GetItem"));
    await proxy.until(() => hold.held.length === count);
    hold.release();
    await Promise.all(sent);
    await eventually(() => idle().length >= count);
    return proxy.connections - before;
  }

  test("trap 49: loses all that are idle if none has answered since a request that gets no reply", async () => {
    expect(await atOnce(4)).toBe(4);
    proxy.on("PutItem", resetBefore());
    await expect(send("PutItem")).rejects.toThrow();
    await eventually(() => idle().length === 0);
    expect(await atOnce(4)).toBe(4);
  });

  test("trap 49: keeps all if one has answered since, so that a slow table does not cost the pool", async () => {
    expect(await atOnce(4)).toBe(4);
    const gate = createGate();
    const unanswered = proxy.on("PutItem", resetAfter(gate.released));
    const slow = send("PutItem");
    await proxy.until((requests) => requests.some(({ table }) => table !== undefined && unanswered.used === 1));
    await send("GetItem");
    gate.release();
    await expect(slow).rejects.toThrow();
    expect(await atOnce(3)).toBe(0);
  });

  test("is used again, and closes what has been idle for 45 s", async () => {
    expect(await atOnce(4)).toBe(4);
    expect(await atOnce(4)).toBe(0);
    expect(idle().map(({ timeout }) => timeout)).toEqual([45_000, 45_000, 45_000, 45_000]);
  });
});
