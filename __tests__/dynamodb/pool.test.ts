import { once } from "node:events";
import { Agent, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { DynamoDBClient, ListTablesCommand } from "@aws-sdk/client-dynamodb";
import { expect, test } from "@jest/globals";
import { defaultClient } from "../../lib/dynamodb/default-client.js";
import { crowdedPool } from "../../lib/dynamodb/pool.js";

test("a client whose connections are all in use says so, and for how many requests", async () => {
  let arrived = 0;
  const server = createServer(() => {
    arrived += 1;
    server.emit("arrived");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const client = new DynamoDBClient({
    region: "us-east-1",
    endpoint: `http://127.0.0.1:${port}`,
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
    maxAttempts: 1,
    requestHandler: { httpAgent: new Agent({ maxSockets: 2 }) },
  });
  expect(crowdedPool(client)).toBeUndefined();
  const controller = new AbortController();
  const send = () => client.send(new ListTablesCommand(), { abortSignal: controller.signal });
  const sent = Promise.allSettled(Array.from({ length: 5 }, send));
  while (arrived < 2) await once(server, "arrived");
  expect(crowdedPool(client)).toMatch(
    /^all 2 connections of the `client` are in use, and 3 requests wait for one: give/,
  );
  controller.abort();
  await sent;
  client.destroy();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

test.each<[string, DynamoDBClient]>([
  ["the library's own", defaultClient()],
  ["a mock", { send: async () => ({}) } as unknown as DynamoDBClient],
  ["one with a handler that has no figures", { config: { requestHandler: {} } } as unknown as DynamoDBClient],
])("a client that tells nothing of its connections is not suspected: %s", (_, client) => {
  expect(crowdedPool(client)).toBeUndefined();
});
