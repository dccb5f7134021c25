import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "@jest/globals";
import { createTestTable } from "../support/table.js";

test.each(["cron-croner", "cron-node-cron"])(
  "%s: three hosts, one of them killed in the middle, run every tick at most once",
  async (example) => {
    const tableName = await createTestTable();
    const program = fileURLToPath(new URL(`../../examples/${example}/main.js`, import.meta.url));
    const outcome = await new Promise<{ code: unknown; stdout: string; stderr: string }>((resolve) => {
      const env = { ...process.env, TABLE_NAME: tableName };
      execFile(process.execPath, [program], { env }, (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : error.code, stdout, stderr });
      });
    });
    expect(`${outcome.stderr}${outcome.stdout}`).toMatch(/\n\d+ ticks were run by .*; 0 of them twice\n$/);
    expect(outcome.code).toBe(0);
    expect(outcome.stdout).toMatch(/^[abc] is killed$/m);
    expect(outcome.stdout).toMatch(/left it to [abc]: (done|held)/);
  },
  120_000,
);
