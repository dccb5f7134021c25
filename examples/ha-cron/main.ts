/**
 * Three hosts, one job, one lock: who runs the job when one of them dies, and another one sleeps through its lease?
 * `npm run demo` shows it, and then checks what it has shown.
 */

import { closeSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LockError, LockTable } from "dynamutex";
import { engineToUse } from "../support/engine.js";
import { audit } from "./audit.js";
import type { LogEvent } from "./events.js";
import { LogFollower } from "./log-follower.js";
import { perform } from "./performance.js";
import { TABLE_NAME, TICK_MS, TTL_MS } from "./settings.js";
import { Timeline } from "./timeline.js";

const NAMES = ["a", "b", "c"];
const AT_MOST_MS = 32_000;

try {
  process.exitCode = (await demo()) ? 0 : 1;
} catch (error) {
  // Something is missing where this runs: the message says what, and a stack would say no more.
  console.error(error instanceof LockError ? error.message : error);
  process.exitCode = 1;
}

/** @returns whether everything was as it should be. */
async function demo(): Promise<boolean> {
  await using engine = await engineToUse();
  {
    await using locks = new LockTable({ tableName: TABLE_NAME });
    await locks.create();
  }
  console.log(
    `Three hosts want to run one job every second. Their lock is in table ${TABLE_NAME} on ${engine.endpoint}.\n`,
  );
  const log = await recorded();
  console.log(`\nWhat the log of ${log.length} lines shows:\n`);
  const findings = audit(log, { ttlMs: TTL_MS, tickMs: TICK_MS });
  for (const { passed, text } of findings) console.log(`  ${passed ? "passed" : "FAILED"}  ${text}`);
  return findings.every(({ passed }) => passed);
}

/** Plays the scenario, shows it while it goes on, and returns the log of it. */
async function recorded(): Promise<readonly LogEvent[]> {
  const timeline = new Timeline(NAMES, { colours: process.stdout.isTTY === true && !process.env.NO_COLOR });
  const folder = mkdtempSync(join(tmpdir(), "dynamutex-demo-"));
  const path = join(folder, "log");
  const file = openSync(path, "a");
  try {
    using log = new LogFollower(path);
    console.log(timeline.header());
    log.onEvent((event) => {
      if (event.kind !== "worked") console.log(timeline.line(event));
    });
    await perform(NAMES, { file, log, atMostMs: AT_MOST_MS });
    log.read();
    return log.events;
  } finally {
    closeSync(file);
    rmSync(folder, { recursive: true });
  }
}
