import { describe, expect, test } from "@jest/globals";
import { error, type RecordedRequest } from "../support/fault-proxy.js";
import { blocksOf, pageAt } from "../support/pages.js";
import { useScene } from "../support/scene.js";
import { useInstalledCli } from "./installed-cli.js";
import { rowsIn, tableInUse } from "./rehearsed-table.js";

const scene = useScene();
const cli = useInstalledCli();
const FOREVER = { times: Number.POSITIVE_INFINITY };

const given = () => ({ env: { DYNAMUTEX_TABLE: scene.tableName }, endpoint: scene.proxy.endpoint });
const run = (...args: readonly string[]) => cli.run(["rehearse", "--ttl", "2s", ...args], given());

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
  const { code, stdout, stderr } = await run("--key-prefix", "app#");
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
  const { code, stdout } = await run("--dry-run");
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
      const { code, stdout } = await run();
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
  const { code, stdout, stderr } = await run(...args);
  expect({ code, stdout, stderr }).toEqual({ code: 125, stdout: "", stderr: expect.stringMatching(complaint) });
  expect(scene.proxy.requests).toHaveLength(0);
});
