import { expect, test } from "@jest/globals";
import { rowOf, useScene } from "../support/scene.js";
import { useInstalledCli } from "./installed-cli.js";

const scene = useScene();
const cli = useInstalledCli();

const command = (...args: readonly string[]) => cli.run(args, { env: { DYNAMUTEX_TABLE: scene.tableName } });

test("trap 47: a row that is not ours hides no other, and each command says how to remove it", async () => {
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
