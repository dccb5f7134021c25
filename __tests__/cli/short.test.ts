import { expect, test } from "@jest/globals";
import { useScene } from "../support/scene.js";
import { SECTION, useInstalledCli } from "./installed-cli.js";

const scene = useScene();
const cli = useInstalledCli();

test("run holds the lock while its program runs, passes signals and the exit code on, and keeps others out", async () => {
  const options = { env: { DYNAMUTEX_TABLE: scene.tableName } };
  const running = cli.start(["run", scene.name, "--", ...SECTION, "SIGTERM"], options);
  await running.says(/began/);
  const other = await cli.run(["run", "--no-wait", scene.name, "--", "echo", "ran"], options);
  expect(other).toMatchObject({ code: 75, stdout: "", stderr: expect.stringMatching(/ is held by /) });
  running.kill("SIGTERM");
  expect(await running.ended).toMatchObject({ code: 7, stdout: expect.stringContaining("got SIGTERM\n") });
  expect((await scene.row())?.uuid).toBeUndefined();
});
