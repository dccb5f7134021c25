import { setTimeout as sleep } from "node:timers/promises";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { LockTable, type MutexOptions, systemClock } from "../../../../lib/index.js";
import { hostConfig, report } from "../../../support/host-process.js";
import { now } from "../../../support/monotonic.js";

export interface SectionsConfig {
  readonly tableName: string;
  readonly name: string;
  /** Its sections are `owner/0`, `owner/1` and so on: each is a host of its own to the others. */
  readonly owner: string;
  readonly mutex: MutexOptions;
  readonly sections: number;
  /** The longest pause before a section asks, and the time for which it stays. */
  readonly pauseMs: number;
  readonly stayMs: number;
}

export interface SectionMessage {
  readonly kind: "section";
  readonly owner: string;
  /** On the stopwatch that all processes share. */
  readonly asked: number;
  readonly entered: number;
  readonly left: number;
  readonly [field: string]: unknown;
}

/** Sections one after another, whose arrivals are staggered among the processes. */
const { tableName, name, owner, mutex, sections, pauseMs, stayMs } = hostConfig<SectionsConfig>();
const client = new DynamoDBClient({ maxAttempts: 1 });
for (let index = 0; index < sections; index += 1) {
  await sleep(Math.random() * pauseMs);
  const section = `${owner}/${index}`;
  await using locks = new LockTable({ tableName, client, owner: section, clock: systemClock({ maxSkewMs: 0 }) });
  const asked = now();
  const lock = await locks.mutex(name, mutex).lock();
  const entered = now();
  await sleep(stayMs);
  const left = now();
  await lock.unlock();
  report({ kind: "section", owner: section, asked, entered, left });
}
client.destroy();
