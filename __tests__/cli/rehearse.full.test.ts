import { describe, expect, test } from "@jest/globals";
import { error, type RecordedRequest, rewriteReply, withBody } from "../support/fault-proxy.js";
import { blocksOf, pageAt } from "../support/pages.js";
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
const runLong = (...args: readonly string[]) => cli.run(["rehearse", "--ttl", "2s", ...args], given());

/** A report without what differs from run to run. */
const withoutFigures = (report: string): string =>
  report
    .replace(/(?<!Rehearsal of dynamutex .*)\d+(\.\d+)*( ms| s|ms|s)?\b/g, "N")
    .replace(/\b[abc] had the lock/g, "H had the lock")
    .replace(/resumed: [\w-]+/, "resumed: REASON")
    .replace(/, (linux|darwin); [\w-]+, /, ", OS; REGION, ");

const writtenBy = ({ operation, body }: RecordedRequest): string | undefined =>
  /^(Put|Update|Delete)Item$/.test(operation) ? (body.Item ?? body.Key)?.name?.S : undefined;

test("a rehearsal says what it will write, kills and freezes a holder, and reports that all was as promised", async () => {
  const before = await tableInUse(scene);
  const { code, stdout, stderr } = await runLong("--key-prefix", "app#");
  const [plan = "", report = ""] = stdout.split(/^seconds .*\n(?:.*\n)*?\n/m);
  const [, name] = /^ {2}(app#dynamutex#rehearsal#\S+)$/m.exec(plan) ?? [];
  const [, writes, reads] = /at most about \d+ requests: (\d+) write and\n(\d+) read units/.exec(plan) ?? [];
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatch(/^ +0\.000(?: {2}[·█]){3} {2}[abc] takes the lock\n/m);
  const picture = stdout.replace(/^.*takes the lock\n/gm, "");
  expect(picture).toMatch(
    /([abc]) is killed while it holds the lock .*\n.*([abc]) is frozen while it .*\n.*\2 resumes .*\n.*\2 learns that it has lost /,
  );
  const shown = blocksOf(pageAt("docs/guides/cli.md")).find(({ text }) => text.startsWith("### Rehearsal"))?.text ?? "";
  expect(withoutFigures(report)).toBe(withoutFigures(shown));
  expect(report).not.toContain(scene.tableName);
  // It wrote what it had said, and what check() tries.
  const written = new Set(scene.proxy.requests.map(writtenBy).filter((each) => each !== undefined));
  expect([...written].sort()).toEqual(["app#dynamutex#check", name]);
  const [, usedWrites, usedReads] = /(\d+) write units, ([\d.]+) read units/.exec(report) ?? [];
  expect(Number(usedWrites)).toBeLessThanOrEqual(Number(writes));
  expect(Number(usedReads)).toBeLessThanOrEqual(Number(reads));
  expect(await rowsIn(scene)).toEqual(before);
});

test("--dry-run says what a rehearsal would write and cost, and sends nothing", async () => {
  const { code, stdout } = await runLong("--dry-run");
  expect(stdout).toMatch(
    /^A rehearsal on table .*\n\n {2}dynamutex#rehearsal#\S+\n(.*\n)+.* dollars at 0\.625 and 0\.125 /,
  );
  expect({ code, requests: scene.proxy.requests.length }).toEqual({ code: 0, requests: 0 });
});

describe("a rehearsal with credentials that may not", () => {
  test.each(["GetItem", "PutItem", "UpdateItem", "DeleteItem"])(
    "%s names the permission, writes nothing, and ends with 1",
    async (action) => {
      scene.proxy.on(action, error("AccessDeniedException", "User: ada is not authorized"), FOREVER);
      const before = await tableInUse(scene);
      const { code, stdout } = await runLong();
      expect(stdout).toContain(
        `\n| table and permissions | FAILED: dynamodb:${action} is missing; nothing else was tried |\n`,
      );
      expect(stdout).toMatch(new RegExp(`^error: .*dynamodb:${action}\\b`, "m"));
      expect(code).toBe(1);
      expect(await rowsIn(scene)).toEqual(before);
    },
  );
});

test.each([
  [["--table", ""], /no table is named/],
  [["--ttl", "5"], /Give a number and a unit/],
  [["--ttl", "10ms"], /^dynamutex: --ttl: must be at least 100 ms/],
  [["--ttl", "1s", "more"], /too many arguments/],
])("%j is refused with 125, and sends nothing", async (args, complaint) => {
  const { code, stdout, stderr } = await runLong(...args);
  expect({ code, stdout, stderr }).toEqual({ code: 125, stdout: "", stderr: expect.stringMatching(complaint) });
  expect(scene.proxy.requests).toHaveLength(0);
});

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
