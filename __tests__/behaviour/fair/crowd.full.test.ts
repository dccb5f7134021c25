import { BatchWriteItemCommand, type WriteRequest } from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import { expect, test } from "@jest/globals";
import { watch } from "../../support/eventually.js";
import { ManualTime } from "../../support/manual-time.js";
import { isTake, QueueRows, sortOf, untilStanding } from "../../support/queue.js";
import { rowOf, useScene } from "../../support/scene.js";
import { testClient } from "../../support/table.js";

const scene = useScene();
const rows = new QueueRows(scene);
const client = testClient();

/** Waiters' rows with these tickets, 25 at a time. */
async function plant(from: number, to: number, expires: number): Promise<void> {
  const requests = Array.from({ length: to - from + 1 }, (_, index): WriteRequest => {
    const ticket = from + index;
    const waiter = {
      uuid: `of ${ticket}`,
      owner: `owner ${ticket}`,
      expires,
      ttlMs: 30_000,
      acquired: expires - 30_000,
    };
    return { PutRequest: { Item: marshall({ name: scene.name, sort: sortOf(ticket), format: 1, ...waiter }) } };
  });
  const batches = Array.from({ length: Math.ceil(requests.length / 25) }, (_, index) =>
    requests.slice(25 * index, 25 * (index + 1)),
  );
  await Promise.all(
    batches.map((batch) => client.send(new BatchWriteItemCommand({ RequestItems: { [scene.tableName]: batch } }))),
  );
}

test("of 2 000 waiters the first 1 500 are dead: the first one alive enters, and the dead rows go, page by page", async () => {
  // On virtual time: however slow the machine is, no look is too old by its last page, and no claim is sent twice.
  const time = new ManualTime();
  await scene.put(rowOf({ expires: time.now + 600_000 }));
  await plant(1, 1_500, time.now - 1_000);
  await rows.put({ sort: "tickets", n: 1_500, format: 1 });
  const locks = scene.host({ owner: "alive", clock: time.clock() });
  const locking = locks.mutex(scene.name, { fair: true, poll: { minMs: 20, maxMs: 100 } }).lock();
  const entered = watch(locking);
  // It stands in the queue, and watches the lock.
  await untilStanding(scene, "", time);
  await plant(1_502, 2_000, time.now + 600_000);
  await scene.remove();
  await scene.play(time, () => entered.settled);
  const lock = await locking;
  await lock.unlock();
  // What is left of the dead goes in the background.
  await scene.quiet();
  await locks.close();
  expect(await rows.owners()).toEqual(Array.from({ length: 499 }, (_, index) => `owner ${1_502 + index}`));
  expect(scene.proxy.count(isTake)).toBe(1);
  const pages = scene.proxy.select("Query");
  expect(pages.length).toBeGreaterThan(15);
  for (const { body, table, units } of pages) {
    expect(table?.body.Count).toBeLessThanOrEqual(body.Limit as number);
    expect(body.Limit).toBeLessThanOrEqual(100);
    expect(units.read).toBeLessThanOrEqual(10);
  }
});
