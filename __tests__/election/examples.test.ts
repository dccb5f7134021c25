import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "@jest/globals";
import { createTestTable } from "../support/table.js";

test("leader-election: a leader is killed, the next resigns, and the observer sees each that leads", async () => {
  const tableName = await createTestTable();
  const program = fileURLToPath(new URL("../../examples/leader-election/main.js", import.meta.url));
  const env = { ...process.env, TABLE_NAME: tableName };
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [program], { env });
  expect(stderr).toBe("");
  expect(stdout).toMatch(/^[abc] is killed$/m);
  expect(stdout).toMatch(/^[abc] is told to end$/m);
  expect(stdout).toMatch(/\n3 leaders, one after the other, each another process: yes\n$/);
}, 120_000);
