import { setTimeout as sleep } from "node:timers/promises";
import { DynamoDBClient, type TransactWriteItem, TransactWriteItemsCommand } from "@aws-sdk/client-dynamodb";
import { findLockLost, type Lock, LockStoreError, LockTable, type MutexOptions } from "../../../lib/index.js";
import { testClientConfig } from "../../support/endpoint.js";
import { hostConfig, report } from "../../support/host-process.js";
import { balanceOf, writeOf } from "../accounts.js";

export interface TellerConfig {
  readonly tableName: string;
  readonly mutex: MutexOptions;
  readonly writes: "guarded" | "plain";
  readonly from: string;
  readonly to: string;
  /** How often it waits to be frozen in the middle of a transfer, and how many transfers come before each of them. */
  readonly freezes: number;
  readonly freezeAfter: number;
  /** A gap in time that means that it has been frozen. */
  readonly gapMs: number;
}

/** What became of a transfer, or that one is in the middle. */
export interface TellerMessage {
  readonly kind: "transferred" | "middle" | "late";
  /** Of a late write: who refused it, if anybody did. */
  readonly refusedBy?: "the lock" | "the table" | "nobody";
  readonly [other: string]: unknown;
}

const { tableName, mutex, writes, from, to, freezes, freezeAfter, gapMs } = hostConfig<TellerConfig>();
const tell = (message: TellerMessage): void => report(message);
const client = new DynamoDBClient(testClientConfig());
const locks = new LockTable({ tableName, client, ...mutex });
const bank = locks.mutex("bank");

/** Reads, and computes what to write. */
async function compute(): Promise<TransactWriteItem[]> {
  const [source, target] = await Promise.all([from, to].map((account) => balanceOf(client, tableName, account)));
  return [writeOf(tableName, from, Number(source) - 1), writeOf(tableName, to, Number(target) + 1)];
}

async function send(items: readonly TransactWriteItem[]): Promise<void> {
  await client.send(new TransactWriteItemsCommand({ TransactItems: [...items] }));
}

async function transfer(): Promise<void> {
  const running = bank.run(async (lock) => {
    const items = await compute();
    if (writes === "guarded") await lock.transactWrite(items);
    else await send(items);
  });
  await running.then(() => tell({ kind: "transferred" }), goOn);
  // Whoever asks again at once is faster than those who poll, and they would never get it.
  await sleep(Math.random() * 40);
}

/** On a busy machine a lease may end by itself, or an answer come too late. The next transfer is another matter. */
function goOn(error: unknown): void {
  if (findLockLost(error) === undefined && !(error instanceof LockStoreError && error.transient)) throw error;
}

/** A transfer by a process that is frozen past its lease between computing and writing. It writes when it wakes. */
async function lateTransfer(turn: number): Promise<void> {
  let told = false;
  while (!told) told = await lateTransferOnce(turn);
}

/** @returns whether it has come to the late write: a lease may end by itself before. */
async function lateTransferOnce(turn: number): Promise<boolean> {
  let told = false;
  const running = bank.run(async (lock) => {
    const items = await compute();
    const write = await lateWrite(lock, items, turn);
    await untilFrozen(() => tell({ kind: "middle" }));
    const refusedBy = await write().then(
      () => "nobody" as const,
      (error) => (findLockLost(error) === undefined ? "the table" : "the lock"),
    );
    tell({ kind: "late", refusedBy });
    told = true;
  });
  await running.catch(goOn);
  return told;
}

/** What it will write with: as it should, or in turn by a transaction of its own that has its guard already. */
async function lateWrite(lock: Lock, items: TransactWriteItem[], turn: number): Promise<() => Promise<void>> {
  if (writes === "plain") return () => send(items);
  if (turn % 2 === 0) return () => lock.transactWrite(items);
  const guard = await lock.guard();
  return () => send([...items, guard]);
}

/** The stopwatch starts before anybody knows, and never stops: no freeze can come between two looks at it. */
async function untilFrozen(tellThem: () => void): Promise<void> {
  let last = performance.now();
  tellThem();
  for (;;) {
    await sleep(5);
    const now = performance.now();
    if (now - last > gapMs) return;
    last = now;
  }
}

for (let turn = 0; turn < freezes; turn += 1) {
  for (let count = 0; count < freezeAfter; count += 1) await transfer();
  await lateTransfer(turn);
}
for (;;) await transfer();
