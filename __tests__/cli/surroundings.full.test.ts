import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { processState } from "../support/host-process.js";
import { rowOf, useScene } from "../support/scene.js";
import { SECTION, useInstalledCli } from "./installed-cli.js";

const scene = useScene();
const cli = useInstalledCli();

const onTable = () => ({ env: { DYNAMUTEX_TABLE: scene.tableName }, endpoint: scene.proxy.endpoint });
const terminal = (line: string) => cli.terminal(line, onTable());
const start = (line: string) => cli.shell(line, onTable());

describe.each([
  ["without a terminal", start],
  ["in a terminal", terminal],
])("trap 42: a run inside of a run, %s", (_, begin) => {
  const nested = (killAfter: string, endsAt: string) =>
    `exec dynamutex run --ttl 3s --kill-after ${killAfter} ${scene.name} -- ` +
    `sh -c 'dynamutex run ${scene.name}-inner -- sh -c "${SECTION.join(" ")} ${endsAt}; true"; true'`;

  test("ends what the inner one has started when the outer lock is lost, even if that ignores TERM", async () => {
    await using running = begin(nested("100ms", ""));
    const [, pid] = await running.says(/began (\d+)/);
    await scene.remove();
    const code = await running.exited;
    expect({ code, state: processState(Number(pid)) }).toEqual({ code: 124, state: "gone" });
  });

  test("waits for what the inner one has started, which is told to end once", async () => {
    await using running = begin(nested("290ms", "SIGTERM"));
    const [, pid] = await running.says(/began (\d+)/);
    await scene.remove();
    const code = await running.exited;
    expect({ code, state: processState(Number(pid)) }).toEqual({ code: 124, state: "gone" });
    expect((await running.ended).stdout.match(/got SIGTERM/g)).toHaveLength(1);
  });
});

test.each([
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)("ls --watch as the first process of a container ends by %s", async (signal, code) => {
  await scene.put(rowOf());
  // The signal comes from a process beside it in the container; the first one is the command itself.
  const sent = `(until test -e $0; do sleep 0.1; done; kill -${signal.slice(3)} 1) & exec "$@"`;
  const inside = `sh -c '${sent}' ./said-${signal} dynamutex ls --watch --prefix ${scene.name}`;
  await using running = start(`unshare --user --map-root-user --pid --fork --mount-proc ${inside}`);
  await running.says(/held/);
  await cli.put(`said-${signal}`, "");
  expect(await running.exited).toBe(code);
});

test("without PATH the system's default path is searched", async () => {
  const dynamutex = [process.execPath, join(cli.bin, "dynamutex")].join(" ");
  const found = await cli.shell(`unset PATH; ${dynamutex} run ${scene.name} -- echo ran`, onTable()).ended;
  const missing = await cli.shell(`unset PATH; ${dynamutex} run ${scene.name} -- no-such-command`, onTable()).ended;
  expect(found).toMatchObject({ code: 0, stdout: "ran\n", stderr: "" });
  expect(missing).toMatchObject({ code: 127, stderr: expect.stringContaining("no-such-command was not found") });
});

test.each([
  ["NAME echo -h", 125, /^$/, /^dynamutex: there is no command: put -- before the command that is run: /],
  ["NAME echo --help", 125, /^$/, /^dynamutex: there is no command: put -- before /],
  ["NAME --fair grep -h x", 125, /^$/, /^dynamutex: there is no command: put -- before /],
  ["--help", 0, /^Usage: dynamutex run /, /^$/],
  ["NAME --help", 0, /^Usage: dynamutex run /, /^$/],
])("run %s ends with %d", (line, code, stdout, stderr) => {
  const words = ["run", ...line.split(" ")];
  return expect(cli.run(words)).resolves.toMatchObject({
    code,
    stdout: expect.stringMatching(stdout),
    stderr: expect.stringMatching(stderr),
  });
});
