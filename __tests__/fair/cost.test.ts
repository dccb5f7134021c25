import { expect, test } from "@jest/globals";
import { Mutex } from "../../lib/mutex.js";
import { mutexSettings } from "../../lib/options/mutex.js";
import { Sections } from "../../lib/queues/sections.js";
import { Session } from "../../lib/session/session.js";
import { MemoryStore, MemoryTable } from "../simulation/memory-store.js";
import { ManualTime } from "../support/manual-time.js";
import { placesIn } from "../support/places.js";
import { Meter } from "./metered.js";

const NAME = "popular";
const WINDOW_MS = 15_000;

/** What a second of waiting costs each of so many, while somebody holds the lock. */
async function costOf(waiters: number): Promise<{ requests: number; read: number; write: number }> {
  const time = new ManualTime();
  const table = new MemoryTable();
  const meter = new Meter();
  const session = new Session({ store: meter.on(new MemoryStore(table)), clock: time.clock(), owner: "host#1" });
  const mutex = new Mutex(new Sections(session), NAME, mutexSettings({ fair: true }));
  const holder = await mutex.lock();
  const waits = Array.from({ length: waiters }, () => mutex.lock());
  for (const wait of waits) wait.catch(() => undefined);
  while (placesIn(table, NAME).length < waiters) await time.advance(1);
  // Their polls have grown to their longest.
  await time.advance(5_000);

  meter.reset();
  await time.advance(WINDOW_MS);
  const { requests, read, write } = meter;
  const closing = session.close();
  await holder.unlock();
  await closing;
  expect(placesIn(table, NAME).length).toBe(0);
  const seconds = (waiters * WINDOW_MS) / 1_000;
  return { requests: requests / seconds, read: read / seconds, write: write / seconds };
}

test("a second of waiting costs the same among 5, 50 and 500 waiters, within 20 %", async () => {
  const five = await costOf(5);
  for (const cost of [await costOf(50), await costOf(500)]) {
    expect(cost.requests / five.requests).toBeGreaterThan(0.8);
    expect(cost.requests / five.requests).toBeLessThan(1.2);
    expect(cost.read / five.read).toBeGreaterThan(0.8);
    expect(cost.read / five.read).toBeLessThan(1.2);
  }
  // Half a unit for every poll, and a renewal now and then.
  expect(five.read).toBeCloseTo((five.requests - five.write) / 2, 5);
  expect(five.write / five.requests).toBeLessThan(0.05);
}, 180_000);
