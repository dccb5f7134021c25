import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "@jest/globals";
import { compiled } from "../../support/compiled.js";
import { createTestTable } from "../../support/table.js";

test("hand-off: a packer dies, and its order is packed by another, once", async () => {
  const tableName = await createTestTable();
  const program = compiled(new URL("../../../examples/hand-off/main.js", import.meta.url));
  const env = { ...process.env, TABLE_NAME: tableName };
  const { stdout } = await promisify(execFile)(process.execPath, [program], { env });
  expect(stdout.split("\n").filter((line) => !line.startsWith("shop sends"))).toEqual([
    "packer-a packs order#1",
    "packer-a is killed",
    "packer-b finds that the token for order#1 was used",
    "packer-b packs order#1",
    "packer-b has packed order#1",
    "packer-b packs order#2",
    "packer-b has packed order#2",
    "",
    "2 orders were packed, each once: yes",
    "",
  ]);
});
