import { expect, test } from "@jest/globals";
import { ManualTime } from "../support/manual-time.js";
import { MemoryHost } from "../support/memory-host.js";

function setUp() {
  const time = new ManualTime();
  const host = new MemoryHost(time);
  return { time, session: host.session, mutex: host.mutex("a") };
}

test("a lease is found by its row and by its uuid, until it is released", async () => {
  const { session, mutex } = setUp();
  const { leases } = session;
  const lock = await mutex.lock();
  const [lease] = leases;
  expect([leases.with(lock.uuid), leases.on({ name: "a", sort: "lock" })]).toEqual([lease, [lease]]);
  await lock.unlock();
  expect([leases.with(lock.uuid), leases.on({ name: "a", sort: "lock" }), leases.size]).toEqual([undefined, [], 0]);
});

test("one whose unlock() was forgotten is not found by its uuid after a close, so that nothing keeps its table", async () => {
  const { time, session, mutex } = setUp();
  const { leases } = session;
  const { uuid } = await mutex.lock();
  const closed = session.close(0).catch((error: unknown) => error);
  await time.advance(60_000);
  expect(leases.with(uuid)).toBeUndefined();
  expect(await closed).toMatchObject({ errors: [{ code: "LOCK_LOST", reason: "closed" }] });
});
