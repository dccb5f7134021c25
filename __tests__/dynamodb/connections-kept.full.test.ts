import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { afterEach, expect, test } from "@jest/globals";
import { adopt } from "../../lib/dynamodb/attempts.js";
import { Connections } from "../../lib/dynamodb/connections.js";
import { LockTable } from "../../lib/index.js";
import { testClientConfig } from "../support/endpoint.js";
import { hangAfter } from "../support/fault-proxy.js";
import { ManualTime } from "../support/manual-time.js";
import { useScene } from "../support/scene.js";
import { TLS_IDENTITY } from "../support/tls-identity.js";

const scene = useScene({ tls: TLS_IDENTITY });
const clients: DynamoDBClient[] = [];

afterEach(() => {
  for (const client of clients.splice(0)) client.destroy();
});

/** A client as the library makes it. Without the rule, its pool never learns of a request that got no reply. */
function clientWith(isRuleOn: boolean): DynamoDBClient {
  const connections = new Connections();
  connections.httpsAgent.options.ca = TLS_IDENTITY.cert;
  const { proxy } = scene;
  const requestHandler = { httpsAgent: connections.httpsAgent };
  const config = { ...testClientConfig(), endpoint: proxy.endpoint, maxAttempts: 1, cacheMiddleware: true };
  const client = new DynamoDBClient({ ...config, requestHandler });
  clients.push(client);
  return adopt(client, (request) => (isRuleOn ? connections.send(request) : request()));
}

/**
 * Keeps 500 locks on a table that takes 50 ms for an answer, and answers a request of a round of renewals too late. A burst of
 * reads follows.
 * @returns how many requests were answered too late, and how many connections were made once all locks had been renewed.
 */
async function keep(isRuleOn: boolean) {
  const { proxy } = scene;
  const time = new ManualTime();
  const locks = new LockTable({ tableName: scene.tableName, client: clientWith(isRuleOn), clock: time.clock() });
  const play = async <Result>(all: readonly Promise<Result>[]): Promise<Result[]> => {
    let settled = 0;
    const playing = Promise.all(all.map((one) => one.finally(() => (settled += 1))));
    await scene.play(time, () => settled === all.length);
    return await playing;
  };
  const pass = async (ms: number): Promise<void> => {
    const end = time.elapsed + ms;
    await scene.play(time, () => time.elapsed >= end, 250);
  };
  const names = Array.from({ length: 500 }, (_, index) => `kept-${isRuleOn}-${index}`);
  proxy.latencyMs = 50;
  const taken = await play(names.map((name) => locks.mutex(name).lock()));
  await pass(10_000);
  const [from, connections] = [proxy.requests.length, proxy.connections];
  for (const late of [0, 4]) {
    let sent = 0;
    proxy.on(() => sent++ === late, hangAfter());
    await pass(10_000);
  }
  await play(names.slice(0, 40).map((name) => locks.mutex(name).inspect()));
  return {
    held: taken.filter(({ held }) => held).length,
    late: proxy.requests.slice(from).filter(({ ending }) => ending === "left").length,
    connections: proxy.connections - connections,
  };
}

test("trap 49: 500 locks kept on a slow TLS endpoint make no more connections than without the rule, but for late answers", async () => {
  const without = await keep(false);
  const kept = await keep(true);
  expect(kept).toMatchObject({ held: 500, late: 2 });
  expect(kept.connections).toBeLessThanOrEqual(without.connections + kept.late);
});
