import { DynamoDBClient, GetItemCommand } from "@aws-sdk/client-dynamodb";
import { expect, it } from "@jest/globals";
import { Sending } from "../lib/dynamodb/sending.js";

const COMMAND = { TableName: "locks", Key: { name: { S: "a" }, sort: { S: "lock" } } };

/** A client that tries everything three times, on a network where nothing gets through. */
function clientWithRetries(onAttempt: (abortSignal: unknown) => void): DynamoDBClient {
  return new DynamoDBClient({
    region: "us-east-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
    maxAttempts: 3,
    requestHandler: {
      handle: async (_request: unknown, options: { abortSignal?: unknown } = {}) => {
        onAttempt(options.abortSignal);
        throw Object.assign(new Error("read ECONNRESET"), { name: "TimeoutError", code: "ECONNRESET" });
      },
    },
  });
}

it("gives each attempt of a client that retries the signal", async () => {
  const { signal } = new AbortController();
  const seen: unknown[] = [];
  const sending = new Sending(
    clientWithRetries((attempt) => seen.push(attempt)),
    undefined,
  );
  await expect(sending.send(new GetItemCommand(COMMAND), signal)).rejects.toThrow("ECONNRESET");
  expect(seen).toEqual([signal, signal, signal]);
});

it("lets no attempt of a client that retries leave after the signal", async () => {
  const controller = new AbortController();
  let attempts = 0;
  const client = clientWithRetries(() => {
    attempts += 1;
    controller.abort(new Error("the lease is over"));
  });
  const sending = new Sending(client, undefined);
  await expect(sending.send(new GetItemCommand(COMMAND), controller.signal)).rejects.toThrow("the lease is over");
  expect(attempts).toBe(1);
});
