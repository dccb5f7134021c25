import { describe, expect, test } from "@jest/globals";
import { processState } from "../support/host-process.js";
import { rowOf, useScene } from "../support/scene.js";
import { SECTION, useInstalledCli } from "./installed-cli.js";

const scene = useScene();
const cli = useInstalledCli();

const CTRL_C = "\u0003";
const CTRL_BACKSLASH = "\u001c";
const ESCAPE = "\u001b";

const terminal = (line: string, env: Readonly<Record<string, string>> = {}) =>
  cli.terminal(line, { env: { DYNAMUTEX_TABLE: scene.tableName, ...env }, endpoint: scene.proxy.endpoint });

const section = (endsAt: string) => SECTION.concat(endsAt).join(" ");

describe("run in a terminal", () => {
  test("keys reach the command once, and what is sent to this process alone is passed on", async () => {
    // A shell that leads the session may die of Ctrl-\, and the terminal would be gone with it.
    await using running = terminal(`exec dynamutex run ${scene.name} -- ${section("SIGTERM")}`);
    const [, pid] = await running.says(/began \d+ under (\d+)/);
    running.type(CTRL_C);
    await running.says(/got SIGINT/);
    running.type(CTRL_BACKSLASH);
    await running.says(/got SIGQUIT/);
    // Had a key come a second time, it would be told before this.
    process.kill(Number(pid), "SIGTERM");
    const { code, stdout } = await running.ended;
    expect(stdout.match(/got \w+/g)).toEqual(["got SIGINT", "got SIGQUIT", "got SIGTERM"]);
    expect(code).toBe(7);
  });

  test("in the background it passes on what it is sent, because no key reaches the command", async () => {
    const job = `dynamutex run ${scene.name} -- ${section("SIGINT")} & wait $!; echo ended with $?`;
    await using running = terminal(`bash -mc '${job}'`);
    const [, pid] = await running.says(/began \d+ under (\d+)/);
    process.kill(Number(pid), "SIGINT");
    await running.says(/ended with 7/);
  });

  test("trap 42: a lost lock ends what the command has started, and nothing else in the process group", async () => {
    const job = `${SECTION.join(" ")} & exec dynamutex run --ttl 2s ${scene.name} -- sh -c "${section("SIGTERM")}; true"`;
    await using running = terminal(`exec sh -c '${job}'`);
    await running.says(/began (?:.|\s)* under (?:.|\s)*began/);
    const states = [...running.stdout.matchAll(/began (\d+)/g)].map(([, pid]) => Number(pid));
    while ((await scene.row()) === undefined);
    await scene.remove();
    await running.says(/is told to end/);
    await running.says(/got SIGTERM/);
    while (states.every((pid) => processState(pid) !== "gone"));
    const alive = states.filter((pid) => processState(pid) !== "gone");
    expect(alive).toHaveLength(1);
    expect(running.stdout.match(/got \w+/g)).toEqual(["got SIGTERM"]);
    for (const pid of alive) process.kill(pid, "SIGKILL");
  });

  test("a terminal that goes away ends the command, and the lock is released", async () => {
    await using running = terminal(`dynamutex run ${scene.name} -- ${section("SIGHUP")}`);
    await running.says(/began/);
    const released = scene.proxy.next({ operation: "UpdateItem" });
    running.kill("SIGKILL");
    await released;
    while ((await scene.row())?.uuid !== undefined);
  });
});

test.each([
  ["y", false],
  ["", true],
])("unlock asks in a terminal, and %j is an answer", async (answer, staysHeld) => {
  await scene.put(rowOf({ owner: "web-1#4711" }));
  await using running = terminal(`dynamutex unlock ${scene.name} --uuid somebody-else`);
  await running.says(/End the lock lock-\d+ of web-1#4711\? It stays taken until .*\[y\/N\] /);
  running.type(`${answer}\n`);
  const { code } = await running.ended;
  const isHeld = (await scene.row())?.uuid !== undefined;
  expect({ isDone: code === 0, isHeld }).toEqual({ isDone: !staysHeld, isHeld: staysHeld });
});

describe("ls in a terminal", () => {
  test("--watch draws over what it drew before, in colours, until Ctrl-C", async () => {
    await scene.put(rowOf({ expires: Date.now() - 60_000 }), "watched");
    await using running = terminal("dynamutex ls --watch --prefix watched");
    await running.says(/watched +mutex +expired/);
    await scene.put(rowOf(), "watched");
    await running.says(/watched +mutex +held/);
    running.type(CTRL_C);
    const { code, stdout } = await running.ended;
    const frames = stdout.split(`${ESCAPE}[H`).slice(1);
    expect(frames.length).toBeGreaterThanOrEqual(2);
    expect(frames[0]).toContain(`${ESCAPE}[1mNAME`);
    expect(frames[0]).toContain(`${ESCAPE}[31mwatched`);
    expect(frames.every((frame) => frame.includes(`${ESCAPE}[J`))).toBe(true);
    expect(code).toBe(130);
  });

  test("NO_COLOR takes the colours away", async () => {
    await scene.put(rowOf({ expires: Date.now() - 60_000 }), "plain");
    await using running = terminal("dynamutex ls --prefix plain", { NO_COLOR: "1" });
    const { stdout } = await running.ended;
    expect(stdout).toMatch(/plain +mutex +expired/);
    expect(stdout).not.toContain(ESCAPE);
  });
});
