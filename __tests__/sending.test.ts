import { DynamoDBClient, type DynamoDBClientConfig, GetItemCommand, PutItemCommand } from "@aws-sdk/client-dynamodb";
import { describe, expect, it } from "@jest/globals";
import { Sending } from "../lib/dynamodb/sending.js";

const Key = { name: { S: "a" }, sort: { S: "lock" } };
const COMMAND = { TableName: "locks", Key };

/** Decides what becomes of an attempt, with the signal that it was given: the network of these tests. */
type Network = (abortSignal: AbortSignal | undefined) => Promise<unknown> | unknown;

function clientOn(network: Network, config: DynamoDBClientConfig = {}): DynamoDBClient {
  return new DynamoDBClient({
    region: "us-east-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
    maxAttempts: 1,
    requestHandler: {
      handle: async (_request: unknown, options: { abortSignal?: AbortSignal } = {}) => {
        await network(options.abortSignal);
        throw Object.assign(new Error("read ECONNRESET"), { name: "TimeoutError", code: "ECONNRESET" });
      },
    },
    ...config,
  });
}

/** Which of the known signals they are: a matcher would take any two for equal. */
function which(seen: readonly unknown[], known: readonly AbortSignal[]): number[] {
  return seen.map((signal) => known.indexOf(signal as AbortSignal));
}

function fresh(): AbortSignal {
  return new AbortController().signal;
}

describe("a client that retries", () => {
  it("has the signal at each attempt", async () => {
    const signal = fresh();
    const seen: unknown[] = [];
    const client = clientOn((abortSignal) => seen.push(abortSignal), { maxAttempts: 3 });
    await expect(new Sending(client, undefined).send(new GetItemCommand(COMMAND), signal)).rejects.toThrow();
    expect(which(seen, [signal])).toEqual([0, 0, 0]);
  });

  it("lets no attempt leave after the signal", async () => {
    const controller = new AbortController();
    let attempts = 0;
    const network = (): void => {
      attempts += 1;
      controller.abort(new Error("the lease is over"));
    };
    const sending = new Sending(clientOn(network, { maxAttempts: 3 }), undefined);
    const sent = sending.send(new GetItemCommand(COMMAND), controller.signal);
    await expect(sent).rejects.toThrow("the lease is over");
    expect(attempts).toBe(1);
  });
});

describe.each([
  ["a client as the SDK makes it", {}, 3],
  ["a client that caches its middleware", { cacheMiddleware: true }, 1],
])("%s", (_, config, timesInOrder) => {
  /** How often the client's middleware was put in order. */
  function ordersOf(client: DynamoDBClient): { count: number } {
    const orders = { count: 0 };
    client.middlewareStack.add(
      (next) => {
        orders.count += 1;
        return next;
      },
      { step: "initialize" },
    );
    return orders;
  }

  it(`puts it in order ${timesInOrder} times for 3 requests in turn, each with a signal of its own`, async () => {
    const seen: unknown[] = [];
    const client = clientOn((abortSignal) => seen.push(abortSignal), config);
    const orders = ordersOf(client);
    const sending = new Sending(client, undefined);
    const signals = [fresh(), fresh(), fresh()];
    for (const signal of signals) {
      await expect(sending.send(new GetItemCommand(COMMAND), signal)).rejects.toThrow("ECONNRESET");
    }
    expect(which(seen, signals)).toEqual([0, 1, 2]);
    expect(orders.count).toBe(timesInOrder);
  });

  it("serves requests at once and of several kinds, and a signal ends the one that it was given with", async () => {
    const endings: (() => void)[] = [];
    const seen: (AbortSignal | undefined)[] = [];
    const client = clientOn((abortSignal) => {
      seen.push(abortSignal);
      return new Promise<void>((resolve, reject) => {
        endings.push(resolve);
        abortSignal?.addEventListener("abort", () => reject(abortSignal.reason));
      });
    }, config);
    const sending = new Sending(client, undefined);
    const [first, second, third] = [new AbortController(), new AbortController(), new AbortController()];
    const sent = [
      sending.send(new GetItemCommand(COMMAND), first.signal),
      sending.send(new GetItemCommand(COMMAND), second.signal),
      sending.send(new PutItemCommand({ TableName: "locks", Item: Key }), third.signal),
    ];
    const outcomes = Promise.allSettled(sent);
    while (seen.length < 3) await new Promise(setImmediate);
    expect(which(seen, [first.signal, second.signal, third.signal]).sort()).toEqual([0, 1, 2]);
    first.abort(new Error("the first"));
    for (const end of endings.slice(1)) end();
    const reasons = (await outcomes).map((outcome) => outcome.status === "rejected" && outcome.reason.message);
    expect(reasons).toEqual(["the first", "read ECONNRESET", "read ECONNRESET"]);
    // A way that an ended request has used is as good as new.
    const again = sending.send(new GetItemCommand(COMMAND), fresh());
    while (seen.length < 4) await new Promise(setImmediate);
    endings.at(-1)?.();
    await expect(again).rejects.toThrow("ECONNRESET");
  });

  it("keeps the caller's own requests as they were", async () => {
    const seen: unknown[] = [];
    const client = clientOn((abortSignal) => seen.push(abortSignal), config);
    const signal = fresh();
    await expect(new Sending(client, undefined).send(new GetItemCommand(COMMAND), signal)).rejects.toThrow();
    await expect(client.send(new GetItemCommand(COMMAND))).rejects.toThrow("ECONNRESET");
    expect(which(seen, [signal])).toEqual([0, -1]);
    expect(seen[1]).toBeUndefined();
  });
});

it("lets no attempt that a caller's middleware has left behind go on under the next request's signal", async () => {
  const attempts: { readonly signal: AbortSignal | undefined; readonly fail: () => void }[] = [];
  const network: Network = (signal) =>
    new Promise<void>((resolve) => {
      attempts.push({ signal, fail: resolve });
    });
  const client = clientOn(network, { cacheMiddleware: true, maxAttempts: 3 });
  const impatient = new AbortController();
  const givenUp = new Promise<never>((_resolve, reject) => {
    impatient.signal.addEventListener("abort", () => reject(impatient.signal.reason));
  });
  client.middlewareStack.add((next) => (args) => Promise.race([next(args), givenUp]), { step: "initialize" });
  let ended = 0;
  client.middlewareStack.add(
    (next) => (args) =>
      next(args).finally(() => {
        ended += 1;
      }),
    { step: "build" },
  );
  const sending = new Sending(client, undefined);
  const [first, second, third] = [new AbortController(), new AbortController(), new AbortController()];

  const sent = sending.send(new GetItemCommand(COMMAND), first.signal);
  while (attempts.length < 1) await new Promise(setImmediate);
  impatient.abort(new Error("the caller has waited enough"));
  await expect(sent).rejects.toThrow("the caller has waited enough");
  first.abort();
  // These are given up before they have come to their attempts.
  for (const { signal } of [second, third]) {
    await expect(sending.send(new GetItemCommand(COMMAND), signal)).rejects.toThrow("waited enough");
  }
  while (attempts.length < 3) await new Promise(setImmediate);
  attempts[0]?.fail();
  while (ended < 1 && attempts.length < 4) await new Promise(setImmediate);

  const signals = attempts.map(({ signal }) => signal);
  expect(which(signals, [first.signal, second.signal, third.signal])).toEqual([0, 1, 2]);
  for (const controller of [second, third]) controller.abort();
  for (const { fail } of attempts.slice(1)) fail();
  while (ended < 3) await new Promise(setImmediate);
});

describe("a client that caches its middleware, in a wrapper that leaves the options out", () => {
  it("gives each request its own signal and clock, and the caller's own requests none", async () => {
    const seen: unknown[] = [];
    const client = clientOn((abortSignal) => seen.push(abortSignal), { cacheMiddleware: true });
    const send = (command: GetItemCommand) => client.send(command);
    const wrapped = { send, config: client.config } as unknown as DynamoDBClient;
    const heard: string[] = [];
    const sendings = ["one", "other"].map(
      (name) =>
        new Sending(wrapped, () => {
          heard.push(name);
          return () => undefined;
        }),
    );
    const signals: AbortSignal[] = [];
    for (const sending of [...sendings, ...sendings]) {
      const signal = fresh();
      signals.push(signal);
      await expect(sending.send(new GetItemCommand(COMMAND), signal)).rejects.toThrow("ECONNRESET");
    }
    await expect(client.send(new GetItemCommand(COMMAND))).rejects.toThrow("ECONNRESET");
    expect(which(seen, signals)).toEqual([0, 1, 2, 3, -1]);
    expect(seen[4]).toBeUndefined();
    expect(heard).toEqual(["one", "other", "one", "other"]);
  });
});

it("heeds middleware that the caller adds to a client as the SDK makes it, also after the first request", async () => {
  const client = clientOn(() => undefined);
  const sending = new Sending(client, undefined);
  await expect(sending.send(new GetItemCommand(COMMAND), fresh())).rejects.toThrow("ECONNRESET");
  client.middlewareStack.add(
    () => () => {
      throw new Error("the caller's");
    },
    { step: "initialize" },
  );
  await expect(sending.send(new GetItemCommand(COMMAND), fresh())).rejects.toThrow("the caller's");
});
