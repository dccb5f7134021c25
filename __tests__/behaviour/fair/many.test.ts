import { expect, test } from "@jest/globals";
import { MUTEX_QUEUE, ticketOf } from "../../../lib/protocol/addresses.js";
import { MemoryTable } from "../../../lib/testing/memory-table.js";
import { takesOf } from "../../proof/simulation/message.js";
import { turn, watch } from "../../support/eventually.js";
import { ManualTime } from "../../support/manual-time.js";
import { MemoryHost } from "../../support/memory-host.js";
import type { Message } from "../../support/message.js";
import { placesIn } from "../../support/places.js";

const NAME = "popular";
const FAIR = { fair: true };

/** What is there beside the counter. */
function leftIn(table: MemoryTable): readonly string[] {
  return [...table.partition(NAME).keys()].filter((sort) => sort !== MUTEX_QUEUE.counter);
}

/** How many of each kind of request. */
function kindsOf(sent: readonly Message[]): Record<string, number> {
  const kinds: Record<string, number> = {};
  for (const message of sent) {
    const kind = message.kind === "write" ? message.write.kind : message.kind;
    kinds[kind] = (kinds[kind] ?? 0) + 1;
  }
  return kinds;
}

test("2 000 callers of one process behind another host are served in order, by as many requests as one of them needs", async () => {
  const CALLERS = 2_000;
  const [time, table] = [new ManualTime(), new MemoryTable()];
  const holder = await new MemoryHost(time, { owner: "holder", table }).mutex(NAME, FAIR).lock();
  const host = new MemoryHost(time, { table });
  const mutex = host.mutex(NAME, FAIR);
  const order: number[] = [];
  const all = Array.from({ length: CALLERS }, (_, caller) => mutex.run(() => order.push(caller)));
  const served = watch(Promise.all(all));
  await time.advanceUntil(() => placesIn(table, NAME).length > 0);
  expect(placesIn(table, NAME)).toMatchObject([{ data: { sections: CALLERS } }]);
  await holder.unlock();
  await time.advanceUntil(() => served.settled, { stepMs: 10 });
  expect(order).toEqual(Array.from({ length: CALLERS }, (_, caller) => caller));
  // A look, a number and a place. A look, the lock, the place again, and the lock again.
  expect(kindsOf(host.sent)).toEqual({ query: 2, draw: 1, take: 2, vacate: 2 });
  expect(leftIn(table)).toEqual([]);
});

test("500 callers that ask while their process runs take a look every now and then, and no ticket", async () => {
  const CALLERS = 500;
  const [time, table] = [new ManualTime(), new MemoryTable()];
  const host = new MemoryHost(time, { table });
  const mutex = host.mutex(NAME, FAIR);
  const order: number[] = [];
  const all: Promise<void>[] = [];
  // Each section takes 2 ms, and two callers ask in a millisecond.
  for (let caller = 0; caller < CALLERS; caller += 1) {
    all.push(
      mutex.run(async () => {
        order.push(caller);
        await time.clock().sleep(2);
      }),
    );
    if (caller % 2 === 1) await time.advance(1);
  }
  await time.settle(Promise.all(all), { stepMs: 2 });
  expect(order).toEqual(Array.from({ length: CALLERS }, (_, caller) => caller));
  const { query = 0, ...others } = kindsOf(host.sent);
  expect(others).toEqual({ take: 1, vacate: 1 });
  // Those who ask in 50 ms are told of their turn by one look.
  expect(query).toBeLessThanOrEqual(time.elapsed / 100);
  expect(leftIn(table)).toEqual([]);
});

test("60 hosts of one waiter each are served in the order of their tickets", async () => {
  const HOSTS = 60;
  const [time, table] = [new ManualTime(), new MemoryTable()];
  const holder = await new MemoryHost(time, { owner: "holder", table }).mutex(NAME, FAIR).lock();
  const order: string[] = [];
  const tickets = new Map<string, bigint>();
  const hosts = Array.from({ length: HOSTS }, (_, index) => new MemoryHost(time, { owner: `host-${index}`, table }));
  const all = hosts.map(async (host) => {
    const { owner } = host.session;
    // Their draws leave at once, and their rows come in another order.
    host.fate = (message) =>
      takesOf(message).some(({ at }) => ticketOf(at.sort) !== undefined)
        ? time.clock().sleep((37 * Number(owner.slice(5))) % 50)
        : "answered";
    await host.mutex(NAME, FAIR).run(async () => {
      order.push(owner);
      await time.clock().sleep(5);
    });
  });
  const served = watch(Promise.all(all));
  await time.advanceUntil(() => placesIn(table, NAME).length === HOSTS);
  for (const { owner, sort } of placesIn(table, NAME)) tickets.set(owner, ticketOf(sort) as bigint);
  expect(tickets.size).toBe(HOSTS);
  await holder.unlock();
  await time.advanceUntil(() => served.settled, { stepMs: 10, withinMs: 300_000 });
  const inOrder = [...tickets].sort(([, one], [, other]) => (one < other ? -1 : 1)).map(([owner]) => owner);
  expect(order).toEqual(inOrder);
  await turn();
  expect(leftIn(table)).toEqual([]);
  const requests = hosts.reduce((sum, { sent }) => sum + sent.length, 0);
  expect(requests / HOSTS).toBeLessThan(20);
});
