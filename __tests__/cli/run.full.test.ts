import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DeleteItemCommand } from "@aws-sdk/client-dynamodb";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { processState } from "../support/host-process.js";
import { rowOf, useScene } from "../support/scene.js";
import { createTestTable, testClient } from "../support/table.js";
import { SECTION, useInstalledCli } from "./installed-cli.js";

const scene = useScene();
const cli = useInstalledCli();

const onTable = () => ({ env: { DYNAMUTEX_TABLE: scene.tableName }, endpoint: scene.proxy.endpointFor("cli") });
const run = (...args: readonly string[]) => cli.run(["run", ...args], onTable());
const start = (...args: readonly string[]) => cli.start(["run", ...args], onTable());

/** The row while the lock is held; after a release it has no uuid. */
const holder = async () => (await scene.row())?.uuid;

describe("the command under the lock", () => {
  test("gets its arguments as they are, the streams, and what the lock is in its environment; the lock is released", async () => {
    const program = `process.stdin.pipe(process.stdout); console.error(JSON.stringify([process.argv.slice(1), process.env]))`;
    const running = start("--every", "1h", scene.name, "--", process.execPath, "-e", program, "--", "$HOME; 'x'", "-l");
    running.type("through stdin\n");
    running.endInput();
    const { code, stdout, stderr } = await running.ended;
    const [args, env] = JSON.parse(stderr);
    const row = await scene.row();
    expect({ code, stdout, args }).toEqual({ code: 0, stdout: "through stdin\n", args: ["$HOME; 'x'", "-l"] });
    expect(env).toMatchObject({
      DYNAMUTEX_NAME: scene.name,
      DYNAMUTEX_UUID: expect.stringMatching(/^[0-9a-f-]{36}$/),
      DYNAMUTEX_FENCING_TOKEN: String(row?.fence),
      DYNAMUTEX_TICK: String(row?.tick),
    });
    expect(Number(env.DYNAMUTEX_TICK) % 3_600_000).toBe(0);
    expect(env).not.toHaveProperty("AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED");
    expect(row).toMatchObject({ expires: 0 });
  });

  test("has a permit's number in the place of a token", async () => {
    const { stdout, code } = await run("--permits", "2", scene.name, "--", "sh", "-c", "env | grep DYNAMUTEX_ | sort");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^DYNAMUTEX_NAME=.*\nDYNAMUTEX_PERMIT=[01]\nDYNAMUTEX_TABLE=.*\nDYNAMUTEX_UUID=.*\n$/);
  });

  test("holds several permits, all or none", async () => {
    const env = ["sh", "-c", "env | grep DYNAMUTEX_PERMIT | sort"];
    const several = await run("--permits", "2", "--take", "2", scene.name, "--", ...env);
    expect(several).toMatchObject({ code: 0, stdout: "DYNAMUTEX_PERMIT=0\nDYNAMUTEX_PERMITS=0 1\n" });
    await using holding = start("--permits", "2", scene.name, "--", "sh", "-c", "echo held; exec sleep 60");
    await holding.says(/held/);
    const busy = await run("--permits", "2", "--take", "2", "--no-wait", scene.name, "--", "echo", "ran");
    expect(busy).toMatchObject({ code: 75, stdout: "" });
  });

  test("begins no sooner than --per allows, and says of what is kept until when, and who had it", async () => {
    const begin = () => run("--permits", "1", "--per", "1m", "--no-wait", scene.name, "--", "echo", "ran");
    expect(await begin()).toMatchObject({ code: 0, stdout: "ran\n" });
    expect(await begin()).toMatchObject({ code: 75, stdout: "", stderr: expect.stringContaining("until") });
  });

  test("is ended by a signal: 128 and its number is the exit code", async () => {
    expect(await run(scene.name, "--", "sh", "-c", "kill -KILL $$")).toMatchObject({ code: 137, stderr: "" });
    expect(await holder()).toBeUndefined();
  });

  test("is told of every signal that this one is sent, holds the lock until it ends, and has the last word", async () => {
    const running = start(scene.name, "--", ...SECTION, "SIGTERM");
    await running.says(/began/);
    for (const signal of ["SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const) {
      running.kill(signal);
      await running.says(new RegExp(`got ${signal}\n`));
    }
    expect(await holder()).toBeDefined();
    running.kill("SIGTERM");
    const { code, stdout, stderr } = await running.ended;
    expect({ code, stderr }).toEqual({ code: 7, stderr: "" });
    expect(stdout.match(/got /g)).toHaveLength(6);
    expect(await holder()).toBeUndefined();
  });

  test("what it has started is sent each signal as well, and the lock is held until that has ended too", async () => {
    const running = start(scene.name, "--", "sh", "-c", `${SECTION.join(" ")} SIGUSR2; true`);
    await running.says(/began/);
    running.kill("SIGTERM"); // ends the shell
    await running.says(/got SIGTERM/);
    const renewed = scene.proxy.next({ operation: "UpdateItem" });
    await renewed;
    expect(await holder()).toBeDefined();
    running.kill("SIGUSR2");
    const { code, stdout } = await running.ended;
    expect({ code, stdout }).toEqual({ code: 143, stdout: expect.stringMatching(/got SIGUSR2\n$/) });
    expect(await holder()).toBeUndefined();
  });

  test("what it leaves behind when it ends by itself does not keep the lock", async () => {
    await using running = start(scene.name, "--", "sh", "-c", `${SECTION.join(" ")} & read line`);
    const [, pid] = await running.says(/began (\d+)/);
    running.type("go on\n");
    expect(await running.exited).toBe(0);
    expect(await holder()).toBeUndefined();
    expect(processState(Number(pid))).not.toBe("gone");
    process.kill(Number(pid), "SIGKILL");
  });

  test("goes on without a lock if this one is killed; the lock is free when the lease ends", async () => {
    await using running = start("--ttl", "2s", scene.name, "--", ...SECTION);
    const [, pid] = await running.says(/began (\d+)/);
    const first = await holder();
    running.kill("SIGKILL");
    const second = await run("--wait", "30s", scene.name, "--", "true");
    const state = processState(Number(pid));
    process.kill(Number(pid), "SIGKILL");
    expect(second).toMatchObject({ code: 0 });
    expect(first).toBeDefined();
    expect(["R", "S", "D"]).toContain(state);
  });
});

test("a tick is run until its command exits with 0, or N runs have begun: none that could not be started", async () => {
  const tick = ["--once", "1", "--until-success=2", scene.name, "--"] as const;
  const exits = (code: number) => run(...tick, "sh", "-c", `echo "attempt $DYNAMUTEX_ATTEMPT"; exit ${code}`);
  expect(await exits(3)).toMatchObject({ code: 3, stdout: "attempt 1\n" });

  await cli.put("goes-away", "#!/bin/sh\n");
  const hold = scene.proxy.hold("GetItem");
  const running = start(...tick, "./goes-away");
  await hold.arrived;
  await cli.removeFile("goes-away");
  hold.release();
  expect(await running.ended).toMatchObject({ code: 127, stderr: expect.stringMatching(/could not be started/) });

  // A script that has run, and then missed a program: it counts.
  expect(await exits(127)).toMatchObject({ code: 127, stdout: "attempt 2\n" });
  const gaveUp = { code: 75, stderr: expect.stringMatching(/: tick 1 was run 2 times, and none succeeded/) };
  expect(await exits(0)).toMatchObject(gaveUp);

  const next = ["--once", "2", "--until-success", "--ttl", "10s", scene.name, "--", "true"] as const;
  expect(await run(...next)).toMatchObject({ code: 0, stderr: "" });
  const done = { code: 75, stderr: expect.stringMatching(/: tick 2 has succeeded, attempt 1/) };
  expect(await run(...next)).toMatchObject(done);
});

describe("a lock that is lost", () => {
  test.each([
    ["", []],
    [" also of a tick that is run until it succeeds", ["--once", "1", "--until-success"]],
  ])("ends the command: TERM, and exit code 124%s", async (_, options) => {
    const running = start(...options, "--ttl", "2s", scene.name, "--", ...SECTION, "SIGTERM");
    await running.says(/began/);
    await scene.remove();
    const { code, stdout, stderr } = await running.ended;
    expect({ code, stdout }).toEqual({ code: 124, stdout: expect.stringMatching(/^began .*\ngot SIGTERM\n$/) });
    expect(stderr).toMatch(
      /^dynamutex: Lock "lock-\d+" was lost: its row was deleted by somebody else; .* is told to end\n$/,
    );
  });

  test.each([
    ["and waits for it", [], "SIGTERM"],
    ["and kills it if it ignores TERM", ["--kill-after", "50ms"], ""],
  ])("trap 42: ends what the command has started as well, %s", async (_, options, endsAt) => {
    const line = `${SECTION.join(" ")} ${endsAt}; true`;
    const running = start("--ttl", "2s", ...options, scene.name, "--", "sh", "-c", line);
    const [, pid] = await running.says(/began (\d+)/);
    await scene.remove();
    const code = await running.exited;
    const state = processState(Number(pid));
    // One that goes on would hold the pipes, and so this file would never end.
    if (state !== "gone") process.kill(Number(pid), "SIGKILL");
    expect({ code, state }).toEqual({ code: 124, state: "gone" });
    expect((await running.ended).stdout).toMatch(/got SIGTERM\n$/);
  });

  test("is told by 124 as soon as the command is gone, though a daemon of its own holds the pipes", async () => {
    const line = `setsid ${SECTION.join(" ")} & wait`;
    await using running = start("--ttl", "2s", scene.name, "--", "sh", "-c", line);
    const [, pid] = await running.says(/began (\d+)/);
    await scene.remove();
    expect(await running.exited).toBe(124);
    expect(processState(Number(pid))).not.toBe("gone");
    process.kill(Number(pid), "SIGKILL");
  });

  test("ends the command although nobody reads what is said of it: stderr is a full pipe", async () => {
    const fill = "mkfifo full && exec 3<>full && head -c 65536 /dev/zero >&3";
    const line = `${fill} && exec dynamutex run --ttl 2s ${scene.name} -- ${SECTION.join(" ")} SIGTERM 2>&3`;
    await using running = cli.shell(line, onTable());
    await running.says(/began/);
    await scene.remove();
    await running.says(/got SIGTERM/);
    running.kill("SIGKILL");
  });

  test("without the table: a command that ignores TERM is killed before another host gets the lock", async () => {
    const running = start("--ttl", "2s", "--kill-after", "50ms", scene.name, "--", ...SECTION);
    const [, pid] = await running.says(/began (\d+)/);
    scene.proxy.partition("cli");
    // What it finds says whether the first one still ran when it got the lock.
    const look = `test -d /proc/${pid} && grep -q '^State:.[^ZX]' /proc/${pid}/status && echo beside || echo alone`;
    const other = cli.start(["run", scene.name, "--", "sh", "-c", look], {
      ...onTable(),
      endpoint: scene.proxy.endpointFor("other"),
    });
    const [first, second] = [await running.ended, await other.ended];
    expect(first).toMatchObject({ code: 124, stdout: expect.stringMatching(/got SIGTERM\n$/) });
    expect(second).toMatchObject({ code: 0, stdout: "alone\n" });
  });
});

describe("a lock that is not to be had", () => {
  test("held: 75 with who has it, or the code that was asked for; 0 says nothing", async () => {
    await scene.put(rowOf({ owner: "web-1#4711" }));
    const [tried, waited, quiet] = await Promise.all([
      run("--no-wait", scene.name, "--", "echo", "ran"),
      run("--wait", "100ms", scene.name, "--", "echo", "ran"),
      run("--no-wait", "--busy-code", "0", scene.name, "--", "echo", "ran"),
    ]);
    const busy = (said: RegExp) => ({ code: 75, stdout: "", stderr: expect.stringMatching(said) });
    expect(tried).toMatchObject(busy(/is held by web-1#4711, .*\n$/));
    expect(waited).toMatchObject(busy(/was not free within/));
    expect(quiet).toMatchObject({ code: 0, stdout: "", stderr: "" });
  });

  test("trap 54: a table that does not answer: 125 and the reason, never the code for a busy lock", async () => {
    scene.proxy.partition(undefined, "hang");
    const { code, stdout, stderr } = await run("--wait", "100ms", "--busy-code", "0", scene.name, "--", "echo", "ran");
    expect({ code, stdout }).toEqual({ code: 125, stdout: "" });
    expect(stderr).toMatch(/^dynamutex: No answer from the table within \d+ ms: .*\n$/);
  });

  const HELD =
    /^dynamutex: waiting for lock "lock-\d+", which is held by web-1#4711, since \S+Z; its lease runs until .*\n$/;

  test.each<[string, readonly string[], boolean, RegExp]>([
    ["a mutex", [], true, HELD],
    ["a permit", ["--permits", "1"], true, HELD],
    [
      "a blocked mutex",
      ["--fair"],
      false,
      /^dynamutex: waiting for lock .*, which has no holder and stays taken until .*\n$/,
    ],
  ])(
    "a wait of 2 s for %s says once for whom, and since when; with --busy-code 0 it says nothing",
    async (_, options, isHeld, said) => {
      const sort = options[0] === "--permits" ? "semaphore#0000" : "lock";
      const { uuid, ...row } = rowOf({ owner: "web-1#4711" });
      await scene.put({ ...row, ...(isHeld && { uuid }), sort });
      const [telling, quiet] = [[], ["--busy-code", "0"]].map((more) =>
        start(...options, ...more, scene.name, "--", "true"),
      );
      await telling?.says(/waiting/, "stderr");
      const free = { TableName: scene.tableName, Key: { name: { S: scene.name }, sort: { S: sort } } };
      await testClient().send(new DeleteItemCommand(free));
      expect(await telling?.ended).toMatchObject({ code: 0, stderr: expect.stringMatching(said) });
      expect(await quiet?.ended).toMatchObject({ code: 0, stderr: "" });
    },
  );

  test("a tick that was granted before: 75; --at-least: still taken", async () => {
    const once = () => run("--once", "2026-05-04T10:00Z", "--at-least", "1h", scene.name, "--", "echo", "ran");
    expect(await once()).toMatchObject({ code: 0, stdout: "ran\n" });
    expect(await scene.row()).toMatchObject({ tick: Date.UTC(2026, 4, 4, 10) });
    const done = /already granted for this tick.* the last one granted is 2026-05-04T10:00:00\.000Z, to /;
    expect(await once()).toMatchObject({ code: 75, stderr: expect.stringMatching(done) });
    const inspected = await cli.run(["inspect", scene.name], onTable());
    expect(inspected.stdout).toMatch(/\n {2}tick {5}2026-05-04T10:00:00\.000Z\n/);
    const other = await run("--no-wait", scene.name, "--", "true");
    expect(other).toMatchObject({ code: 75, stderr: expect.stringMatching(/has no holder and stays taken until/) });
  });

  test.each([
    ["SIGTERM", 143],
    ["SIGINT", 130],
  ] as const)("%s while it waits ends it, and leaves nothing in the table", async (signal, code) => {
    await scene.put(rowOf());
    const looks = scene.proxy.next({ operation: "Query" });
    const running = start("--fair", scene.name, "--", "echo", "ran");
    await looks;
    await scene.proxy.next({ operation: "Query" });
    running.kill("SIGUSR1"); // is for the command, and there is none yet
    running.kill(signal);
    expect(await running.ended).toEqual({ code, signal: null, stdout: "", stderr: "" });
    await using locks = scene.host();
    expect(await locks.mutex(scene.name, { fair: true }).inspect()).toMatchObject({
      uuid: "somebody-else",
      waiters: [],
    });
  });
});

describe("what cannot work", () => {
  beforeAll(async () => {
    await cli.put("no-interpreter", "#!/no/such/interpreter -x\n");
    await cli.put("carriage-return", "#!/bin/sh\r\ntrue\r\n");
    await cli.put("no-program", "#!/usr/bin/env -S no-such-program --flag\n");
    await cli.put("forbidden", "#! /etc/passwd\n");
    await cli.put("works", "#!/usr/bin/env -S NAME=1 sh\nexit 3\n");
  });

  test("a script by way of env is none of these", async () => {
    expect(await run(scene.name, "--", "./works")).toMatchObject({ code: 3, stderr: "" });
  });

  test.each<[string, readonly string[], number, RegExp]>([
    ["no such command", ["--once", "1", "NAME", "--", "no-such-command"], 127, /no-such-command was not found: /],
    ["a folder", ["NAME", "--", "/"], 126, /\/ cannot be executed: it is a folder/],
    ["a text as a tick", ["--once", "v1.2", "NAME", "--", "true"], 125, /a date with its zone.*part of NAME/],
    ["a lease that is too short", ["--ttl", "1ms", "NAME", "--", "true"], 125, /: --ttl: must be at least 100 ms/],
    [
      "a KILL behind the margin",
      ["--kill-after", "3s", "NAME", "--", "true"],
      125,
      /: --kill-after 3s must be less than/,
    ],
    ["no --", ["NAME", "ls", "-l"], 125, /put -- before the command/],
    ["a name that is an option", ["--fair", "--", "echo", "ran"], 125, /missing .*'name': .* one NAME before --/],
    ["a name that takes a value", ["--wait", "--", "echo", "ran"], 125, /argument missing: .* one NAME before --/],
    [
      "a name that is unknown",
      ["--what", "--", "echo", "ran"],
      125,
      /unknown option '--what'.*: .* one NAME before --/,
    ],
    ["a name that asks for help", ["--help", "--", "echo", "ran"], 125, /option '--help': .* one NAME before --/],
    [
      "a name that is taken for a number",
      ["--once", "1", "--until-success", "NAME", "--", "echo", "ran"],
      125,
      /Write --until-success=N, or another option between it and NAME/,
    ],
    ["two names", ["NAME", "x", "--", "echo", "ran"], 125, /too many arguments.*: .* one NAME before --/],
    ["no command", ["NAME", "--"], 125, /no command behind --/],
    [
      "a script without its interpreter",
      ["--once", "1", "NAME", "--", "./no-interpreter"],
      127,
      /\/no\/such.* not found/,
    ],
    [
      "a script of Windows",
      ["NAME", "--", "./carriage-return"],
      127,
      /\/bin\/sh\\r was not found: .* ends its lines with \\r/,
    ],
    ["a script for a missing program", ["NAME", "--", "./no-program"], 127, /no-such-program was not found/],
    ["a script of a forbidden one", ["NAME", "--", "./forbidden"], 126, /cannot be executed/],
  ])("%s is refused in one line, and nothing is asked of the table", async (_, args, code, complaint) => {
    const ended = await run(...args.map((arg) => (arg === "NAME" ? scene.name : arg)));
    expect(ended).toMatchObject({ code, stdout: "" });
    expect(ended.stderr).toMatch(/^dynamutex: .*\n$/);
    expect(ended.stderr).toMatch(complaint);
    expect(scene.proxy.count()).toBe(0);
  });

  test("a command that goes away while the lock is waited for: 127, and the lock is released", async () => {
    await scene.put(rowOf());
    await cli.put("goes-away", "#!/bin/sh\n");
    const looks = scene.proxy.next({ operation: "GetItem" });
    const running = start(scene.name, "--", "./goes-away");
    await looks;
    await cli.removeFile("goes-away");
    await scene.remove();
    const { code, stderr } = await running.ended;
    expect({ code, stderr }).toEqual({ code: 127, stderr: expect.stringMatching(/could not be started: .*ENOENT/) });
    expect(await holder()).toBeUndefined();
  });

  test("a table that is not there: 125 with the remedy, and a stack with DEBUG only", async () => {
    const options = { env: { DYNAMUTEX_TABLE: "no-such-table" } };
    const [plain, debug, unnamed] = await Promise.all([
      cli.run(["run", scene.name, "--", "echo", "ran"], options),
      cli.run(["run", scene.name, "--", "echo", "ran"], { env: { ...options.env, DEBUG: "1" } }),
      cli.run(["run", scene.name, "--", "echo", "ran"], { env: { DYNAMUTEX_TABLE: undefined } }),
    ]);
    expect(plain).toMatchObject({ code: 125, stdout: "" });
    expect(plain.stderr).toMatch(
      /^dynamutex: .*table no-such-table does not exist.* `dynamutex create-table --table no-such-table` creates it.*\n$/,
    );
    expect(debug.stderr).toMatch(/\n {4}at /);
    expect(unnamed.stderr).toBe("dynamutex: no table is named: give --table NAME, or set DYNAMUTEX_TABLE\n");
  });
});

test("a table with other keys and a prefix is reached by options or by the environment", async () => {
  const tableName = await createTestTable({ sortKey: false });
  const at = ["--table", tableName, "--keys", "name", "--key-prefix", "app/"];
  const locked = await cli.run(["run", ...at, "--every", "1h", "a", "--", "true"]);
  const env = { DYNAMUTEX_TABLE: tableName, DYNAMUTEX_KEYS: "name", DYNAMUTEX_KEY_PREFIX: "app/" };
  const [listed, permits] = await Promise.all([
    cli.run(["ls", "--include-free", "--json"], { env }),
    cli.run(["run", "--permits", "2", "a", "--", "true"], { env }),
  ]);
  expect(locked).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.parse(listed.stdout)).toMatchObject([{ name: "a", state: "free" }]);
  expect(permits).toMatchObject({ code: 125, stderr: expect.stringMatching(/--keys: must be the name of a sort key/) });
});

describe("several at once", () => {
  let log = "";
  beforeEach(async () => {
    log = join(await mkdtemp(join(tmpdir(), "dynamutex-log-")), "log");
    await writeFile(log, "");
  });
  afterEach(() => rm(dirname(log), { recursive: true, force: true }));
  const logged = async () => (await readFile(log, "utf8")).trim().split("\n");

  test("three hosts with the same crontab line: every tick once", async () => {
    const job = `dynamutex run --every 1s --busy-code 0 ${scene.name} -- sh -c 'echo $DYNAMUTEX_TICK >>${log}'`;
    // Until there are four runs: cron would start it at every tick, and this does all the time.
    const host = `while test "$(wc -l <${log})" -lt 4; do ${job} || exit; done`;
    const hosts = await Promise.all([1, 2, 3].map(() => cli.shell(host, onTable()).ended));
    const ticks = (await logged()).map(Number);
    expect(hosts).toEqual(hosts.map(() => ({ code: 0, signal: null, stdout: "", stderr: "" })));
    expect(ticks.length).toBeGreaterThanOrEqual(4);
    expect(ticks).toEqual([...new Set(ticks)].sort((a, b) => a - b));
  });

  test("examples/command-line: a script that takes its own lock deploys one version at a time", async () => {
    const { env, endpoint } = onTable();
    const script = join(process.cwd(), "examples", "command-line", "deploy.sh");
    const deploy = (version: string) =>
      cli.shell(`${script} ${version}`, { endpoint, env: { ...env, DEPLOY_LOG: log } }).ended;
    const ended = await Promise.all(["1.1", "1.2", "1.3"].map(deploy));
    expect(ended).toEqual(ended.map(() => ({ code: 0, signal: null, stdout: "", stderr: "" })));
    const lines = await logged();
    const tokens = lines.flatMap((line) => /token (\d+)$/.exec(line)?.[1] ?? []).map(BigInt);
    const steps = lines.map((line) => line.replace(/ with token .*/, ""));
    const versions = steps.filter((_, index) => index % 5 === 0).map((line) => line.split(" ")[0]);
    const each = ["begins", "build", "migrate", "switch", "is deployed"];
    expect(steps).toEqual(versions.flatMap((version) => each.map((step) => `${version} ${step}`)));
    expect([...versions].sort()).toEqual(["1.1", "1.2", "1.3"]);
    expect(tokens).toEqual([...tokens].sort((a, b) => (a < b ? -1 : 1)));
    expect(new Set(tokens).size).toBe(3);
  });
});
