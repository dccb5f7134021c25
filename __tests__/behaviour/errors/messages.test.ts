import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { describe, expect, test } from "@jest/globals";
import { type Clock, type Lockable, LockTable, type LockTimeoutError } from "../../../lib/index.js";
import { TestTable } from "../../../lib/testing/index.js";
import { hear, useWarnings } from "../../support/diagnostics.js";
import { eventually, watch } from "../../support/eventually.js";
import { freePort } from "../../support/free-port.js";
import { ManualTime } from "../../support/manual-time.js";
import { pageAt } from "../../support/pages.js";
import { useScene } from "../../support/scene.js";
import { createTestTable, testClient } from "../../support/table.js";

const scene = useScene();

const warnings = useWarnings();

async function deadEnd(): Promise<{ readonly address: string; readonly endpoint: string }> {
  const address = `127.0.0.1:${await freePort()}`;
  return { address, endpoint: `http://${address}` };
}

describe("where nothing listens at the endpoint", () => {
  test("the first refused connection says so, once, with the variable to check, while the request is tried again", async () => {
    const { address, endpoint } = await deadEnd();
    const before = process.env.AWS_ENDPOINT_URL_DYNAMODB;
    process.env.AWS_ENDPOINT_URL_DYNAMODB = endpoint;
    try {
      const time = new ManualTime();
      const locks = new LockTable({ tableName: "locks", client: testClient({ endpoint }), clock: time.clock() });
      const asked = locks.mutex("m").lock();
      const waiting = watch(asked);
      await eventually(() => warnings.length > 0);
      expect(waiting.settled).toBe(false);
      const refused = expect(asked).rejects.toMatchObject({
        code: "LOCK_STORE",
        message: expect.stringContaining(`nothing listens at ${address}`),
      });
      await scene.play(time, () => waiting.settled, 500);
      await refused;
      expect(warnings).toEqual([
        `nothing listens at ${address}: start what is to answer there, or correct AWS_ENDPOINT_URL_DYNAMODB, which is ` +
          `${endpoint}. The request is tried again until its time is over`,
      ]);
    } finally {
      if (before === undefined) delete process.env.AWS_ENDPOINT_URL_DYNAMODB;
      else process.env.AWS_ENDPOINT_URL_DYNAMODB = before;
    }
  });

  test("no variable is blamed that names another address", async () => {
    const { address, endpoint } = await deadEnd();
    const locks = new LockTable({ tableName: "locks", client: testClient({ endpoint }) });
    const controller = new AbortController();
    const waiting = expect(locks.mutex("m").lock({ signal: controller.signal })).rejects.toThrow("enough");
    await eventually(() => warnings.length > 0);
    controller.abort(new Error("enough"));
    await waiting;
    expect(warnings[0]).toMatch(new RegExp(`^nothing listens at ${address}: .* correct the client's endpoint \\(AWS_`));
    await locks.close();
  });
});

describe("an address that cannot be right", () => {
  /** The environment for as long as `act` takes; the variables of endpoints and regions are not set otherwise. */
  async function within(env: Readonly<Record<string, string>>, act: () => Promise<void>): Promise<void> {
    const names = [
      "AWS_REGION",
      "AWS_ENDPOINT_URL",
      "AWS_ENDPOINT_URL_DYNAMODB",
      "AWS_ACCESS_KEY_ID",
      "AWS_SECRET_ACCESS_KEY",
    ];
    const before = names.map((name) => [name, process.env[name]] as const);
    for (const name of names) delete process.env[name];
    Object.assign(process.env, { AWS_ACCESS_KEY_ID: "test", AWS_SECRET_ACCESS_KEY: "test", ...env });
    try {
      await act();
    } finally {
      for (const [name, value] of before) {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
    }
  }

  /** How `tryLock()` fails, with the client that the library makes itself. */
  async function failure(): Promise<string> {
    const time = new ManualTime();
    await using locks = new LockTable({ tableName: "locks", clock: time.clock() });
    const asked = locks
      .mutex("m")
      .tryLock()
      .then(String, (error: Error) => error.message);
    const waiting = watch(asked);
    await scene.play(time, () => waiting.settled, 500);
    return await asked;
  }

  test.each([
    [{ AWS_ENDPOINT_URL_DYNAMODB: "127.0.0.1:8000" }, "AWS_ENDPOINT_URL_DYNAMODB is 127.0.0.1:8000"],
    [{ AWS_ENDPOINT_URL: "http//localhost:8000" }, "AWS_ENDPOINT_URL is http//localhost:8000"],
  ])("%j: an endpoint without a scheme is told as what it is", async (env, told) => {
    await within({ AWS_REGION: "us-east-1", ...env }, async () => {
      expect(await failure()).toContain(`failed: ${told}, which is no URL: it has to begin with http:// or https://`);
    });
  });

  /** What is warned of while a call waits for an answer. */
  async function warningOfAWait(): Promise<string | undefined> {
    const locks = new LockTable({ tableName: "locks" });
    const controller = new AbortController();
    const ended = expect(locks.mutex("m").lock({ signal: controller.signal })).rejects.toThrow("enough");
    await eventually(() => warnings.length > 0);
    controller.abort(new Error("enough"));
    await ended;
    await locks.close();
    return warnings[0];
  }

  test("a region that does not exist is told at once, with its variable", async () => {
    await within({ AWS_REGION: "us-esat-1" }, async () => {
      expect(await warningOfAWait()).toBe(
        "no host of the name dynamodb.us-esat-1.amazonaws.com is found: correct AWS_REGION, which is us-esat-1, " +
          "or check this host's network and DNS. The request is tried again until its time is over",
      );
    });
  });

  test("a host that does not exist is told at once, with the variable of the endpoint", async () => {
    const endpoint = "http://no-such-host.invalid:8000";
    await within({ AWS_REGION: "us-east-1", AWS_ENDPOINT_URL: endpoint }, async () => {
      expect(await warningOfAWait()).toContain(
        `no host of the name no-such-host.invalid is found: correct AWS_ENDPOINT_URL, which is ${endpoint}`,
      );
    });
  });

  test("an endpoint that speaks no TLS is told at once, with its variable", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const endpoint = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    await within({ AWS_REGION: "us-east-1", AWS_ENDPOINT_URL_DYNAMODB: endpoint }, async () => {
      expect(await warningOfAWait()).toBe(
        "the endpoint does not speak TLS, so it has to begin with http://: correct AWS_ENDPOINT_URL_DYNAMODB, " +
          `which is ${endpoint}. The request is tried again until its time is over`,
      );
    });
    server.close();
  });

  test("what is no name of a region is told, with its variable", async () => {
    await within({ AWS_REGION: "us_east_1" }, async () => {
      expect(await failure()).toContain('failed: "us_east_1" is no region: correct AWS_REGION, which is us_east_1');
    });
  });

  test("a session of SSO that has expired is told first", async () => {
    const message =
      "The SSO session associated with this profile has expired. To refresh this SSO session run aws sso login with the corresponding profile.";
    const credentials = () => Promise.reject(Object.assign(new Error(message), { name: "CredentialsProviderError" }));
    const client = new DynamoDBClient({ region: "us-east-1", credentials });
    const locks = new LockTable({ tableName: "locks", client });
    await expect(locks.mutex("m").tryLock()).rejects.toThrow(
      /^GetItem failed: the session of AWS SSO has expired: run `aws sso login`/,
    );
    await locks.close();
  });
});

test("a table that is keyed otherwise: lock() says which keys to set, as check() does", async () => {
  const tableName = await createTestTable({ sortKey: false });
  const locks = new LockTable({ tableName, client: testClient() });
  const advice =
    "it has no sort key, and the option keys.sort says sort. To mend it, set keys: { sort: null } on every host";
  const { problems } = await locks.check();
  expect(problems.find(({ code }) => code === "keys")?.message).toContain(advice);
  await expect(locks.mutex("m").lock()).rejects.toThrow(advice);
  await locks.close();
});

describe("what a timeout says of who is in the way:", () => {
  const manual = () => new TestTable({ time: "manual", startAt: new Date("2030-01-01T00:00:00Z") });

  test("this process, where it holds the lock itself", async () => {
    const table = manual();
    const [one, other] = [table.host({ owner: "one" }), table.host({ owner: "other" })];
    await one.mutex("m").lock();
    const own = expect(one.mutex("m").lock({ waitMs: 1_000 })).rejects.toThrow(
      "last seen held by a section of this process, one, until 2030-01-01T00:00:30.000Z. If that section awaits this call, ",
    );
    const others = expect(other.mutex("m").lock({ waitMs: 1_000 })).rejects.toThrow(
      "last seen held by one until 2030-",
    );
    await Promise.all([own, others, table.clock.advance(1_000)]);
  });

  test("who has it, also to callers of one process that ask at the same moment and do not wait", async () => {
    const table = manual();
    const [one, other] = [table.host({ owner: "one" }), table.host({ owner: "other" })];
    const holders = async (mutex: Lockable): Promise<unknown> => {
      const calls = Array.from({ length: 5 }, () =>
        mutex.lock({ waitMs: 0 }).catch((error: LockTimeoutError) => error.holder?.owner),
      );
      const settled = Promise.all(calls);
      await table.clock.advance(0);
      return (await settled).map((told) => (typeof told === "object" ? "lock" : told));
    };
    for (const options of [{}, { fair: true }]) {
      const lock = await one.mutex("m").lock();
      expect(await holders(other.mutex("m", options))).toEqual(Array.from({ length: 5 }, () => "one"));
      await lock.unlock();
      expect(await holders(other.mutex("n", options))).toEqual(["lock", "other", "other", "other", "other"]);
      await other.mutex("n").forceUnlock((await other.mutex("n").inspect())?.uuid ?? "", { now: true });
    }
    await one.semaphore("s", { permits: 1 }).lock();
    expect(await holders(other.semaphore("s", { permits: 1 }))).toEqual(Array.from({ length: 5 }, () => "one"));
  });

  test("nobody, until when, and that no unlock ends it, where the lock is parked", async () => {
    const table = manual();
    const lock = await table.host().mutex("m").lock({ holdAtLeastMs: 60_000 });
    await lock.unlock();
    const waiting = expect(table.host().mutex("m").lock({ waitMs: 1_000 })).rejects.toThrow(
      /last seen without a holder, last held by \S+, and kept until 2030-01-01T00:01:00\.\d+Z, which no unlock can end$/,
    );
    await Promise.all([waiting, table.clock.advance(1_000)]);
    expect(await table.host().mutex("m").forceUnlock(lock.uuid)).toBe(false);
  });
});

describe("a lock inside of a section of the same name, by way of another LockTable of the process", () => {
  const LONG = { ttlMs: 36_000_000, handOverMs: 36_000_000, poll: { minMs: 10_000, maxMs: 10_000 } };

  /** The clock of a process that runs by itself, as far as the library can tell. */
  const clockOf = (time: ManualTime): Clock => ({ ...time.clock(), stay: () => () => undefined });

  test("is noticed after 5 s", async () => {
    const stuck = hear("dynamutex:stuck");
    const time = new ManualTime();
    const [outer, inner] = [1, 2].map(() => scene.host({ clock: clockOf(time), ...LONG }));
    const lock = await outer?.mutex(scene.name).lock();
    const controller = new AbortController();
    const waiting = inner?.mutex(scene.name).lock({ signal: controller.signal });
    waiting?.catch(() => undefined);
    await scene.play(time, () => warnings.length > 0, 5_000);
    expect(stuck).toMatchObject([{ name: scene.name, uuid: lock?.uuid }]);
    controller.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    await lock?.unlock();
  });

  test("is not taken for one where the owners differ, as those of two hosts do", async () => {
    const time = new ManualTime();
    const [one, other] = ["one", "other"].map((owner) => scene.host({ clock: clockOf(time), owner, ...LONG }));
    const lock = await one?.mutex(scene.name).lock();
    const controller = new AbortController();
    const waiting = other?.mutex(scene.name).lock({ signal: controller.signal });
    waiting?.catch(() => undefined);
    await scene.play(time, () => time.elapsed > 180_000, 5_000);
    expect(warnings).toEqual([]);
    controller.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    await lock?.unlock();
  });
});

test("extend() refuses a length that it would ignore, on a lock and on a set", async () => {
  const locks = new TestTable().host();
  const [lock, set] = [await locks.mutex("m").lock(), await locks.lockAll(["a", "b"])];
  for (const held of [lock, set]) {
    const extend = held.extend.bind(held) as (ms?: number) => Promise<void>;
    await expect(extend(5_000)).rejects.toMatchObject({
      code: "LOCK_CONFIG",
      message: "extend(): takes no length: it renews the lease for the ttlMs of the lock's options (got 5000)",
    });
    await extend();
    await held.unlock();
  }
});

test("the AWS SDK's warning of Node.js 20 is switched off as the docs say", () => {
  const [, name = "", value] = /`(AWS_SDK_\w+)=(\w+)`/.exec(pageAt("docs/guides/troubleshooting.md").text) ?? [];
  const program = 'new (require("@aws-sdk/client-dynamodb").DynamoDBClient)({ region: "eu-west-1" })';
  const told = (setting: string | undefined) =>
    spawnSync(process.execPath, ["-e", program], { encoding: "utf8", env: { ...process.env, [name]: setting } }).stderr;
  expect(told(value)).toBe("");
  expect(told(undefined).includes("NodeVersionSupportWarning")).toBe(Number.parseInt(process.versions.node, 10) < 22);
});
