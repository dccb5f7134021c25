import { expect, test } from "@jest/globals";
import { mutexSettings } from "../../lib/options/mutex.js";
import { lockAt } from "../../lib/protocol/addresses.js";
import { Session } from "../../lib/session/session.js";
import { removeWhenItArrives } from "../../lib/taking/abandoned-claims.js";
import { rowLease } from "../../lib/taking/row-lease.js";
import { MemoryTable } from "../../lib/testing/memory-table.js";
import type { Clock } from "../../lib/time/clock.js";
import { watch } from "../support/eventually.js";
import { ManualTime } from "../support/manual-time.js";
import { MemoryStore } from "../support/message-store.js";
import { takeWith } from "../support/store-cases.js";

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
  const found = removeWhenItArrives(session, rowLease(session, target, taken));
  session.detach(found);
  return { time, table, session, looking, found, watched: watch(found) };
}

test.each([0, 3_600_000])(
  "a claim that does not arrive is looked for for 10 s, though the wall clock goes on by %d ms",
  async (setForwardByMs) => {
    const { time, looking, found, watched } = startLooking();
    await time.sleepUntil(() => looking.count >= 3);
    looking.aheadMs = setForwardByMs;
    await time.sleepUntil(() => watched.settled);
    expect(await found).toBe(true); // its other rows may be there all the same
    expect(time.elapsed).toBe(10_000);
    // Each look had time for its request: it was sent.
    expect(looking.count).toBe(10_000 / 400 + 1);
  },
);

test("a claim that arrives while it is looked for is released, long before its stamp is over", async () => {
  const { time, table, looking, found, watched } = startLooking({ arrivesAt: 3 });
  await time.sleepUntil(() => watched.settled);
  expect(await found).toBe(true);
  expect(looking.count).toBe(3);
  expect(table.row(AT)).toBeUndefined();
});
