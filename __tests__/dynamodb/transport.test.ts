import { DynamoDBClient, type DynamoDBClientConfig, type GetItemCommand } from "@aws-sdk/client-dynamodb";
import { beforeAll, describe, expect, it } from "@jest/globals";
import { defaultClient } from "../../lib/dynamodb/default-client.js";
import { commandOf, type ItemRequest, Transport } from "../../lib/dynamodb/transport.js";
import { tableLayout } from "../../lib/options/table.js";
import { type Clock, systemClock } from "../../lib/time/clock.js";

const Key = { name: { S: "a" }, sort: { S: "lock" } };
/** The signal's reason, or what the SDK makes of any signal. */
const ENDED = /the lease is over|Request aborted/;
const DATE = "Tue, 01 Jul 2025 00:00:00 GMT";

/**
 * Decides what becomes of an attempt, with the signal that it was given: the network of these tests. What it answers,
 * if that is an object, is the response; otherwise the connection is lost.
 */
type Network = (abortSignal: AbortSignal | undefined) => Promise<unknown> | unknown;

interface Handler {
  readonly handle: (
    request: unknown,
    options?: { readonly abortSignal?: AbortSignal },
  ) => Promise<{ readonly response: object }>;
}

function handlerOn(network: Network): Handler {
  return {
    handle: async (_request, { abortSignal } = {}) => {
      const reply = await network(abortSignal);
      if (typeof reply === "object" && reply !== null) return { response: reply };
      throw Object.assign(new Error("read ECONNRESET"), { name: "TimeoutError", code: "ECONNRESET" });
    },
  };
}

function clientOn(network: Network, config: DynamoDBClientConfig = {}): DynamoDBClient {
  return new DynamoDBClient({
    region: "us-east-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
    maxAttempts: 1,
    requestHandler: { ...handlerOn(network) },
    ...config,
  });
}

function defaultClientOn(network: Network): DynamoDBClient {
  const client = defaultClient();
  client.config.requestHandler = handlerOn(network) as unknown as DynamoDBClient["config"]["requestHandler"];
  return client;
}

function response(statusCode: number, body: string, headers: Readonly<Record<string, string>>): object {
  return { statusCode, headers, body: new TextEncoder().encode(body) };
}

const TYPE = { "content-type": "application/x-amz-json-1.0" };
const WITHOUT_ID = { ...TYPE, date: DATE };
const TABLE = { ...WITHOUT_ID, "x-amzn-requestid": "1" };

function transportOn(client: DynamoDBClient, listen?: Clock["listen"]): Transport {
  return new Transport(client, tableLayout({ tableName: "locks" }), { ...systemClock(), ...(listen && { listen }) });
}

/** A clock that writes down what it hears. */
function listener(): { listen: NonNullable<Clock["listen"]>; log: (string | undefined)[] } {
  const log: (string | undefined)[] = [];
  const listen = () => {
    log.push("sent");
    return (date: string | undefined) => log.push(date);
  };
  return { listen, log };
}

/** Which of the known signals they are: a matcher would take any two for equal. */
function which(seen: readonly unknown[], known: readonly AbortSignal[]): number[] {
  return seen.map((signal) => known.indexOf(signal as AbortSignal));
}

/** Each with input of its own, as the store makes them. */
function getItem(): ItemRequest {
  return ["GetItem", { TableName: "locks", Key }];
}

function fresh(): AbortSignal {
  return new AbortController().signal;
}

beforeAll(() => {
  Object.assign(process.env, {
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
    AWS_CONFIG_FILE: "/dev/null",
    AWS_SHARED_CREDENTIALS_FILE: "/dev/null",
  });
});

describe("a client that retries", () => {
  it("has the signal at each attempt, and the clock hears of each", async () => {
    const signal = fresh();
    const seen: unknown[] = [];
    const { listen, log } = listener();
    const network: Network = (abortSignal) => {
      seen.push(abortSignal);
      return seen.length === 2 ? response(500, "{}", TABLE) : undefined;
    };
    const client = clientOn(network, { maxAttempts: 3 });
    await expect(transportOn(client, listen).send(getItem(), signal)).rejects.toThrow("ECONNRESET");
    expect(which(seen, [signal])).toEqual([0, 0, 0]);
    expect(log).toEqual(["sent", "sent", DATE, "sent"]);
  });

  it.each([
    ["", (client: DynamoDBClient) => client],
    [", also in a wrapper that leaves the options out", withoutOptions],
  ])("lets no attempt leave after the signal%s", async (_, wrap) => {
    const controller = new AbortController();
    let attempts = 0;
    const network = (): void => {
      attempts += 1;
      controller.abort(new Error("the lease is over"));
    };
    const transport = transportOn(wrap(clientOn(network, { maxAttempts: 3 })));
    await expect(transport.send(getItem(), controller.signal)).rejects.toThrow(ENDED);
    expect(attempts).toBe(1);
  });
});

describe.each<readonly [string, (network: Network) => DynamoDBClient]>([
  ["the library's own client", defaultClientOn],
  ["a client as the SDK makes it", clientOn],
  ["a client that caches its middleware", (network) => clientOn(network, { cacheMiddleware: true })],
])("%s", (_, make) => {
  it("gives each request its own signal", async () => {
    const seen: unknown[] = [];
    const transport = transportOn(make((abortSignal) => seen.push(abortSignal)));
    const signals = [fresh(), fresh(), fresh()];
    for (const signal of signals) {
      await expect(transport.send(getItem(), signal)).rejects.toThrow("ECONNRESET");
    }
    expect(which(seen, signals)).toEqual([0, 1, 2]);
  });

  it("serves requests at once and of several kinds, and a signal ends the one that it was given with", async () => {
    const endings: (() => void)[] = [];
    const seen: (AbortSignal | undefined)[] = [];
    const client = make((abortSignal) => {
      seen.push(abortSignal);
      return new Promise<void>((resolve, reject) => {
        endings.push(resolve);
        abortSignal?.addEventListener("abort", () => reject(abortSignal.reason));
      });
    });
    const transport = transportOn(client);
    const [first, second, third] = [new AbortController(), new AbortController(), new AbortController()];
    const sent = [
      transport.send(getItem(), first.signal),
      transport.send(getItem(), second.signal),
      transport.send(["PutItem", { TableName: "locks", Item: Key }], third.signal),
    ];
    const outcomes = Promise.allSettled(sent);
    while (seen.length < 3) await new Promise(setImmediate);
    expect(which(seen, [first.signal, second.signal, third.signal]).sort()).toEqual([0, 1, 2]);
    first.abort(new Error("the lease is over"));
    await expect(sent[0]).rejects.toThrow(ENDED);
    for (const end of endings) end();
    const reasons = (await outcomes).map((outcome) => outcome.status === "rejected" && outcome.reason.message);
    expect(reasons.slice(1)).toEqual([
      expect.stringContaining("read ECONNRESET"),
      expect.stringContaining("read ECONNRESET"),
    ]);
    const again = transport.send(getItem(), fresh());
    while (seen.length < 4) await new Promise(setImmediate);
    endings.at(-1)?.();
    await expect(again).rejects.toThrow("ECONNRESET");
  });

  it("sends nothing once the signal has aborted", async () => {
    const seen: unknown[] = [];
    const { listen, log } = listener();
    const client = make((abortSignal) => seen.push(abortSignal));
    const ended = AbortSignal.abort(new Error("the lease is over"));
    await expect(transportOn(client, listen).send(getItem(), ended)).rejects.toThrow(ENDED);
    expect([seen, log]).toEqual([[], []]);
  });

  it("sends the caller's own requests as before", async () => {
    const seen: unknown[] = [];
    const { listen, log } = listener();
    const client = make((abortSignal) => {
      seen.push(abortSignal);
      return response(200, "{}", TABLE);
    });
    const [before, { requestHandler }] = [client.middlewareStack.identify(), client.config];
    const [ours, theirs] = [fresh(), fresh()];
    await transportOn(client, listen).send(getItem(), ours);
    await client.send(commandOf(getItem()));
    await client.send(commandOf(getItem()), { abortSignal: theirs });
    await transportOn(client, listen).send(getItem(), ours);
    expect(which(seen, [ours, theirs])).toEqual([0, -1, 1, 0]);
    expect(seen[1]).toBeUndefined();
    expect(log).toEqual(["sent", DATE, "sent", DATE]);
    expect(client.middlewareStack.identify()).toEqual(before);
    expect(client.config.requestHandler).toBe(requestHandler);
  });

  it.each<readonly [string, object, readonly unknown[]]>([
    ["a reply of the table", response(200, "{}", TABLE), ["sent", DATE]],
    ["an error of the table", response(400, '{"__type":"x#ResourceNotFoundException"}', TABLE), ["sent", DATE]],
    ["a reply without a request id", response(200, "{}", WITHOUT_ID), ["sent", DATE]],
    ["a reply whose date somebody has stripped", response(200, "{}", TYPE), ["sent", undefined]],
    ["a gateway's error page", response(503, "<html>", { "content-type": "text/html", date: DATE }), ["sent"]],
    ["a success that tells nothing", response(200, "{}", { date: DATE }), ["sent"]],
    ["a gateway's success", response(200, "{}", { "content-type": "application/json", date: DATE }), ["sent"]],
    ["an error that tells nothing", response(400, "{}", { "x-amzn-requestid": "1" }), ["sent"]],
  ])("trap 31: lets the clock hear %s", async (_case, reply, expected) => {
    const { listen, log } = listener();
    const client = make(() => reply);
    await transportOn(client, listen)
      .send(getItem(), fresh())
      .catch(() => undefined);
    expect(log).toEqual(expected);
  });
});

/** A client that somebody has wrapped: the commands go on, the options do not. */
function withoutOptions(client: DynamoDBClient): DynamoDBClient {
  const send = (command: GetItemCommand) => client.send(command);
  return { send, config: client.config } as unknown as DynamoDBClient;
}

describe("middleware of the caller's", () => {
  it("is heeded on a client as the SDK makes it, also if it is added after the first request", async () => {
    const client = clientOn(() => undefined);
    const transport = transportOn(client);
    await expect(transport.send(getItem(), fresh())).rejects.toThrow("ECONNRESET");
    client.middlewareStack.add(
      () => () => {
        throw new Error("the caller's");
      },
      { step: "initialize" },
    );
    await expect(transport.send(getItem(), fresh())).rejects.toThrow("the caller's");
  });
});

it("trap 31: takes what a mock answers, and tells the clock that it shows no time", async () => {
  const mock = { send: async () => ({}) } as unknown as DynamoDBClient;
  const { listen, log } = listener();
  await expect(transportOn(mock, listen).ask(getItem(), fresh(), { kind: "read" })).resolves.toEqual({});
  expect(log).toEqual(["sent", undefined]);
});

describe("a reply of the table that the SDK cannot read", () => {
  /** The SDK reads the item of a refusal otherwise than that of a success. */
  const UNREADABLE = '{"data":{"M":{"__proto__":null}}}';
  const REFUSED = `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","Item":${UNREADABLE}}`;
  const put: ItemRequest = ["PutItem", { TableName: "locks", Item: Key }];

  it.each<[string, ItemRequest, number, string, object]>([
    ["of a read", getItem(), 200, `{"Item":${UNREADABLE}}`, { answered: true, retried: false }],
    ["of a write that was refused", put, 400, REFUSED, { answered: true, retried: false }],
    ["of a write that was applied", put, 200, `{"Attributes":${UNREADABLE}}`, { answered: false, retried: true }],
  ])("is final, and its error says for which lock it was: %s", async (_, request, status, body, what) => {
    const transport = transportOn(clientOn(() => response(status, body, TABLE)));
    const sent = transport.send(request, fresh(), { kind: "read", at: { name: "nightly" } });
    const message = expect.stringMatching(/lock "nightly": table locks has answered, and the AWS SDK cannot read/);
    await expect(sent).rejects.toMatchObject({ code: "LOCK_STORE", transient: false, message, ...what });
  });

  it("is none where the connection breaks off as it comes", async () => {
    const cause = Object.assign(new Error("other side closed"), { code: "UND_ERR_SOCKET" });
    const body = new ReadableStream({ pull: () => Promise.reject(new TypeError("terminated", { cause })) });
    const network: Network = () => ({ statusCode: 200, headers: TABLE, body });
    const sent = transportOn(clientOn(network)).send(getItem(), fresh());
    await expect(sent).rejects.toMatchObject({ code: "LOCK_STORE", transient: true, answered: false });
  });
});
