import { expect, test } from "@jest/globals";
import { rowOf, useScene } from "../support/scene.js";
import { SECTION, useInstalledCli } from "./installed-cli.js";

const scene = useScene();
const cli = useInstalledCli();

const onTable = () => ({ env: { DYNAMUTEX_TABLE: scene.tableName } });

test("run holds the lock while its program runs, passes signals and the exit code on, and keeps others out", async () => {
  const running = cli.start(["run", scene.name, "--", ...SECTION, "SIGTERM"], onTable());
  await running.says(/began/);
  const other = await cli.run(["run", "--no-wait", scene.name, "--", "echo", "ran"], onTable());
  expect(other).toMatchObject({ code: 75, stdout: "", stderr: expect.stringMatching(/ is held by /) });
  running.kill("SIGTERM");
  expect(await running.ended).toMatchObject({ code: 7, stdout: expect.stringContaining("got SIGTERM\n") });
  expect((await scene.row())?.uuid).toBeUndefined();
});

test("trap 47: a row that is not ours hides no other, and each command says how to remove it", async () => {
  const command = (...args: readonly string[]) => cli.run(args, onTable());
  const good = `${scene.name}-good`;
  await scene.put(rowOf({ expires: 9e15 }));
  await scene.put(rowOf(), good);
  const before = await scene.row();
  const [ls, json, inspect, unlock] = await Promise.all([
    command("ls", "--prefix", scene.name),
    command("ls", "--prefix", scene.name, "--json"),
    command("inspect", scene.name),
    command("unlock", scene.name, "--force", "--yes"),
  ]);
  expect(ls).toMatchObject({ code: 0, stderr: "" });
  expect(ls.stdout).toMatch(new RegExp(`^${scene.name} +mutex +bad +- `, "m"));
  expect(ls.stdout).toMatch(new RegExp(`^${good} +mutex +held `, "m"));
  const told = /its expires must be a number from 0 to 8640000000000000.*aws dynamodb delete-item --table-name/s;
  expect(JSON.parse(json.stdout)).toMatchObject([
    { name: scene.name, state: "bad", problem: expect.stringMatching(told) },
    { name: good, state: "held" },
  ]);
  expect(inspect).toMatchObject({ code: 0, stdout: expect.stringMatching(told) });
  expect(unlock).toMatchObject({ code: 125, stderr: expect.stringMatching(told) });
  expect(await scene.row()).toEqual(before);
});
