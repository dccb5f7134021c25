import { setTimeout as sleep } from "node:timers/promises";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { LockTable, type MutexOptions } from "../../../lib/index.js";
import { testClientConfig } from "../../support/endpoint.js";
import { hostConfig, report } from "../../support/host-process.js";
import { now } from "../../support/monotonic.js";
import { tableClockOnWrongHost } from "../../support/wrong-clock.js";
import { readCounter, writeCounter } from "../counter-row.js";

export interface CounterConfig {
  readonly tableName: string;
  readonly mutex: MutexOptions;
  readonly turns: number;
  /** By how much the time of day of its host is off. */
  readonly wrongByMs?: number;
  /** The turn, from 0, in the middle of which it stays for ever. */
  readonly stayIn?: number;
}

/** One increment, or the half of one. */
export interface CounterMessage {
  readonly kind: "turn" | "staying";
  readonly read: number;
  readonly entered: number;
  readonly left?: number;
  readonly [other: string]: unknown;
}

const { tableName, mutex, turns, wrongByMs = 0, stayIn } = hostConfig<CounterConfig>();
const tell = (message: CounterMessage): void => report(message);
const client = new DynamoDBClient(testClientConfig());
await using locks = new LockTable({ tableName, ...mutex, clock: tableClockOnWrongHost(wrongByMs) });

for (let turn = 0; turn < turns; turn++) {
  await locks.mutex("counter").run(async () => {
    const entered = now();
    const read = await readCounter(client, tableName);
    if (turn === stayIn) {
      tell({ kind: "staying", read, entered });
      await sleep(2 ** 30);
    }
    await sleep(2);
    await writeCounter(client, tableName, read + 1);
    tell({ kind: "turn", read, entered, left: now() });
  });
}
