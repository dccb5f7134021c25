import { expect, test } from "@jest/globals";
import { listWaiters } from "../../../lib/operations/inspect.js";
import { MUTEX_QUEUE, placeAt } from "../../../lib/protocol/addresses.js";
import { Session } from "../../../lib/session/session.js";
import { MemoryTable } from "../../../lib/testing/memory-table.js";
import { ManualTime } from "../../support/manual-time.js";
import { MemoryStore } from "../../support/message-store.js";

/** A host on a table in memory, with a time that a test moves by hand. */
function hostOn(table: MemoryTable, time: ManualTime): Session {
  return new Session({ store: new MemoryStore(table), clock: time.clock(), owner: "me" });
}

test("all places are listed in order, page after page, with owner, sections and since when; the dead and the counter are not", async () => {
  const [time, table] = [new ManualTime(), new MemoryTable()];
  const { now } = time;
  const planted = Array.from({ length: 250 }, (_, index) => ({
    name: "name",
    ticket: BigInt(1_000 + index),
    uuid: `uuid ${index}`,
    expires: index % 5 === 0 ? now - 1 : now + 30_000,
    ttlMs: 30_000,
    owner: `host#${index}`,
    acquired: now - index,
    ...(index % 2 === 0 ? { data: { sections: index } } : {}),
  }));
  for (const { name, ticket, ...row } of [...planted].reverse())
    table.plant(placeAt(name, ticket), { format: 1, ...row });
  table.plant({ name: "name", sort: MUTEX_QUEUE.counter }, { format: 1, n: 2_000 });
  const listed = await listWaiters(hostOn(table, time), "name", MUTEX_QUEUE);
  expect(listed).toEqual(
    planted
      .filter((_, index) => index % 5 !== 0)
      .map(({ ticket, uuid, owner, data, acquired, expires }) => ({
        ticket,
        uuid,
        owner,
        sections: data?.sections ?? 1,
        side: undefined,
        since: new Date(acquired),
        expires: new Date(expires),
      })),
  );
});
