import "./support/foreign-errors.js";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer as createHttpServer, type ServerResponse } from "node:http";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { afterEach, describe, expect, test } from "@jest/globals";
import { DynamoDbStore } from "../lib/dynamodb/store.js";
import { defaultClient } from "../lib/dynamodb/transport.js";
import { LockStoreError } from "../lib/errors.js";
import { type LockTableOptions, tableLayout } from "../lib/options/table.js";
import { lockAt } from "../lib/protocol/addresses.js";
import { systemClock } from "../lib/time/clock.js";
import { eventually } from "./support/eventually.js";
import { takeWith } from "./support/store-cases.js";
import { createTestTable, testClient } from "./support/table.js";

const forever = new AbortController().signal;
const VACATE = {
  kind: "vacate",
  at: lockAt("any"),
  uuid: "mine",
  leaves: { kind: "free" },
  remembers: "nothing",
} as const;
const CONSISTENT = { consistent: true };

const ends: (() => unknown)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

function storeOn(client: DynamoDBClient, options: Partial<LockTableOptions> = {}): DynamoDbStore {
  const layout = tableLayout({ tableName: "locks", ...options });
  return new DynamoDbStore({ client, layout, clock: systemClock() });
}

/** The error that an operation ends with. */
async function failureOf(operation: Promise<unknown>): Promise<LockStoreError> {
  const error = await operation.then(
    (outcome) => new Error(`ended well: ${JSON.stringify(outcome)}`),
    (thrown: unknown) => thrown,
  );
  if (error instanceof LockStoreError) return error;
  throw error;
}

async function listening(server: Server): Promise<string> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => sockets.add(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  ends.push(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** An HTTP server that gives every request the same answer. */
async function answering(answer: (response: ServerResponse) => void): Promise<string> {
  return listening(createHttpServer((request, response) => request.resume().on("end", () => answer(response))));
}

/** What DynamoDB says when it refuses. */
async function refusing(type: string, message = "no", status = 400, headers = {}): Promise<string> {
  return answering((response) => {
    response.writeHead(status, {
      "content-type": "application/x-amz-json-1.0",
      "x-amzn-requestid": randomUUID(),
      ...headers,
    });
    response.end(JSON.stringify({ __type: `com.amazonaws.dynamodb.v20120810#${type}`, message }));
  });
}

describe("what passes by itself", () => {
  test.each([
    "ThrottlingException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "LimitExceededException",
    "TransactionConflictException",
    "TransactionInProgressException",
    "ReplicatedWriteConflictException",
    "InternalServerError",
    "InternalFailure",
    "ServiceUnavailable",
  ])("%s", async (type) => {
    const client = testClient({ endpoint: await refusing(type), maxAttempts: 1 });
    const failure = await failureOf(storeOn(client).write(takeWith({}), forever));
    expect(failure).toMatchObject({ transient: true, answered: true, cause: { name: type } });
    expect(failure.message).toContain(`PutItem on table locks failed: ${type}`);
  });

  test("a conflict with a write of another Region may have been applied, and one within a Region was not", async () => {
    for (const [type, retried] of [
      ["ReplicatedWriteConflictException", true],
      ["TransactionConflictException", false],
    ] as const) {
      const client = testClient({ endpoint: await refusing(type), maxAttempts: 1 });
      expect(await failureOf(storeOn(client).write(takeWith({}), forever))).toMatchObject({ transient: true, retried });
    }
  });

  test("an error of DynamoDB's own whose name nobody has heard of", async () => {
    const client = testClient({ endpoint: await refusing("NewTroubleException", "later", 500), maxAttempts: 1 });
    const failure = await failureOf(storeOn(client).read(lockAt("any"), CONSISTENT, forever));
    expect(failure).toMatchObject({ transient: true, answered: true });
  });

  test("a signature by a wrong clock, which the SDK corrects for the next request", async () => {
    const date = new Date(Date.now() + 3_600_000).toUTCString();
    const endpoint = await refusing("InvalidSignatureException", "Signature not yet current", 400, { date });
    const failure = await failureOf(
      storeOn(testClient({ endpoint, maxAttempts: 1 })).read(lockAt("any"), CONSISTENT, forever),
    );
    expect(failure).toMatchObject({ transient: true, answered: true });
  });

  test("a transaction of somebody's on the same row", async () => {
    const endpoint = await answering((response) => {
      response.writeHead(400, { "content-type": "application/x-amz-json-1.0" });
      const CancellationReasons = [{ Code: "None" }, { Code: "TransactionConflict" }];
      response.end(JSON.stringify({ __type: "x#TransactionCanceledException", message: "no", CancellationReasons }));
    });
    const failure = await failureOf(
      storeOn(testClient({ endpoint, maxAttempts: 1 })).read(lockAt("any"), CONSISTENT, forever),
    );
    expect(failure).toMatchObject({ transient: true, answered: true });
  });

  test("a client's own retries that were all in vain", async () => {
    const client = testClient({ endpoint: await refusing("InternalServerError", "no", 500), maxAttempts: 2 });
    const failure = await failureOf(storeOn(client).read(lockAt("any"), CONSISTENT, forever));
    expect(failure).toMatchObject({ transient: true, cause: { $metadata: { attempts: 2 } } });
  });
});

describe("throttling", () => {
  test.each([
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "SlowDown",
    "ThrottledException",
    "ThrottlingException",
    "TooManyRequestsException",
  ])("is what %s says", async (type) => {
    const client = testClient({ endpoint: await refusing(type), maxAttempts: 1 });
    const failure = await failureOf(storeOn(client).read(lockAt("any"), CONSISTENT, forever));
    expect(failure).toMatchObject({ throttled: true, transient: true });
  });

  test("is what status 429 says, whoever it comes from", async () => {
    const endpoint = await answering((response) => response.writeHead(429).end());
    const failure = await failureOf(
      storeOn(testClient({ endpoint, maxAttempts: 1 })).read(lockAt("any"), CONSISTENT, forever),
    );
    expect(failure).toMatchObject({ throttled: true, transient: true, answered: false });
  });

  test.each([
    ["ThrottlingError", true],
    ["ProvisionedThroughputExceeded", true],
    ["TransactionConflict", false],
  ])("of an item of a transaction, which was cancelled for %s: %s", async (Code, throttled) => {
    const endpoint = await answering((response) => {
      response.writeHead(400, { "content-type": "application/x-amz-json-1.0" });
      const CancellationReasons = [{ Code: "None" }, { Code }];
      response.end(JSON.stringify({ __type: "x#TransactionCanceledException", message: "no", CancellationReasons }));
    });
    const failure = await failureOf(
      storeOn(testClient({ endpoint, maxAttempts: 1 })).read(lockAt("any"), CONSISTENT, forever),
    );
    expect(failure).toMatchObject({ throttled, transient: true });
  });

  test.each(["InternalServerError", "TransactionConflictException", "AccessDeniedException"])(
    "is not what %s says",
    async (type) => {
      const client = testClient({ endpoint: await refusing(type), maxAttempts: 1 });
      const failure = await failureOf(storeOn(client).read(lockAt("any"), CONSISTENT, forever));
      expect(failure).toMatchObject({ throttled: false });
    },
  );
});

describe("what somebody has to put right", () => {
  test.each<readonly [string, readonly string[]]>([
    ["AccessDeniedException", ["permission dynamodb:PutItem on table locks"]],
    ["UnrecognizedClientException", ["does not know these credentials"]],
    ["InvalidSignatureException", ["refused the signature", "clock"]],
    ["ExpiredTokenException", ["credentials have expired"]],
    ["ValidationException", ["PutItem on table locks failed: ValidationException: no"]],
  ])("%s says what", async (type, words) => {
    const client = testClient({ endpoint: await refusing(type), maxAttempts: 1 });
    const failure = await failureOf(storeOn(client).write(takeWith({}), forever));
    expect(failure).toMatchObject({ transient: false, answered: true, cause: { name: type } });
    for (const word of words) expect(failure.message).toContain(word);
  });

  test("names the action of each operation", async () => {
    const store = storeOn(testClient({ endpoint: await refusing("AccessDeniedException"), maxAttempts: 1 }));
    const messages = [
      await failureOf(store.write(takeWith({ remembers: "fence" }), forever)),
      await failureOf(store.read(lockAt("any"), CONSISTENT, forever)),
      await failureOf(store.write(VACATE, forever)),
    ].map(({ message }) => /dynamodb:\w+/.exec(message)?.[0]);
    expect(messages).toEqual(["dynamodb:UpdateItem", "dynamodb:GetItem", "dynamodb:DeleteItem"]);
  });

  test("a table that does not exist: its name, its region and how to create it", async () => {
    const tableName = `absent-${randomUUID()}`;
    const failure = await failureOf(storeOn(testClient(), { tableName }).write(takeWith({}), forever));
    expect(failure).toMatchObject({ transient: false, answered: true, cause: { name: "ResourceNotFoundException" } });
    expect(failure.message).toContain(`table ${tableName} does not exist in region us-east-1`);
    expect(failure.message).toContain("`await locks.create()` creates it, and so does `npx dynamutex create-table`");
  });

  test.each<readonly [string, boolean, Partial<LockTableOptions>, string]>([
    [
      "another partition key",
      true,
      { keys: { partition: "pk" } },
      "its partition key is name (S), and the option keys.partition says pk",
    ],
    ["another sort key", true, { keys: { sort: "sk" } }, "its sort key is sort (S), and the option keys.sort says sk"],
    [
      "a sort key where none is expected",
      true,
      { keys: { sort: null } },
      "its sort key is sort (S), and the option keys.sort says null",
    ],
    ["no sort key where one is expected", false, {}, "it has no sort key, and the option keys.sort says sort"],
  ])("a table with %s: how it differs", async (_case, sortKey, options, difference) => {
    const tableName = await createTestTable({ sortKey });
    const failure = await failureOf(
      storeOn(testClient(), { tableName, ...options }).read(lockAt("any"), CONSISTENT, forever),
    );
    expect(failure).toMatchObject({ transient: false, answered: true, cause: { name: "ValidationException" } });
    expect(failure.message).toContain(`table ${tableName} does not fit: ${difference}`);
  });
});

describe("an endpoint that is not DynamoDB", () => {
  test.each<readonly [string, boolean, (response: ServerResponse) => void]>([
    ["a page that is not there", false, (response) => response.writeHead(404).end("<html>Not Found</html>")],
    ["a page", false, (response) => response.writeHead(200).end("<html>Hello</html>")],
    ["a refusal of a gateway", false, (response) => response.writeHead(403).end('{"message":"Forbidden"}')],
    ["a gateway's page for an outage", true, (response) => response.writeHead(503).end("<html>Sorry</html>")],
    ["a gateway's empty answer", true, (response) => response.writeHead(502).end()],
    ["a gateway that holds back", true, (response) => response.writeHead(429).end()],
    ["success without a word", false, (response) => response.writeHead(200).end()],
    ["success for everything", false, (response) => response.writeHead(200).end("{}")],
  ])("answers a take with %s: nobody believes it", async (_case, transient, answer) => {
    const client = testClient({ endpoint: await answering(answer), maxAttempts: 1 });
    for (const remembers of ["nothing", "fence"] as const) {
      const failure = await failureOf(storeOn(client).write(takeWith({ remembers }), forever));
      expect(failure).toMatchObject({ transient, answered: false });
      expect(failure.message).toMatch(transient ? /failed/ : /check (the endpoint|that it is DynamoDB)/);
    }
  });

  test("is asked for the row only once, if it is a table that gives no request ids", async () => {
    const client = testClient();
    const sent: unknown[] = [];
    client.middlewareStack.add(
      (next, context) => async (args) => {
        sent.push(context.commandName);
        const result = await next(args);
        delete (result.output as { $metadata: { requestId?: string } }).$metadata.requestId;
        return result;
      },
      { step: "initialize" },
    );
    const store = storeOn(client, { tableName: await createTestTable() });
    expect(await store.write(takeWith({}), forever)).toMatchObject({ kind: "applied" });
    expect(await store.write(takeWith({}), forever)).toMatchObject({ kind: "applied" });
    expect(sent).toEqual(["PutItemCommand", "GetItemCommand", "PutItemCommand"]);
  });

  test("speaks something else", async () => {
    const endpoint = await listening(createServer((socket) => socket.once("data", () => socket.end("220 smtp\r\n"))));
    const failure = await failureOf(storeOn(testClient({ endpoint })).read(lockAt("any"), CONSISTENT, forever));
    expect(failure).toMatchObject({ answered: false });
  });
});

describe("a network that fails", () => {
  test("nobody listens", async () => {
    const server = createServer();
    const endpoint = await listening(server);
    server.close();
    await once(server, "close");
    const failure = await failureOf(
      storeOn(testClient({ endpoint, maxAttempts: 1 })).read(lockAt("any"), CONSISTENT, forever),
    );
    expect(failure).toMatchObject({ transient: true, answered: false, cause: { code: "ECONNREFUSED" } });
  });

  test("a name that nobody knows", async () => {
    const endpoint = "http://dynamodb.invalid";
    const failure = await failureOf(
      storeOn(testClient({ endpoint, maxAttempts: 1 })).read(lockAt("any"), CONSISTENT, forever),
    );
    expect(failure).toMatchObject({ transient: true, answered: false });
  });

  test("a connection that is cut", async () => {
    const endpoint = await listening(createServer((socket) => socket.once("data", () => socket.resetAndDestroy())));
    const failure = await failureOf(
      storeOn(testClient({ endpoint, maxAttempts: 1 })).read(lockAt("any"), CONSISTENT, forever),
    );
    expect(failure).toMatchObject({ transient: true, answered: false, cause: { code: "ECONNRESET" } });
  });

  test("a connection that is cut in the middle of an answer", async () => {
    const head = 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"Item"';
    const endpoint = await listening(createServer((socket) => socket.once("data", () => socket.end(head))));
    const failure = await failureOf(
      storeOn(testClient({ endpoint, maxAttempts: 1 })).read(lockAt("any"), CONSISTENT, forever),
    );
    expect(failure).toMatchObject({ transient: true, answered: false });
  });
});

describe("the client of the environment", () => {
  /** Runs with these variables and no others of the AWS SDK's. */
  function environment(variables: Record<string, string>): void {
    const before = { ...process.env };
    for (const name of Object.keys(process.env)) if (name.startsWith("AWS_")) delete process.env[name];
    const nothing = {
      AWS_CONFIG_FILE: "/dev/null",
      AWS_SHARED_CREDENTIALS_FILE: "/dev/null",
      AWS_EC2_METADATA_DISABLED: "true",
    };
    Object.assign(process.env, nothing, variables);
    ends.push(() => {
      for (const name of Object.keys(process.env)) delete process.env[name];
      Object.assign(process.env, before);
    });
  }

  function clientWith(options: Parameters<typeof defaultClient>[0] = {}): DynamoDBClient {
    const client = defaultClient(options);
    ends.push(() => client.destroy());
    return client;
  }

  const KEYS = { AWS_ACCESS_KEY_ID: "test", AWS_SECRET_ACCESS_KEY: "test" };

  test("goes where the environment says, and tries once", async () => {
    let requests = 0;
    const endpoint = await answering((response) => {
      requests += 1;
      response.writeHead(500).end();
    });
    environment({ ...KEYS, AWS_REGION: "us-east-1", AWS_ENDPOINT_URL_DYNAMODB: endpoint, AWS_MAX_ATTEMPTS: "5" });
    await failureOf(storeOn(clientWith()).read(lockAt("any"), CONSISTENT, forever));
    expect(requests).toBe(1);
  });

  test("without credentials says where they come from", async () => {
    environment({ AWS_REGION: "us-east-1", AWS_ENDPOINT_URL_DYNAMODB: "http://127.0.0.1:9" });
    const failure = await failureOf(storeOn(clientWith()).write(takeWith({}), forever));
    expect(failure).toMatchObject({ transient: false, answered: false, cause: { name: "CredentialsProviderError" } });
    expect(failure.message).toContain("found no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
  });

  test("without a region says how to give one", async () => {
    environment(KEYS);
    const failure = await failureOf(storeOn(clientWith()).write(takeWith({}), forever));
    expect(failure).toMatchObject({ transient: false, answered: false });
    expect(failure.message).toContain("knows no region: set AWS_REGION");
  });

  test.each<readonly [string, (socket: Socket) => void]>([
    ["before an answer", () => {}],
    [
      "while its head comes in drop by drop",
      (socket) => {
        socket.write("HTTP/1.1 200 OK\r\nX-Drops: ");
        const drops = setInterval(() => socket.write("."), 10);
        socket.on("close", () => clearInterval(drops));
      },
    ],
    ["in the middle of one", (socket) => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")],
  ])("ends a request that hangs %s, and its connection", async (_case, answer) => {
    const closed: Promise<unknown>[] = [];
    const endpoint = await listening(
      createServer((socket) => {
        // However it ends: a client that hangs up in the middle of an answer resets the connection.
        closed.push(new Promise((resolve) => socket.once("close", resolve)));
        socket.on("error", () => {}).once("data", () => answer(socket));
      }),
    );
    environment({ ...KEYS, AWS_REGION: "us-east-1", AWS_ENDPOINT_URL: endpoint });
    const failure = await failureOf(storeOn(clientWith({ answerMs: 50 })).read(lockAt("any"), CONSISTENT, forever));
    expect(failure).toMatchObject({ transient: true, answered: false });
    // A busy machine may be late to accept a connection that is over already.
    await eventually(() => closed.length === 1);
    await Promise.all(closed);
  });
});
