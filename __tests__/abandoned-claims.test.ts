import { expect, test } from "@jest/globals";
import { mutexSettings } from "../lib/options/mutex.js";
import { lockAt } from "../lib/protocol/addresses.js";
import { Session } from "../lib/session/session.js";
import { removeWhenItArrives } from "../lib/taking/abandoned-claims.js";
import { Acquisition } from "../lib/taking/acquisition.js";
import { MemoryStore, MemoryTable } from "../lib/testing/memory-store.js";
import type { Clock } from "../lib/time/clock.js";
import { watch } from "./support/eventually.js";
import { ManualTime } from "./support/manual-time.js";
import { takeWith } from "./support/store-cases.js";

const TTL_MS = 3_000;
const AT = lockAt("name");

/** Looks for a claim that reaches the table just before look number `arrivesAt`. */
function startLooking({ expiresInMs = 60_000, arrivesAt = Number.POSITIVE_INFINITY } = {}) {
  const time = new ManualTime();
  const table = new MemoryTable();
  const looking = { count: 0, aheadMs: 0 };
  const clock: Clock = { ...time.clock(), atMost: () => time.elapsed + looking.aheadMs };
  const take = takeWith({ at: AT, uuid: "abandoned", expires: time.now + expiresInMs, ttlMs: TTL_MS });
  const store = new (class extends MemoryStore {
    override async read(...args: Parameters<MemoryStore["read"]>): ReturnType<MemoryStore["read"]> {
      looking.count += 1;
      if (looking.count === arrivesAt) table.apply(take);
      return await super.read(...args);
    }
  })(table);
  const session = new Session({ store, clock, owner: "host" });
  const target = { at: AT, settings: mutexSettings({ ttlMs: TTL_MS }) };
  const { uuid, expires, acquired } = take;
  const taken = { uuid, expires, acquired, sentAt: clock.atMost(), remembers: "nothing" } as const;
  const found = removeWhenItArrives(session, new Acquisition(session, target, taken));
  session.detach(found);
  return { time, table, session, looking, found, watched: watch(found) };
}

test("a claim that arrives is found by the next look and removed, and no look follows", async () => {
  const { time, table, looking, found, watched } = startLooking({ arrivesAt: 4 });
  await time.sleepUntil(() => watched.settled);
  expect(await found).toBe(true);
  expect(table.item(AT)).toBeUndefined();
  expect(looking.count).toBe(4);
  expect(time.sleeps).toEqual([400, 400, 400]);
});

test.each([0, 3_600_000])(
  "a claim that does not arrive is looked for for 10 s, though the wall clock goes on by %d ms",
  async (setForwardByMs) => {
    const { time, looking, found, watched } = startLooking();
    await time.sleepUntil(() => looking.count >= 3);
    looking.aheadMs = setForwardByMs;
    await time.sleepUntil(() => watched.settled);
    expect(await found).toBe(false);
    expect(time.elapsed).toBe(10_000);
    // Each look had time for its request: it was sent.
    expect(looking.count).toBe(10_000 / 400 + 1);
  },
);

test("a claim that would be over on its arrival is not looked for any more", async () => {
  const { time, looking, found, watched } = startLooking({ expiresInMs: 1_000 });
  await time.sleepUntil(() => watched.settled);
  expect(await found).toBe(false);
  expect(looking.count).toBe(4);
});

test("a table that closes goes on looking, but no longer than its close takes, and leaves no timer", async () => {
  const { time, session, looking, found } = startLooking();
  await time.sleepUntil(() => looking.count === 2);
  session.mayRelease(1_000);
  const closing = session.close(500);
  const closed = watch(closing);
  await time.sleepUntil(() => closed.settled);
  expect(await found).toBe(false);
  // At 0, 400 and so on until 1 600: the next look would come too late, for the close ends at 1 900.
  expect(looking.count).toBe(5);
  expect(time.elapsed).toBeLessThanOrEqual(1_900);
  expect(time.timers).toBe(0);
});
