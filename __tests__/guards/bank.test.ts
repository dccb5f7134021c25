import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "@jest/globals";
import { eventually } from "../support/eventually.js";
import type { Host } from "../support/host-process.js";
import { startLockHost } from "../support/lock-host.js";
import { createTestTable, testClient, testEndpoint } from "../support/table.js";
import { ACCOUNTS, OPENING, openAccounts, totalOf } from "./accounts.js";
import type { TellerConfig, TellerMessage } from "./hosts/teller.js";

const client = testClient();
const TTL_MS = 2_000;
/** A machine with far more work than processors takes several times as long as an idle one. */
const TIMEOUT_MS = 240_000;
const [A, B, C, D] = ACCOUNTS;
const TOTAL = ACCOUNTS.length * OPENING;

interface Outcome {
  readonly transfers: number;
  readonly refusedBy: readonly unknown[];
  readonly total: number;
}

/**
 * Four processes move money between four accounts; one of them is frozen past its lease, again and again, after it has
 * read and before it writes. The others move money out of the accounts that it has read: if its late write passes, that
 * money is there twice.
 */
async function transfers({
  writes,
  freezes,
  atLeast,
}: {
  readonly writes: TellerConfig["writes"];
  readonly freezes: number;
  readonly atLeast: number;
}): Promise<Outcome> {
  const tableName = await createTestTable();
  await openAccounts(client, tableName);
  const mutex = { ttlMs: TTL_MS, poll: { minMs: 5, maxMs: 20 } };
  const start = (from: string, to: string, often = 0): Host<TellerMessage> => {
    const config: TellerConfig = { tableName, mutex, writes, from, to, freezes: often, freezeAfter: 5, gapMs: TTL_MS };
    return startLockHost<TellerMessage>(new URL("./hosts/teller.js", import.meta.url), {
      endpoint: testEndpoint(),
      config,
    });
  };
  await using frozen = start(A, B, freezes);
  await using one = start(A, C);
  await using two = start(B, D);
  await using three = start(A, D);
  const others = [one, two, three];
  const all = [frozen, ...others];
  const done = (hosts: readonly Host<TellerMessage>[]): number =>
    hosts.flatMap(({ messages }) => messages).filter(({ kind }) => kind === "transferred").length;
  /** Goes on once this is so, or one of them has ended, which is none of its business. */
  const until = async (condition: () => boolean): Promise<void> => {
    await eventually(() => condition() || all.some(({ running }) => !running));
    for (const { running, stderr } of all) if (!running) throw new Error(stderr);
  };

  for (let count = 0; count < freezes; count += 1) {
    await frozen.message(() => frozen.messages.filter(({ kind }) => kind === "middle").length > count);
    await frozen.suspend();
    const before = done(others);
    await Promise.all([until(() => done(others) >= before + 5), sleep(TTL_MS * 1.1)]);
    const late = frozen.next(({ kind }) => kind === "late");
    frozen.resume();
    await late;
  }
  for (let seen = done(all); seen < atLeast; seen = done(all)) await until(() => done(all) > seen);
  for (const host of all) await host[Symbol.asyncDispose]();

  const refusedBy = frozen.messages.filter(({ kind }) => kind === "late").map((message) => message.refusedBy);
  return { transfers: done(all), refusedBy, total: await totalOf(client, tableName) };
}

test(
  "200 guarded transfers by 4 processes keep the total, and the late writes of the one that is frozen are refused",
  async () => {
    const { transfers: count, refusedBy, total } = await transfers({ writes: "guarded", freezes: 4, atLeast: 200 });
    expect(count).toBeGreaterThanOrEqual(200);
    // By the lock itself, which looks before it sends, and by the table, where the guard was made before.
    expect(refusedBy).toEqual(["the lock", "the table", "the lock", "the table"]);
    expect(total).toBe(TOTAL);
  },
  TIMEOUT_MS,
);

test(
  "the same program with plain writes makes money: its late writes pass",
  async () => {
    const { refusedBy, total } = await transfers({ writes: "plain", freezes: 1, atLeast: 20 });
    expect(refusedBy).toEqual(["nobody"]);
    expect(total).toBeGreaterThan(TOTAL);
  },
  TIMEOUT_MS,
);
