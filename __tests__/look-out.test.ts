import { expect, test } from "@jest/globals";
import { mutexSettings } from "../lib/options/mutex.js";
import { Host } from "../lib/session/session.js";
import { lookOut } from "../lib/taking/look-out.js";
import type { Clock } from "../lib/time/clock.js";
import { MemoryStore, MemoryTable } from "./simulation/memory-store.js";
import { watch } from "./support/eventually.js";
import { ManualTime } from "./support/manual-time.js";

const TTL_MS = 3_000;

interface Looking {
  /** What the wall clock has been set forward by. */
  aheadMs: number;
  /** How long the requests of each look could be tried. */
  readonly leftMs: number[];
}

/** Looks for a row that the table shows from look number `foundAt` on. */
function startLooking({ expiresInMs = 60_000, foundAt = Number.POSITIVE_INFINITY } = {}) {
  const time = new ManualTime();
  const looking: Looking = { aheadMs: 0, leftMs: [] };
  const clock: Clock = { ...time.clock(), atMost: () => time.elapsed + looking.aheadMs };
  const host = new Host({ store: new MemoryStore(new MemoryTable()), clock, owner: "host" });
  const row = { expires: time.now + expiresInMs, sentAt: clock.atMost() };
  const found = lookOut(host, mutexSettings({ ttlMs: TTL_MS }), row, async (until) => {
    looking.leftMs.push(until() - clock.atMost());
    return looking.leftMs.length >= foundAt;
  });
  return { time, host, looking, found, watched: watch(found) };
}

test("a row that arrives is found by the next look, and none follows", async () => {
  const { time, looking, found, watched } = startLooking({ foundAt: 4 });
  await time.sleepUntil(() => watched.settled);
  expect(await found).toBe(true);
  expect(looking.leftMs).toHaveLength(4);
  expect(time.sleeps).toEqual([400, 400, 400]);
});

test.each([0, 3_600_000])(
  "what does not arrive is looked for for 10 s, each look with time for its requests, though the wall clock goes on by %d ms",
  async (setForwardByMs) => {
    const { time, looking, found, watched } = startLooking();
    await time.sleepUntil(() => looking.leftMs.length >= 3);
    looking.aheadMs = setForwardByMs;
    await time.sleepUntil(() => watched.settled);
    expect(await found).toBe(false);
    expect(time.elapsed).toBe(10_000);
    expect(looking.leftMs).toHaveLength(10_000 / 400 + 1);
    expect(Math.min(...looking.leftMs)).toBeGreaterThanOrEqual(TTL_MS / 4);
  },
);

test("what would be over on its arrival is not looked for any more", async () => {
  const { time, looking, found, watched } = startLooking({ expiresInMs: 1_000 });
  await time.sleepUntil(() => watched.settled);
  expect(await found).toBe(false);
  expect(looking.leftMs).toHaveLength(4);
});

test("a table that closes has one more look, and leaves no timer", async () => {
  const { time, host, looking, found } = startLooking();
  await time.sleepUntil(() => looking.leftMs.length === 2);
  await host.close();
  expect(await found).toBe(false);
  expect(looking.leftMs).toHaveLength(3);
  expect(time.timers).toBe(0);
});
