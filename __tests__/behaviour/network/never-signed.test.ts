import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { beforeAll, describe, expect, test } from "@jest/globals";
import { LockTable } from "../../../lib/index.js";
import { useWarnings } from "../../support/diagnostics.js";
import { watch } from "../../support/eventually.js";
import { ManualTime } from "../../support/manual-time.js";

const warnings = useWarnings();

const SIGNED = { "content-type": "application/x-amz-json-1.0" };
const PAGE = { "content-type": "text/html" };

beforeAll(() => {
  Object.assign(process.env, { AWS_REGION: "us-east-1", AWS_ACCESS_KEY_ID: "test", AWS_SECRET_ACCESS_KEY: "test" });
});

interface Answer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** A host whose client has a double of a `requestHandler`, which gives the same answer until it is changed. */
function hostOn(first: Answer, host: string) {
  const time = new ManualTime();
  const network = { answer: first, asked: 0 };
  const handle = async () => {
    network.asked += 1;
    return { response: { ...network.answer, body: new TextEncoder().encode("{}") } };
  };
  const client = new DynamoDBClient({
    endpoint: `http://${host}`,
    region: "us-east-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
    maxAttempts: 1,
    requestHandler: { handle },
  });
  const locks = new LockTable({ tableName: "locks", client, clock: time.clock() });
  return { time, network, locks };
}

/**
 * What a call comes to. The SDK reads its files in real time before the first request: no time passes but what the library sleeps.
 */
async function outcomeOf(time: ManualTime, call: Promise<unknown>): Promise<unknown> {
  const outcome = call.catch((error: unknown) => error);
  const watched = watch(outcome);
  await time.sleepUntil(() => watched.settled);
  return await outcome;
}

const calls: readonly [string, (locks: LockTable) => Promise<unknown>][] = [
  ["lock()", (locks) => locks.mutex("a").lock()],
  ["tryLock()", (locks) => locks.mutex("a").tryLock()],
  ["inspect()", (locks) => locks.mutex("a").inspect()],
  ["create()", (locks) => locks.create()],
  ["check()", (locks) => locks.check()],
];

describe.each([200, 302, 400, 403, 404, 407])(
  "an endpoint that answers everything with a page of status %d",
  (statusCode) => {
    test.each(calls)("is told within 4 s of %s, by a sentence that names it and the header", async (_, call) => {
      const { time, network, locks } = hostOn({ statusCode, headers: PAGE }, "proxy.test:8080");
      const error = await outcomeOf(time, call(locks));
      expect(error).toMatchObject({ code: "LOCK_STORE", transient: false, answered: false });
      expect((error as Error).message).toBe(
        `The endpoint of table locks, proxy.test:8080, answered with status ${statusCode} and content-type text/html, but the reply is ` +
          "not DynamoDB's, whose replies all have the content-type application/x-amz-json-1.0: correct the client's endpoint " +
          "(AWS_ENDPOINT_URL_DYNAMODB, AWS_ENDPOINT_URL, endpoint_url in ~/.aws/config), or what stands before it, such as a proxy, a " +
          "load balancer or a login page",
      );
      expect(time.elapsed).toBeGreaterThan(2_000);
      expect(time.elapsed).toBeLessThan(4_000);
      expect(network.asked).toBeGreaterThan(3);
    });
  },
);

test("an endpoint that says that it passes is asked again for 10 s, and warned of once, within 4 s", async () => {
  const { time, locks } = hostOn({ statusCode: 503, headers: PAGE }, "starting.test");
  const calling = locks.mutex("a").lock();
  calling.catch(() => undefined);
  await time.sleepUntil(() => warnings.length > 0);
  expect(time.elapsed).toBeLessThan(4_000);
  expect(await outcomeOf(time, calling)).toMatchObject({ code: "LOCK_STORE", transient: true, answered: false });
  expect(`${await outcomeOf(time, calling)}`).toContain("all have the content-type application/x-amz-json-1.0");
  expect(time.elapsed).toBeGreaterThanOrEqual(9_000);
  expect(warnings).toEqual([expect.stringMatching(/^The endpoint of table locks, starting.test, answered/)]);
});

test.each([403, 503])(
  "one reply of status %d at the start ends nothing: the table comes after it",
  async (statusCode) => {
    const { time, network, locks } = hostOn({ statusCode, headers: PAGE }, "later.test");
    const calling = locks.mutex("a").lock();
    await time.sleepUntil(() => network.asked === 2);
    network.answer = { statusCode: 200, headers: SIGNED };
    expect(await outcomeOf(time, calling)).toMatchObject({ held: true });
  },
);

test("a later call to an endpoint that was told is given the same time", async () => {
  const { time, network, locks } = hostOn({ statusCode: 404, headers: PAGE }, "again.test");
  expect(await outcomeOf(time, locks.mutex("a").inspect())).toMatchObject({ transient: false });
  await time.advance(5_000);
  const calling = locks.mutex("a").lock();
  await time.advance(1_000);
  network.answer = { statusCode: 200, headers: SIGNED };
  expect(await outcomeOf(time, calling)).toMatchObject({ held: true });
});

test("once the table has answered, no such reply ends a call", async () => {
  const { time, network, locks } = hostOn({ statusCode: 200, headers: SIGNED }, "known.test");
  await (await locks.mutex("a").lock()).unlock();
  network.answer = { statusCode: 404, headers: PAGE };
  const calling = locks.mutex("b").lock();
  await time.advance(8_000);
  network.answer = { statusCode: 200, headers: SIGNED };
  expect(await outcomeOf(time, calling)).toMatchObject({ held: true });
});

test("a double that signs is a table; a client whose `send` is replaced is believed, also where the class's is", async () => {
  const { locks } = hostOn({ statusCode: 200, headers: SIGNED }, "double.test");
  expect((await locks.mutex("a").lock()).held).toBe(true);
  const mock = Object.assign(new DynamoDBClient({ region: "us-east-1" }), { send: async () => ({}) });
  expect((await new LockTable({ tableName: "locks", client: mock }).mutex("a").lock()).held).toBe(true);
  const refused = Object.assign(new Error("held"), { name: "ConditionalCheckFailedException", $fault: "client" });
  Object.assign(DynamoDBClient.prototype, {
    send: async (command: { readonly input: { readonly Item?: { readonly name?: { readonly S?: string } } } }) => {
      if (command.input.Item?.name?.S === "taken") throw refused;
      return {};
    },
  });
  try {
    const own = new LockTable({ tableName: "locks" });
    expect((await own.mutex("a").lock()).held).toBe(true);
    // The row is gone when it is looked for: that is asked for again, and is no failure of the credentials.
    const error = await own
      .mutex("taken")
      .lock({ waitMs: 0 })
      .catch((thrown: unknown) => thrown);
    expect(`${error}`).toContain("was in the way and then was gone");
  } finally {
    Reflect.deleteProperty(DynamoDBClient.prototype, "send");
  }
});
