import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "@jest/globals";
import { startPatience } from "../support/eventually.js";
import { freePort } from "../support/free-port.js";
import { pagePrograms } from "../support/page-programs.js";

/** A program of the reader's, which sets up the metrics first. */
const PROGRAM = `
import "./metrics.js";
import { LockTable } from "dynamutex";
const locks = new LockTable({ tableName: process.env.TABLE ?? "" });
await locks.mutex("report").run(() => undefined);
console.log("has had a lock");
`;

test("docs/guides/observability.md: what prom-client answers counts a lock of the program that set it up", async () => {
  const given = { "program.ts": PROGRAM };
  await using programs = await pagePrograms({ pages: ["docs/guides/observability.md"], only: ["metrics.ts"], given });
  const port = await freePort();
  await using program = programs.start("program.ts", { TABLE: programs.tableName, METRICS_PORT: String(port) });
  await program.printed("has had a lock");
  const patience = startPatience(() => false);
  let exposition = "";
  while (!exposition.includes("dynamutex_calls_total 1")) {
    patience.check();
    exposition = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    await sleep(20);
  }
  expect(exposition).toMatch(/^dynamutex_held 0$/m);
  expect(exposition).toMatch(/^dynamutex_wait_duration_seconds_count\{dynamutex_outcome="acquired"\} 1$/m);
});
