import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DynamoDBClient, ListTablesCommand } from "@aws-sdk/client-dynamodb";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { defaultClient } from "../../lib/dynamodb/default-client.js";
import { LockTable } from "../../lib/index.js";
import { clientEnv } from "../support/endpoint.js";
import { status500, throttle } from "../support/fault-proxy.js";
import { ManualTime } from "../support/manual-time.js";
import { useScene } from "../support/scene.js";

const scene = useScene();
const NOWHERE = "/dev/null";
let environment: NodeJS.ProcessEnv;
let folder: string;

beforeEach(async () => {
  environment = { ...process.env };
  for (const name of Object.keys(process.env)) if (name.startsWith("AWS_")) delete process.env[name];
  Object.assign(process.env, { AWS_CONFIG_FILE: NOWHERE, AWS_SHARED_CREDENTIALS_FILE: NOWHERE });
  folder = await mkdtemp(join(tmpdir(), "dynamutex-"));
});

afterEach(async () => {
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, environment);
  await rm(folder, { recursive: true });
});

type Variables = Readonly<Record<string, string>>;

/** Puts these lines into the profile of a config file that the environment names. */
async function configFile(...lines: readonly string[]): Promise<Variables> {
  const path = join(folder, "config");
  await writeFile(path, ["[default]", ...lines, ""].join("\n"));
  return { AWS_CONFIG_FILE: path };
}

const RETRIES: readonly (readonly [string, () => Variables | Promise<Variables>])[] = [
  ["the environment", () => ({ AWS_RETRY_MODE: "adaptive", AWS_MAX_ATTEMPTS: "7" })],
  ["a config file", () => configFile("retry_mode = adaptive", "max_attempts = 7", "defaults_mode = legacy")],
  [
    "an environment that makes no sense",
    () => ({ AWS_RETRY_MODE: "?", AWS_MAX_ATTEMPTS: "?", AWS_DEFAULTS_MODE: "?", AWS_NEW_RETRIES_2026: "true" }),
  ],
];

describe.each(RETRIES)("with retries set in %s", (_, variables) => {
  beforeEach(async () => {
    Object.assign(process.env, clientEnv(scene.proxy.endpoint), await variables());
  });

  test("a table that throttles for 0.7 s costs none of six leases of 5 s", async () => {
    const time = new ManualTime();
    const hosts = Array.from(
      { length: 6 },
      () => new LockTable({ tableName: scene.tableName, clock: time.clock(), ttlMs: 5_000 }),
    );
    const locks = await Promise.all(hosts.map((host, index) => host.mutex(`${scene.name}-${index}`).lock()));
    await scene.play(time, () => time.elapsed >= 2_400);
    const throttling = scene.proxy.on("UpdateItem", throttle(), { times: Number.POSITIVE_INFINITY });
    await scene.play(time, () => time.elapsed >= 3_100);
    throttling.remove();
    await scene.play(time, () => time.elapsed >= 8_000);
    expect(locks.map(({ held }) => held)).toEqual(locks.map(() => true));
    for (const lock of locks) await lock.unlock();
    for (const host of hosts) await host.close();
  });

  test("the client sends a request once", async () => {
    scene.proxy.on("ListTables", status500());
    const client = defaultClient();
    await expect(client.send(new ListTablesCommand({}))).rejects.toThrow();
    client.destroy();
    expect(scene.proxy.count("ListTables")).toBe(1);
  });
});

/** The host that a client's request goes to. */
async function hostOf(client: DynamoDBClient): Promise<string> {
  let host = "";
  const handle = async (request: { readonly hostname: string; readonly port?: number }) => {
    host = request.port === undefined ? request.hostname : `${request.hostname}:${request.port}`;
    throw new Error("nobody is asked");
  };
  client.config.requestHandler = { handle } as unknown as DynamoDBClient["config"]["requestHandler"];
  await expect(client.send(new ListTablesCommand({}))).rejects.toThrow("nobody is asked");
  return host;
}

const PLAIN = "dynamodb.us-east-1.amazonaws.com";
const ACCOUNT = { AWS_ACCOUNT_ID: "123456789012" };

test.each<readonly [Variables | (() => Promise<Variables>), string]>([
  [{}, PLAIN],
  [{ AWS_ENDPOINT_URL: "http://127.0.0.1:1" }, "127.0.0.1:1"],
  [{ AWS_ENDPOINT_URL: "http://127.0.0.1:1", AWS_ENDPOINT_URL_DYNAMODB: "http://127.0.0.1:2" }, "127.0.0.1:2"],
  [{ AWS_ENDPOINT_URL: "http://127.0.0.1:1", AWS_IGNORE_CONFIGURED_ENDPOINT_URLS: "true" }, PLAIN],
  [() => configFile("endpoint_url = http://127.0.0.1:3"), "127.0.0.1:3"],
  [{ AWS_USE_DUALSTACK_ENDPOINT: "true" }, "dynamodb.us-east-1.api.aws"],
  [() => configFile("use_dualstack_endpoint = true"), "dynamodb.us-east-1.api.aws"],
  [{ AWS_USE_FIPS_ENDPOINT: "true" }, "dynamodb-fips.us-east-1.amazonaws.com"],
  [ACCOUNT, "123456789012.ddb.us-east-1.amazonaws.com"],
  [{ ...ACCOUNT, AWS_ACCOUNT_ID_ENDPOINT_MODE: "disabled" }, PLAIN],
  [{ AWS_ENABLE_ENDPOINT_DISCOVERY: "true" }, PLAIN],
])("case %#: the client goes where environment and config file say", async (given, host) => {
  const { AWS_ENDPOINT_URL_DYNAMODB: _, ...keys } = clientEnv("");
  Object.assign(process.env, keys, typeof given === "function" ? await given() : given);
  const client = defaultClient();
  expect(await hostOf(client)).toBe(host);
  client.destroy();
});
