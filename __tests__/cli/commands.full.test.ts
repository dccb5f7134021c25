import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DeleteTableCommand } from "@aws-sdk/client-dynamodb";
import { afterAll, describe, expect, test } from "@jest/globals";
import { blocksOf, pageAt } from "../support/pages.js";
import { rowOf, useScene } from "../support/scene.js";
import { testClient } from "../support/table.js";
import { useInstalledCli } from "./installed-cli.js";

const scene = useScene();
const cli = useInstalledCli();
const client = testClient();

const command = (...args: readonly string[]) => cli.run(args, { env: { DYNAMUTEX_TABLE: scene.tableName } });

describe("inspect", () => {
  test("shows every kind of lock under a name and who waits; 0 if one is held, 1 if none is", async () => {
    await using locks = scene.host({ owner: "web-1#4711" });
    const mutex = locks.mutex(scene.name, { fair: true });
    await using _permit = await locks.semaphore(scene.name, { permits: 2 }).lock();
    await using _shared = await locks.sharedMutex(scene.name).shared.lock();
    const lock = await mutex.lock({ data: { version: "1.4.2" } });
    await using others = scene.host({ owner: "web-2#815" });
    const waiting = others.mutex(scene.name, { fair: true }).lock();
    while ((await mutex.inspect())?.waiters.length !== 1);
    const [shown, json] = await Promise.all([command("inspect", scene.name), command("inspect", scene.name, "--json")]);
    const free = await command("inspect", "free");
    await lock.unlock();
    await (await waiting).unlock();
    expect(shown.code).toBe(0);
    expect(shown.stdout.match(/: .*, held$/gm)).toEqual([": mutex, held", ": semaphore, held", ": shared, held"]);
    expect(shown.stdout).toContain(`  uuid     ${lock.uuid}\n`);
    expect(shown.stdout).toMatch(/ {2}data {5}\{"version":"1.4.2"\}\n/);
    expect(shown.stdout).toMatch(/ {2}waits {4}web-2#815, for mutex, since /);
    expect(json).toMatchObject({ code: 0, stderr: "" });
    expect(JSON.parse(json.stdout)).toMatchObject({
      name: scene.name,
      locks: [{ kind: "mutex", uuid: lock.uuid, waiting: 1 }, { kind: "semaphore" }, { kind: "shared" }],
      waiters: [{ kind: "mutex", owner: "web-2#815", sections: 1 }],
    });
    expect(free).toMatchObject({ code: 1, stdout: "free is free: nothing is recorded under this name\n" });
  });

  test("a lock whose holder has died is free to take, and shown", async () => {
    await scene.put(rowOf({ expires: Date.now() - 60_000 }));
    const { code, stdout } = await command("inspect", scene.name);
    expect({ code, stdout }).toEqual({ code: 1, stdout: expect.stringMatching(/: mutex, expired\n(.*\n)* .* ago\n/) });
  });
});

test("inspect and ls --include-free say when a tick was run last, by whom, and whether it has succeeded", async () => {
  const owner = "web-1#4711";
  await using locks = scene.host({ owner });
  const [plain, done, due] = ["plain", "done", "due"].map((name) => `${scene.name}-${name}`) as [
    string,
    string,
    string,
  ];
  await locks.mutex(plain).tryRun(() => undefined, { once: 7 });
  await locks.mutex(done).tryRun(() => undefined, { once: 7, untilSuccess: true as const });
  const failing = { once: 7, untilSuccess: true as const };
  await locks
    .mutex(due)
    .tryRun(() => Promise.reject(new Error("failed")), failing)
    .catch(() => undefined);
  const shown = await Promise.all([plain, done, due].map((name) => command("inspect", name)));
  expect(shown.map(({ code }) => code)).toEqual([1, 1, 1]);
  const ran = /\n {2}tick {5}7\n {2}last run by web-1#4711, from \S+Z; (.*)\n/;
  expect(shown.map(({ stdout }) => ran.exec(stdout)?.[1])).toEqual([
    "only untilSuccess records whether it succeeded",
    "the tick has succeeded",
    "the tick is due until it succeeds",
  ]);
  expect(shown.some(({ stdout }) => stdout.includes("1970"))).toBe(false);
  const { stdout } = await command("ls", "--include-free", "--prefix", scene.name);
  const lines = stdout
    .trim()
    .split("\n")
    .map((line) => line.split(/ {2,}/));
  expect(lines[0]?.at(-1)).toBe("LAST RUN");
  const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/;
  expect(lines.slice(1).map((cells) => cells.at(-1)?.replace(time, "TIME"))).toEqual([
    "TIME succeeded",
    "TIME due",
    "TIME",
  ]);
  expect((await command("ls", "--prefix", scene.name)).stdout).not.toContain("LAST RUN");
});

test("no command lets control characters of a row or of an argument through, not even in JSON or with DEBUG", async () => {
  const bad = "\u001b[2J\u0007\u007f\u009b31m";
  const name = `${scene.name}${bad}`;
  await scene.put(rowOf({ owner: bad, uuid: bad, data: { [bad]: bad } }), name);
  const lines: readonly (readonly string[])[] = [
    ["ls"],
    ["ls", "--json"],
    ["inspect", name],
    ["inspect", "--json", name],
    ["inspect", `${name}free`],
    ["run", "--no-wait", name, "--", "true"],
    ["run", "--wait", "1ms", name, "--", "true"],
    ["run", "--once", bad, name, "--", "true"],
    ["run", name, "--", bad],
    ["unlock", name, "--uuid", `${bad}?`, "--yes"],
    ["unlock", name, "--force", "--yes", bad],
    ["unlock", name, "--force", "--yes"],
  ];
  for (const line of lines) {
    const { stdout, stderr } = await cli.run(line, { env: { DYNAMUTEX_TABLE: scene.tableName, DEBUG: "1" } });
    const through = `${stdout}${stderr}`.match(/[^\P{Cc}\n]/gu);
    expect({ line, through, isSilent: `${stdout}${stderr}` === "" }).toEqual({ line, through: null, isSilent: false });
  }
});

describe("unlock", () => {
  test("without a terminal it needs --yes; it ends the acquisition that is named, and no other", async () => {
    await scene.put(rowOf());
    const refused = await command("unlock", scene.name, "--uuid", "somebody-else");
    const other = await command("unlock", scene.name, "--uuid", "another", "--yes");
    const both = await command("unlock", scene.name, "--uuid", "somebody-else", "--force", "--yes");
    expect((await scene.row())?.uuid).toBe("somebody-else");
    const done = await command("unlock", scene.name, "--uuid", "somebody-else", "--yes");
    expect(refused).toMatchObject({ code: 125, stderr: expect.stringMatching(/no terminal to ask on: give --yes/) });
    expect(other).toMatchObject({ code: 1, stderr: expect.stringMatching(/another does not hold lock-/) });
    expect(both).toMatchObject({ code: 125, stderr: expect.stringMatching(/give either --uuid U, .* or --force/) });
    expect(done).toMatchObject({ code: 0, stdout: expect.stringMatching(/^unlocked lock-\d+: free in \d+/) });
    const row = await scene.row();
    expect(row).toMatchObject({ owner: "elsewhere#1" });
    expect(row).not.toHaveProperty("uuid");
  });

  test("--force ends whoever holds it, --now frees it at once; of several holders one must be chosen", async () => {
    await scene.put(rowOf());
    const forced = await command("unlock", scene.name, "--force", "--now", "--yes");
    expect(forced).toMatchObject({ code: 0, stdout: expect.stringMatching(/: free now\n$/) });
    expect(await command("inspect", scene.name)).toMatchObject({ code: 1 });
    await using locks = scene.host();
    const permits = locks.semaphore(scene.name, { permits: 3 });
    const first = await permits.lock({ permits: 2 });
    const second = await permits.lock();
    const [several, one] = [
      await command("unlock", scene.name, "--force", "--yes"),
      await command("unlock", scene.name, "--uuid", second.uuid, "--yes"),
    ];
    expect(several).toMatchObject({ code: 125, stderr: expect.stringContaining("has 2 holders") });
    expect(one).toMatchObject({ code: 0 });
    await expect(second.unlock()).rejects.toMatchObject({ reason: "forced" });
    const shown = await command("inspect", scene.name);
    expect(shown.stdout).toMatch(new RegExp(`permits +${first.permits.join(", ")}\n`));
    expect(await command("unlock", scene.name, "--force", "--yes")).toMatchObject({ code: 0 });
    await expect(first.unlock()).rejects.toMatchObject({ reason: "forced" });
  });
});

describe("the table", () => {
  const tableName = `test-${randomUUID()}`;
  afterAll(() => client.send(new DeleteTableCommand({ TableName: tableName })));
  const onTable = (...args: readonly string[]) => cli.run([...args, "--table", tableName, "--keys", "pk,sk,ttl"]);

  test("check says what is wrong and create-table sets it right; no other command does", async () => {
    const [missing, listed] = await Promise.all([onTable("check"), onTable("ls")]);
    const created = await onTable("create-table");
    const [usable, mismatch] = await Promise.all([onTable("check"), cli.run(["create-table", "--table", tableName])]);
    expect(missing).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^error: .*`dynamutex create-table --table /),
    });
    expect(missing.stdout).toMatch(/\ntable .*: locks do not work on it\n$/);
    expect(listed).toMatchObject({ code: 125, stderr: expect.stringMatching(/create-table/) });
    expect(created).toMatchObject({ code: 0, stdout: `table ${tableName} is ready\n` });
    expect(usable).toMatchObject({ code: 0, stdout: `table ${tableName}: usable, on-demand, with a sort key\n` });
    expect(mismatch).toMatchObject({ code: 125, stderr: expect.stringMatching(/does not fit: .*give --keys/) });
  });

  test("create-table --print gives the definitions of docs/guides/table.md, and with other keys those", async () => {
    const print = (format: string, ...args: readonly string[]) =>
      cli.run(["create-table", "--table", "locks", "--print", format, ...args]);
    const [cloudformation, terraform, cdk, other] = await Promise.all([
      print("cloudformation"),
      print("terraform"),
      print("cdk"),
      print("cloudformation", "--keys", "yes,,on"),
    ]);
    const blockOf = (language: string) =>
      blocksOf(pageAt("docs/guides/table.md")).find((block) => block.language === language)?.text;
    expect(cloudformation.stdout).toBe(blockOf("yaml"));
    expect(terraform.stdout).toBe(blockOf("hcl"));
    expect(cdk.stdout).toMatch(/new dynamodb\.Table\(this, "Locks", \{\n {2}tableName: "locks",\n/);
    expect(cdk.stdout).toMatch(/sortKey: \{ name: "sort", type: dynamodb\.AttributeType\.STRING \},\n/);
    expect(other.stdout).toMatch(/\{ AttributeName: "yes", KeyType: HASH \}\n {6}TimeToLive.*"on"/);
  });
});

describe("the prompt", () => {
  test("help and version load neither the library nor the AWS SDK: they work where those are not there, and are quick", async () => {
    const alone = await mkdtemp(join(tmpdir(), "dynamutex-alone-"));
    await cp(join(cli.bin, "..", "dynamutex"), alone, { recursive: true });
    const program = join(alone, "dist", "cli", "main.js");
    const ask = (...args: readonly string[]) =>
      execFileSync(process.execPath, [program, ...args], { encoding: "utf8", stdio: "pipe" });
    // Most of it is the parser of arguments.
    expect(textLoadedBy(program).length).toBeLessThan(70_000);
    expect(ask("--help")).toMatch(/^Usage: dynamutex /);
    expect(ask("run", "--help")).toMatch(/\nExamples:\n {2}\$ /);
    expect(ask("--version")).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect(() => ask("ls", "--table", "locks")).toThrow(/Cannot find package '@aws-sdk/);
    await rm(alone, { recursive: true });
  });
});

/** The text of a file that was built, and of all that it imports before it runs. */
function textLoadedBy(file: string): string {
  const text = readFileSync(file, "utf8");
  const imports = [...text.matchAll(/(?:from|import)"(\.[^"]+)"/g)];
  return text + imports.map(([, path = ""]) => textLoadedBy(join(dirname(file), path))).join("");
}
