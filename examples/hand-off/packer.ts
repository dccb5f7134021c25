/**
 * The second of two processes: it goes on with an order whose message it gets. A queue delivers a message again if who got it
 * does not say that it is done: then its token counts no more, and the order is locked anew. `node packer.js NAME MESSAGE`
 */

import { setTimeout as sleep } from "node:timers/promises";
import { findLockLost, type Lock, LockTable } from "dynamutex";
import type { OrderMessage } from "./message.js";

const PACKING_MS = 1_000;

const [name = "packer", message = "{}"] = process.argv.slice(2);
const { order, token } = JSON.parse(message) as OrderMessage;
await using locks = new LockTable({ tableName: process.env.TABLE_NAME ?? "locks", owner: name, ttlMs: 2_000 });
const mutex = locks.mutex(order);

await using lock = await mutex.resume(token).catch(lockAnew);
console.log(`${name} packs ${order}`);
await sleep(PACKING_MS, undefined, { signal: lock.signal });
lock.assertHeld();
console.log(`${name} has packed ${order}`);

/** Somebody has had this message before, and may still be at it: the lock is free when he has ended, or his lease. */
async function lockAnew(error: unknown): Promise<Lock> {
  if (findLockLost(error) === undefined) throw error;
  console.log(`${name} finds that the token for ${order} was used`);
  return await mutex.lock({ waitMs: 30_000 });
}
