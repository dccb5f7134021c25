import "../support/foreign-errors.js";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer as createHttpServer, type ServerResponse } from "node:http";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { afterEach, describe, expect, test } from "@jest/globals";
import { defaultClient } from "../../lib/dynamodb/default-client.js";
import { storeFailure } from "../../lib/dynamodb/failures.js";
import { DynamoDbStore } from "../../lib/dynamodb/store.js";
import { Transport } from "../../lib/dynamodb/transport.js";
import { LockStoreError } from "../../lib/errors.js";
import { type LockTableOptions, tableLayout } from "../../lib/options/table.js";
import { lockAt } from "../../lib/protocol/addresses.js";
import { systemClock } from "../../lib/time/clock.js";
import { useWarnings } from "../support/diagnostics.js";
import { eventually } from "../support/eventually.js";
import { pageAt } from "../support/pages.js";
import { takeWith } from "../support/store-cases.js";
import { createTestTable, testClient } from "../support/table.js";
import { FREE, vacateOf } from "../support/write-cases.js";

const warnings = useWarnings();

const forever = new AbortController().signal;

const ends: (() => unknown)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

function storeOn(client: DynamoDBClient, options: Partial<LockTableOptions> = {}): DynamoDbStore {
  const layout = tableLayout({ tableName: "locks", ...options });
  return new DynamoDbStore(layout, new Transport(client, layout, systemClock()));
}

/** A client that sends everything once. */
function clientAt(endpoint: string): DynamoDBClient {
  return testClient({ endpoint, maxAttempts: 1 });
}

function readOn(store: DynamoDbStore, signal: AbortSignal = forever): Promise<unknown> {
  return store.read(lockAt("any"), { consistent: true }, signal);
}

/** The error that a read ends with. */
function readFailure(client: DynamoDBClient, options: Partial<LockTableOptions> = {}): Promise<LockStoreError> {
  return failureOf(readOn(storeOn(client, options)));
}

/** The error that a take ends with. */
function takeFailure(client: DynamoDBClient, options: Partial<LockTableOptions> = {}): Promise<LockStoreError> {
  return failureOf(storeOn(client, options).write(takeWith({}), forever));
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

/** What DynamoDB says when it cancels a transaction because of its second item. */
async function cancelling(Code: string): Promise<string> {
  return answering((response) => {
    response.writeHead(400, { "content-type": "application/x-amz-json-1.0" });
    const CancellationReasons = [{ Code: "None" }, { Code }];
    response.end(JSON.stringify({ __type: "x#TransactionCanceledException", message: "no", CancellationReasons }));
  });
}

/** An error of Node's network. */
function coded(code: string): Error {
  return Object.assign(new Error(`connect ${code}`), { code });
}

describe("what passes by itself", () => {
  test.each([
    ["ProvisionedThroughputExceededException", "throttling"],
    ["RequestLimitExceeded", "throttling"],
    ["SlowDown", "throttling"],
    ["ThrottledException", "throttling"],
    ["ThrottlingException", "throttling"],
    ["TooManyRequestsException", "throttling"],
    ["LimitExceededException", "something else"],
    ["TransactionConflictException", "something else"],
    ["TransactionInProgressException", "something else"],
    ["ReplicatedWriteConflictException", "something else"],
    ["InternalServerError", "something else"],
    ["InternalFailure", "something else"],
    ["ServiceUnavailable", "something else"],
  ])("%s, which is %s", async (type, kind) => {
    const failure = await takeFailure(clientAt(await refusing(type)));
    const throttled = kind === "throttling";
    expect(failure).toMatchObject({ transient: true, answered: true, throttled, cause: { name: type } });
    expect(failure.message).toContain(`PutItem on table locks failed: ${type}`);
  });

  test.each([
    ["ThrottlingError", true],
    ["ProvisionedThroughputExceeded", true],
    ["TransactionConflict", false],
  ])("a transaction that was cancelled for %s of an item, which is throttling: %s", async (code, throttled) => {
    const failure = await readFailure(clientAt(await cancelling(code)));
    expect(failure).toMatchObject({ transient: true, answered: true, throttled });
  });

  test.each([
    ["ReplicatedWriteConflictException", true],
    ["TransactionConflictException", false],
  ])("%s: the write may have been applied, which is so between Regions alone: %s", async (type, retried) => {
    expect(await takeFailure(clientAt(await refusing(type)))).toMatchObject({ transient: true, retried });
  });

  test("an error of DynamoDB's own whose name nobody has heard of", async () => {
    const failure = await readFailure(clientAt(await refusing("NewTroubleException", "later", 500)));
    expect(failure).toMatchObject({ transient: true, answered: true });
  });

  test("a signature by a wrong clock, which the SDK corrects for the next request", async () => {
    const date = new Date(Date.now() + 3_600_000).toUTCString();
    const endpoint = await refusing("InvalidSignatureException", "Signature not yet current", 400, { date });
    expect(await readFailure(clientAt(endpoint))).toMatchObject({ transient: true, answered: true });
  });

  test("trap 50: a signature that DynamoDB holds for one of the future, which the SDK corrects as well", async () => {
    const endpoint = await refusing("InvalidSignatureException", "Signature not yet current: 20260101T000000Z");
    expect(await readFailure(clientAt(endpoint))).toMatchObject({ transient: true, answered: true });
  });

  test.each<readonly [string, unknown]>([
    ["fetch without a connection", Object.assign(new TypeError("fetch failed"), { cause: coded("ECONNRESET") })],
    ["fetch whose socket was closed", Object.assign(new TypeError("fetch failed"), { cause: coded("UND_ERR_SOCKET") })],
    ["every address of a name", new AggregateError([coded("EHOSTUNREACH")])],
    [
      "a provider without a connection",
      Object.assign(new Error("no credentials"), {
        name: "CredentialsProviderError",
        cause: coded("EAI_AGAIN"),
      }),
    ],
    ["an error of STS that the SDK would repeat", Object.assign(new Error("x"), { $fault: "client", $retryable: {} })],
  ])("trap 50: credentials that are missing because of %s", async (_case, thrown) => {
    const credentials = async () => {
      throw thrown;
    };
    const failure = await takeFailure(testClient({ credentials, maxAttempts: 1 }));
    expect(failure).toMatchObject({ transient: true, throttled: false });
  });

  test("a client's own retries that were all in vain", async () => {
    const client = testClient({ endpoint: await refusing("InternalServerError", "no", 500), maxAttempts: 2 });
    expect(await readFailure(client)).toMatchObject({ transient: true, cause: { $metadata: { attempts: 2 } } });
  });
});

describe("what somebody has to put right", () => {
  test.each<readonly [string, readonly string[]]>([
    ["AccessDeniedException", ["permission dynamodb:PutItem on table locks"]],
    ["UnrecognizedClientException", ["does not know these credentials"]],
    ["InvalidSignatureException", ["refused the signature", "clock"]],
    ["ExpiredTokenException", ["credentials have expired"]],
    ["ValidationException", ["PutItem on table locks failed: ValidationException: no"]],
  ])("%s says what", async (type, words) => {
    const failure = await takeFailure(clientAt(await refusing(type)));
    expect(failure).toMatchObject({ transient: false, throttled: false, answered: true, cause: { name: type } });
    for (const word of words) expect(failure.message).toContain(word);
  });

  test("a refused key of KMS is told as that, and not as a missing permission for DynamoDB", async () => {
    const message = "User: ada is not authorized to perform: kms:Decrypt on resource: arn:aws:kms:us-east-1:1:key/2";
    const failure = await readFailure(clientAt(await refusing("AccessDeniedException", message)));
    expect(failure).toMatchObject({ transient: false, answered: true });
    expect(failure.message).toContain(
      "the KMS key that encrypts table locks refuses these credentials: allow kms:Decrypt",
    );
    expect(failure.message).not.toContain("dynamodb:");
  });

  test.each<readonly [string, object, RegExp]>([
    [
      "a file that this process may not read",
      { code: "EACCES", errno: -13, syscall: "open", path: "/secrets/token" },
      /cannot read \/secrets\/token \(EACCES\): let this process read it/,
    ],
    [
      "a folder where a file should be",
      { code: "EISDIR", errno: -21, syscall: "read", path: "/secrets" },
      /cannot read \/secrets \(EISDIR\): put a file there/,
    ],
    [
      "no home directory",
      { code: "ERR_SYSTEM_ERROR", errno: -2, syscall: "uv_os_homedir", info: { code: "ENOENT" } },
      /no home directory.*set HOME/,
    ],
  ])("%s, which credentials come from, is final", async (_case, thrown, remedy) => {
    const credentials = async () => {
      throw Object.assign(new Error("no"), thrown);
    };
    const failure = await takeFailure(testClient({ credentials, maxAttempts: 1 }));
    expect(failure).toMatchObject({ transient: false, answered: false });
    expect(failure.message).toMatch(remedy);
  });

  test("an account's endpoint that DNS does not know: how to do without it", () => {
    const host = "123456789012.ddb.eu-west-1.amazonaws.com";
    const error = Object.assign(new Error(`getaddrinfo ENOTFOUND ${host}`), { code: "ENOTFOUND", errno: -3008 });
    const { message } = storeFailure(error, { action: "GetItem", tableName: "locks" });
    expect(message).toContain("set AWS_ACCOUNT_ID_ENDPOINT_MODE=disabled");
    expect(message).not.toContain("correct AWS_REGION");
  });

  test("a client of another version of the SDK: what to compare", async () => {
    const error = new Error("serializerMiddleware is not found when adding endpointV2Middleware middleware before it");
    const { message, transient } = storeFailure(error, { action: "GetItem", tableName: "locks" });
    expect(transient).toBe(false);
    expect(message).toContain("npm ls @aws-sdk/client-dynamodb");
  });

  test("a missing permission lists all that locks, or create(), need, as docs/guides/table.md has them", async () => {
    const { text } = pageAt("docs/guides/table.md");
    const denied = Object.assign(new Error("no"), { name: "AccessDeniedException" });
    const told = (action: string) => {
      const { message } = storeFailure(denied, { action, tableName: "locks" });
      expect(message).toContain("docs/guides/table.md in the package dynamutex");
      return [...message.matchAll(/dynamodb:\w+/g)].map(([permission]) => permission);
    };
    const needed = (to: string) => {
      const [row = ""] = text.split("\n").filter((line) => line.startsWith(`| ${to} |`));
      return [...row.matchAll(/dynamodb:\w+/g)].map(([permission]) => permission);
    };
    const locks = needed("take, wait for, renew and release locks");
    expect(locks).toHaveLength(4);
    expect(told("PutItem")).toEqual(["dynamodb:PutItem", ...locks]);
    expect(told("Query")).toEqual(["dynamodb:Query", ...locks]);
    expect(told("CreateTable")).toEqual(["dynamodb:CreateTable", ...needed("`create()`")]);
    expect(told("TagResource")).toEqual(["dynamodb:TagResource", ...needed("`create()`")]);
  });

  test.each([
    "ResourceNotFoundException",
    "ValidationException",
    "AccessDeniedException",
    "UnrecognizedClientException",
  ])(
    "trap 50: %s stays final on a host whose clock is an hour off, although the SDK marks it as corrected",
    async (type) => {
      const date = new Date(Date.now() + 3_600_000).toUTCString();
      const failure = await readFailure(clientAt(await refusing(type, "no", 400, { date })));
      expect(failure).toMatchObject({ transient: false, cause: { $metadata: { clockSkewCorrected: true } } });
    },
  );

  test("an error of STS is no answer of the table, once requests are known to reach it", async () => {
    let fails = false;
    const credentials = async () => {
      if (fails) throw Object.assign(new Error("slow"), { name: "ThrottlingException", $fault: "client" });
      return { accessKeyId: "test", secretAccessKey: "test", expiration: new Date() };
    };
    const store = storeOn(testClient({ credentials, maxAttempts: 1 }), { tableName: await createTestTable() });
    await readOn(store);
    fails = true;
    expect(await failureOf(readOn(store))).toMatchObject({ transient: true, answered: false, throttled: false });
  });

  test("names the action of each operation", async () => {
    const store = storeOn(clientAt(await refusing("AccessDeniedException")));
    const messages = [
      await failureOf(store.write(takeWith({ remembers: "fence" }), forever)),
      await failureOf(readOn(store)),
      await failureOf(store.write(vacateOf(lockAt("any"), "mine", FREE), forever)),
    ].map(({ message }) => /dynamodb:\w+/.exec(message)?.[0]);
    expect(messages).toEqual(["dynamodb:UpdateItem", "dynamodb:GetItem", "dynamodb:DeleteItem"]);
  });

  test("a table that does not exist: its name, its region and how to create it", async () => {
    const tableName = `absent-${randomUUID()}`;
    const failure = await takeFailure(testClient(), { tableName });
    expect(failure).toMatchObject({ transient: false, answered: true, cause: { name: "ResourceNotFoundException" } });
    expect(failure.message).toContain(`table ${tableName} does not exist in region us-east-1`);
    const command = `npx dynamutex create-table --table ${tableName}`;
    expect(failure.message).toContain(`\`await locks.create()\` creates it, and so does \`${command}\``);
  });

  test("a table with other keys: how they differ", async () => {
    const tableName = await createTestTable();
    const failure = await readFailure(testClient(), { tableName, keys: { sort: null } });
    expect(failure).toMatchObject({ transient: false, answered: true, cause: { name: "ValidationException" } });
    const difference = "its sort key is sort (S), and the option keys.sort says null";
    expect(failure.message).toContain(`table ${tableName} does not fit: ${difference}`);
  });
});

describe("an endpoint that is not DynamoDB", () => {
  test.each<readonly [string, (response: ServerResponse) => void]>([
    ["a page that is not there", (response) => response.writeHead(404).end("<html>Not Found</html>")],
    ["a page", (response) => response.writeHead(200).end("<html>Hello</html>")],
    ["a refusal of a gateway", (response) => response.writeHead(403).end('{"message":"Forbidden"}')],
    ["a gateway's page for an outage", (response) => response.writeHead(503).end("<html>Sorry</html>")],
    ["a gateway's empty answer", (response) => response.writeHead(502).end()],
    ["a gateway that holds back", (response) => response.writeHead(429).end()],
    ["success without a word", (response) => response.writeHead(200).end()],
    ["success for everything", (response) => response.writeHead(200).end("{}")],
  ])("answers a take with %s: nobody believes it, and it passes", async (_case, answer) => {
    const client = clientAt(await answering(answer));
    for (const remembers of ["nothing", "fence"] as const) {
      const failure = await failureOf(storeOn(client).write(takeWith({ remembers }), forever));
      expect(failure).toMatchObject({ transient: true, answered: false, retried: true });
      expect(failure.message).toMatch(
        /^The endpoint of table locks, 127\.0\.0\.1:\d+, answered .* have the content-type application\/x-amz-json-1\.0: /,
      );
    }
  });

  test("holds back with status 429, which is throttling whoever it comes from", async () => {
    const failure = await readFailure(clientAt(await answering((response) => response.writeHead(429).end())));
    expect(failure).toMatchObject({ throttled: true, transient: true, answered: false });
  });

  test("is a table by the content type of its replies: without request ids, nothing more is asked", async () => {
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
    expect(sent).toEqual(["PutItemCommand", "PutItemCommand"]);
  });

  test("speaks something else", async () => {
    const endpoint = await listening(createServer((socket) => socket.once("data", () => socket.end("220 smtp\r\n"))));
    expect(await readFailure(testClient({ endpoint }))).toMatchObject({ answered: false });
  });
});

describe("a network that fails", () => {
  test("nobody listens", async () => {
    const server = createServer();
    const endpoint = await listening(server);
    server.close();
    await once(server, "close");
    const failure = await readFailure(clientAt(endpoint));
    expect(failure).toMatchObject({ transient: true, answered: false, cause: { code: "ECONNREFUSED" } });
  });

  test("a name that nobody knows", async () => {
    const failure = await readFailure(clientAt("http://dynamodb.invalid"));
    expect(failure).toMatchObject({ transient: true, answered: false });
  });

  test("a connection that is cut", async () => {
    const endpoint = await listening(createServer((socket) => socket.once("data", () => socket.resetAndDestroy())));
    const failure = await readFailure(clientAt(endpoint));
    expect(failure).toMatchObject({ transient: true, answered: false, cause: { code: "ECONNRESET" } });
  });

  test("a connection that is cut in the middle of an answer", async () => {
    const head = 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"Item"';
    const endpoint = await listening(createServer((socket) => socket.once("data", () => socket.end(head))));
    expect(await readFailure(clientAt(endpoint))).toMatchObject({ transient: true, answered: false });
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

  function clientWith(): DynamoDBClient {
    const client = defaultClient();
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
    await readFailure(clientWith());
    expect(requests).toBe(1);
  });

  test("without credentials says where they come from", async () => {
    environment({ AWS_REGION: "us-east-1", AWS_ENDPOINT_URL_DYNAMODB: "http://127.0.0.1:9" });
    const failure = await takeFailure(clientWith());
    expect(failure).toMatchObject({ transient: false, answered: false, cause: { name: "CredentialsProviderError" } });
    expect(failure.message).toContain("found no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
  });

  test("whose web identity has no token file says which variable names it, at once", async () => {
    const missing = "/var/run/no-such-token";
    environment({
      AWS_REGION: "us-east-1",
      AWS_WEB_IDENTITY_TOKEN_FILE: missing,
      AWS_ROLE_ARN: "arn:aws:iam::123456789012:role/locks",
    });
    const failure = await takeFailure(clientWith());
    expect(failure).toMatchObject({ transient: false, answered: false });
    expect(failure.message).toContain(
      `cannot read ${missing} (ENOENT), which AWS_WEB_IDENTITY_TOKEN_FILE names: put a`,
    );
  });

  const PADDED = "there is a newline or a space at the beginning or end of ";

  test("whose key ends with a newline says so, with the variable", async () => {
    const elsewhere = { AWS_REGION: "us-east-1", AWS_ENDPOINT_URL: "http://127.0.0.1:9" };
    environment({ ...KEYS, ...elsewhere, AWS_SESSION_TOKEN: "token\n" });
    const failure = await takeFailure(clientWith());
    expect(failure).toMatchObject({ transient: false, answered: false });
    expect(failure.message).toContain(`may hold: ${PADDED}AWS_SESSION_TOKEN, which no key of AWS has: remove it`);
    // A client of one's own may have its keys from elsewhere.
    environment({ ...KEYS, ...elsewhere });
    const credentials = { accessKeyId: "key\n", secretAccessKey: "test" };
    const other = await takeFailure(
      new DynamoDBClient({ endpoint: "http://127.0.0.1:9", region: "us-east-1", credentials }),
    );
    expect(other.message).toMatch(/line break.*check AWS_ACCESS_KEY_ID, .*newline at the end/);
  });

  test("is warned of a key with white space round it before anything is sent, once, and never with the key", () => {
    const secret = { AWS_SECRET_ACCESS_KEY: "hunter2\n" };
    environment({ ...KEYS, ...secret, AWS_PROFILE: "other" });
    clientWith();
    environment({ ...secret, AWS_SESSION_TOKEN: " token" });
    clientWith();
    expect(warnings).toEqual([]);
    environment({ ...KEYS, ...secret });
    for (const _ of [1, 2]) clientWith();
    expect(warnings).toEqual([
      `${PADDED}AWS_SECRET_ACCESS_KEY, which no key of AWS has: remove it there, or in the secret or file that the variable is ` +
        "set from. DynamoDB refuses what is signed with it",
    ]);
    environment({ ...KEYS, ...secret, AWS_ACCESS_KEY_ID: " test" });
    clientWith();
    expect(warnings[1]).toContain(`${PADDED}AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, `);
  });

  test.each(["InvalidSignatureException", "UnrecognizedClientException"])("%s names such a variable", async (code) => {
    const endpoint = await refusing(code, "told so", 400);
    environment({ ...KEYS, AWS_SECRET_ACCESS_KEY: "test\n", AWS_REGION: "us-east-1", AWS_ENDPOINT_URL: endpoint });
    const { message } = await takeFailure(clientWith());
    expect(message).toContain(`: ${PADDED}AWS_SECRET_ACCESS_KEY, `);
  });

  test("without a region says how to give one", async () => {
    environment(KEYS);
    const failure = await takeFailure(clientWith());
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
    const failure = await failureOf(readOn(storeOn(clientWith()), AbortSignal.timeout(50)));
    expect(failure).toMatchObject({ transient: true, answered: false });
    // A busy machine may be late to accept a connection that is over already.
    await eventually(() => closed.length === 1);
    await Promise.all(closed);
  });
});
