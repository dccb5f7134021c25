import { describe, expect, test } from "@jest/globals";
import { error, rewriteReply, withBody } from "../support/fault-proxy.js";
import { useScene } from "../support/scene.js";
import { useInstalledCli } from "./installed-cli.js";
import { rowsIn, tableInUse } from "./rehearsed-table.js";

const scene = useScene();
const cli = useInstalledCli();
const FOREVER = { times: Number.POSITIVE_INFINITY };

const given = () => ({ env: { DYNAMUTEX_TABLE: scene.tableName }, endpoint: scene.proxy.endpoint });
const start = () => cli.start(["rehearse", "--ttl", "500ms"], given());
const run = (env: Readonly<Record<string, string>> = {}) =>
  cli.run(["rehearse", "--ttl", "500ms"], { ...given(), env: { ...given().env, ...env } });

test.each([
  ["SIGINT", /\w is frozen while it holds/, 130],
  ["SIGTERM", /\w is killed while it holds/, 143],
] as const)("by %s a rehearsal ends, with its processes, and leaves no row", async (signal, when, code) => {
  const before = await tableInUse(scene);
  await using running = start();
  await running.says(when);
  running.kill(signal);
  // Its pipes are closed when all of its processes have ended.
  const { code: ended, stderr, stdout } = await running.ended;
  expect({ ended, stderr }).toEqual({
    ended: code,
    stderr: "dynamutex: interrupted; the row of the rehearsal is removed\n",
  });
  expect(stdout).not.toContain("###");
  expect(await rowsIn(scene)).toEqual(before);
});

test("a rehearsal whose reader has had enough goes on to its end, and leaves no row", async () => {
  const before = await tableInUse(scene);
  await cli.shell("dynamutex rehearse --ttl 200ms | head -1", given()).ended;
  expect(scene.proxy.requests.filter(({ operation }) => operation === "PutItem").length).toBeGreaterThan(30);
  expect(await rowsIn(scene)).toEqual(before);
});

test("a rehearsal that fails in the middle says why, and leaves no row", async () => {
  const before = await tableInUse(scene);
  await using running = start();
  await running.says(/\w is killed while it holds/);
  scene.proxy.on("PutItem", error("AccessDeniedException", "User: ada is not authorized"), { times: 1 });
  const { code, stdout } = await running.ended;
  expect(stdout).toMatch(/\| the rehearsal \| FAILED: [abc]: .*dynamodb:PutItem/);
  expect(stdout).toMatch(/\| its row \| passed: is removed \|/);
  expect(code).toBe(1);
  expect(await rowsIn(scene)).toEqual(before);
});

test("a rehearsal that fails before its processes have taken turns does not claim that they did", async () => {
  await using running = start();
  await running.says(/^seconds/m);
  scene.proxy.on("PutItem", error("AccessDeniedException", "User: ada is not authorized"), { times: 1 });
  const { code, stdout } = await running.ended;
  expect(stdout).toMatch(/\| never two at once \| not seen: \d sections /);
  expect(code).toBe(1);
});

describe("a rehearsal with credentials that lack what plain mutexes do without", () => {
  test.each([
    ["DescribeTable", "DescribeTable"],
    ["DescribeTimeToLive", "DescribeTimeToLive"],
    ["Query", "Query"],
    ["Scan", "Scan"],
    ["ConditionCheckItem", "TransactWriteItems"],
  ])("%s: it is played, names the permission, and ends with 1", async (action, operation) => {
    scene.proxy.on(operation, error("AccessDeniedException", "User: ada is not authorized"), FOREVER);
    const { code, stdout } = await run();
    expect(stdout).toContain(`\n| table and permissions | FAILED: dynamodb:${action} is missing |\n`);
    expect(stdout).toContain("\n| never two at once | passed: ");
    expect(code).toBe(1);
  });

  test("PartiQLUpdate: it is named, and all was as promised", async () => {
    scene.proxy.on("BatchExecuteStatement", error("AccessDeniedException", "User: ada is not authorized"), FOREVER);
    const { code, stdout } = await run();
    expect(stdout).toContain("| passed: dynamodb:PartiQLUpdate, which is optional, is missing |\n");
    expect(code).toBe(0);
  });
});

test("a rehearsal on an engine that lets two processes in says so, and ends with 1", async () => {
  const grants = rewriteReply((reply) => {
    const isRefused = /ConditionalCheckFailed/.test(reply.body.__type ?? "");
    return isRefused ? { ...withBody(reply, {}), status: 200 } : reply;
  });
  scene.proxy.on("PutItem", grants, { times: 200 });
  const { code, stdout } = await run();
  expect(stdout).toMatch(/\| never two at once \| FAILED: [abc] wrote \d+, and \d+ had been written \|/);
  expect(code).toBe(1);
});

test("a rehearsal where processes cannot be frozen says so, and plays the rest", async () => {
  const platform = `Object.defineProperty(process, "platform", { value: "win32" })`;
  const { code, stdout } = await run({ NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(platform)}` });
  expect(stdout).toContain("\n| after the freeze | not seen: processes cannot be frozen on win32 |\n");
  expect(stdout).toMatch(/\n\| after the kill \| passed: /);
  expect(code).toBe(0);
});
