import { expect, test } from "@jest/globals";
import type { LockTimeoutError } from "../../../lib/index.js";
import { hear } from "../../support/diagnostics.js";
import { hosts } from "../../support/memory-host.js";

const NAME = "api";

/** A host takes a permit and dies, and its lease is over. */
async function withDeadHolder() {
  const { time, one: dead, other, third } = hosts();
  await dead.semaphore(NAME, { permits: 2, ttlMs: 1_000, autoRenew: false }).lock();
  await time.advance(1_500);
  return { time, other, third };
}

test("a timeout names who holds a permit, and not a host that died", async () => {
  const { time, other, third } = await withDeadHolder();
  await other.semaphore(NAME, { permits: 2 }).lock({ permits: 2 });
  await time.advance(10);
  const call = third.semaphore(NAME, { permits: 2 }).lock({ permits: 2, waitMs: 2_000 });
  const error = (await time.outcome(call)) as LockTimeoutError;
  expect(error.holder?.owner).toBe("other");
});

test("a permit that a dead host has is in nobody's way: who waits for two marks the one that is held", async () => {
  const { time, other, third } = await withDeadHolder();
  const held = await other.semaphore(NAME, { permits: 2 }).lock();
  const call = third.semaphore(NAME, { permits: 2 }).lock({ permits: 2, waitMs: 3_000 });
  const missed = time.outcome(call);
  await time.advance(2_000);
  expect(third.sent.filter((message) => message.kind === "write" && message.write.kind === "want").length).toBe(1);
  expect(third.permit(NAME, held.permit)?.wanted).toBeDefined();
  await missed;
});

test("a call that needs more permits than are free marks those of other processes, and none of its own", async () => {
  const { time, one, other } = hosts();
  const semaphore = one.semaphore(NAME, { permits: 4 });
  const own = await semaphore.lock({ permits: 2 });
  const others = await other.semaphore(NAME, { permits: 4 }).lock();
  const missed = time.outcome(semaphore.lock({ permits: 3, waitMs: 20_000 }));
  await time.advance(18_000);
  for (const permit of own.permits) expect(one.permit(NAME, permit)?.wanted).toBeUndefined();
  expect(one.permit(NAME, others.permit)?.wanted).toBeDefined();
  await time.advance(5_000);
  await missed;
});

test("a host that has died with another number of permits is accused of nothing", async () => {
  const { time, one: dead, other } = hosts();
  await dead.semaphore(NAME, { permits: 5, ttlMs: 1_000, autoRenew: false }).lock({ permits: 5 });
  await time.advance(1_500);
  const heard = hear("dynamutex:permits-differ");
  const lock = await other.semaphore(NAME, { permits: 2 }).lock({ permits: 2 });
  expect(heard).toEqual([]);
  await lock.unlock();
});
