import { expect, test } from "@jest/globals";
import { findLockLost } from "../../../lib/index.js";
import { permitAt } from "../../../lib/protocol/addresses.js";
import { turn } from "../../support/eventually.js";
import { ManualTime } from "../../support/manual-time.js";
import { MemoryHost } from "../../support/memory-host.js";

const NAME = "api";
const PUT = { Put: { TableName: "orders", Item: { id: { S: "1" } } } };

test("a permit whose row was deleted is lost, and no other", async () => {
  const time = new ManualTime();
  const host = new MemoryHost(time);
  const semaphore = host.semaphore(NAME, { permits: 2, ttlMs: 1_000 });
  const [lost, kept] = [await semaphore.lock(), await semaphore.lock()];
  host.table.plant(permitAt(NAME, lost.permit), undefined);
  await time.advance(600);
  expect(findLockLost(lost.signal.reason)?.reason).toBe("deleted");
  expect([lost.held, kept.held]).toEqual([false, true]);
  await expect(lost.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "deleted" });
  await kept.unlock();
});

test("the end of a section that has lost its permit leaves the permit to whoever of its process has it since", async () => {
  const time = new ManualTime();
  const host = new MemoryHost(time);
  const semaphore = host.semaphore(NAME, { permits: 2, ttlMs: 1_000 });
  const lost = await semaphore.lock();
  host.table.plant(permitAt(NAME, lost.permit), undefined);
  await time.advance(600);
  await using again = await semaphore.lock();
  expect(again.permit).toBe(lost.permit);
  await expect(lost.unlock()).rejects.toMatchObject({ reason: "deleted" });
  host.told();
  // The next call does not ask for what its own process has.
  await using other = await semaphore.lock();
  expect(host.told()).toEqual([`take semaphore#000${other.permit}`]);
  expect(other.permit).toBe(1 - lost.permit);
});

test("a guard of a permit renews it first, and names its row", async () => {
  const host = new MemoryHost(new ManualTime());
  await using permit = await host.semaphore(NAME, { permits: 3 }).lock();
  const guard = await permit.guard();
  expect(guard.ConditionCheck?.Key).toEqual({ name: { S: NAME }, sort: { S: `semaphore#000${permit.permit}` } });
  expect(host.told()).toEqual([`take semaphore#000${permit.permit}`, `renew semaphore#000${permit.permit}`]);
});

test("transactWrite applies writes while the permit is held, and none under the permit of somebody else", async () => {
  const host = new MemoryHost(new ManualTime());
  const semaphore = host.semaphore(NAME, { permits: 2 });
  const permit = await semaphore.lock();
  await permit.transactWrite([PUT]);
  expect(host.table.committed).toHaveLength(1);
  const { [permit.permit]: row } = [host.permit(NAME, 0), host.permit(NAME, 1)];
  host.table.plant(permitAt(NAME, permit.permit), { format: 1, ...row, uuid: "somebody-else" });
  await expect(permit.transactWrite([PUT])).rejects.toMatchObject({ code: "LOCK_LOST", reason: "stolen" });
  expect(host.table.committed).toHaveLength(1);
  expect(permit.signal.aborted).toBe(true);
});

test("a close revokes the sections that do not end, each with its own loss", async () => {
  const time = new ManualTime();
  const host = new MemoryHost(time);
  const semaphore = host.semaphore(NAME, { permits: 2 });
  const held = [await semaphore.lock(), await semaphore.lock()];
  const closing = host.session.close(0).catch((error: AggregateError) => error);
  await turn();
  expect(held.map(({ signal }) => findLockLost(signal.reason)?.reason)).toEqual(["closed", "closed"]);
  // Their rows stay until they end.
  expect(host.table.rows).toHaveLength(2);
  for (const permit of held) await expect(permit.unlock()).rejects.toMatchObject({ reason: "closed" });
  await time.settle(closing);
  expect((await closing) as AggregateError).toMatchObject({ errors: [{ reason: "closed" }, { reason: "closed" }] });
  expect(host.table.rows).toEqual([]);
});
