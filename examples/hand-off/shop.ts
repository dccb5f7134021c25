/**
 * The first of two processes: it locks an order, books it, and hands the lock off with the message that a packer is to get.
 * `node shop.js ORDER` prints the message, and ends.
 */

import { LockTable } from "dynamutex";
import type { OrderMessage } from "./message.js";

const order = process.argv[2] ?? "order#1";
await using locks = new LockTable({ tableName: process.env.TABLE_NAME ?? "locks", owner: "shop" });
await using lock = await locks.mutex(order).lock({ data: { booked: true } });
// As long as the queue may keep the message.
const token = await lock.handOff({ validForMs: 60_000 });
const message: OrderMessage = { order, token };
console.log(JSON.stringify(message));
