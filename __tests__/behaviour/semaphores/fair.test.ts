import { expect, test } from "@jest/globals";
import type { Permit, SemaphoreOptions } from "../../../lib/index.js";
import { mutexSettings } from "../../../lib/options/mutex.js";
import { permitAt } from "../../../lib/protocol/addresses.js";
import { FairQueue } from "../../../lib/queues/fair-queue.js";
import { Sections } from "../../../lib/queues/sections.js";
import { Turns } from "../../../lib/queues/turns.js";
import { Call } from "../../../lib/taking/call.js";
import { ManualTime } from "../../support/manual-time.js";
import { inWords, MemoryHost } from "../../support/memory-host.js";

const NAME = "api";

/** Hosts of one table. */
function hostsOf(...owners: readonly string[]): { readonly time: ManualTime; readonly hosts: MemoryHost[] } {
  const time = new ManualTime();
  const first = new MemoryHost(time, { owner: owners[0] ?? "" });
  const others = owners.slice(1).map((owner) => new MemoryHost(time, { owner, table: first.table }));
  return { time, hosts: [first, ...others] };
}

/** Lets time pass until the places of all callers of this host are there. */
async function untilStanding(time: ManualTime, { table, session }: MemoryHost): Promise<void> {
  const stands = (): boolean =>
    table.rows.some(({ sort, owner }) => sort.startsWith("semaphore-queue#") && owner === session.owner);
  await time.advanceUntil(stands);
}

/** A caller of this host, whose permit is added to the others as it gets it. */
function ask(host: MemoryHost, options: SemaphoreOptions, got: Permit[]): void {
  void host
    .semaphore(NAME, options)
    .lock()
    .then((permit) => got.push(permit));
}

const takesOfPermits = ({ sent }: MemoryHost): string[] =>
  sent.map(inWords).filter((request) => request.startsWith("take semaphore#"));

test("permits go to hosts in the order of their tickets", async () => {
  const { time, hosts } = hostsOf("holder", "a", "b", "c");
  const [holder, ...waiters] = hosts as [MemoryHost, ...MemoryHost[]];
  const options = { permits: 2, fair: true, ttlMs: 60_000 };
  const held = [await holder.semaphore(NAME, options).lock(), await holder.semaphore(NAME, options).lock()];
  const got: Permit[] = [];
  for (const host of waiters) {
    ask(host, options, got);
    await untilStanding(time, host);
  }
  await held[0]?.unlock();
  await time.advanceUntil(() => got.length === 1);
  await held[1]?.unlock();
  await time.advanceUntil(() => got.length === 2);
  await got[0]?.unlock();
  await time.advanceUntil(() => got.length === 3);
  expect(got.map(({ owner }) => owner)).toEqual(["a", "b", "c"]);
});

test("the j-th place takes the j-th free permit, so that none of them is refused", async () => {
  const { time, hosts } = hostsOf("holder", "a", "b", "c");
  const [holder, ...waiters] = hosts as [MemoryHost, ...MemoryHost[]];
  const options = { permits: 3, fair: true, ttlMs: 60_000 };
  const held = await Promise.all([1, 2, 3].map(() => holder.semaphore(NAME, options).lock()));
  const got: Permit[] = [];
  for (const host of waiters) {
    ask(host, options, got);
    await untilStanding(time, host);
  }
  await Promise.all(held.map((permit) => permit.unlock()));
  await time.advanceUntil(() => got.length === 3);
  expect(waiters.map((host) => takesOfPermits(host).length)).toEqual([1, 1, 1]);
  expect(new Set(got.map(({ permit }) => permit)).size).toBe(3);
});

test("a place counts for as many permits as it has sections: those behind do not take what is meant for them", async () => {
  const { time, hosts } = hostsOf("holder", "a", "b");
  const [holder, a, b] = hosts as [MemoryHost, MemoryHost, MemoryHost];
  const options = { permits: 2, fair: true, ttlMs: 60_000 };
  const held = await Promise.all([1, 2].map(() => holder.semaphore(NAME, options).lock()));
  const got: Permit[] = [];
  for (const host of [a, a, b]) ask(host, options, got);
  await untilStanding(time, a);
  await untilStanding(time, b);
  const { waiters } = await b.semaphore(NAME, options).inspect();
  expect(waiters.map(({ owner, sections }) => [owner, sections])).toEqual([
    ["a", 2],
    ["b", 1],
  ]);
  await Promise.all(held.map((permit) => permit.unlock()));
  await time.advanceUntil(() => got.length === 2);
  expect(got.map(({ owner }) => owner)).toEqual(["a", "a"]);
  await got[0]?.unlock();
  await time.advanceUntil(() => got.length === 3);
  expect(got[2]?.owner).toBe("b");
});

test("a fair semaphore that nobody waits for costs one query more than another", async () => {
  const host = new MemoryHost(new ManualTime());
  const permit = await host.semaphore(NAME, { permits: 2, fair: true }).lock();
  await permit.unlock();
  expect(host.told()).toEqual(["consistent query semaphore#0000", "take semaphore#0000", "vacate semaphore#0000"]);
});

test("a permit is not passed on within its process while others wait before", async () => {
  const { time, hosts } = hostsOf("one", "other");
  const [one, other] = hosts as [MemoryHost, MemoryHost];
  const options = { permits: 1, fair: true, ttlMs: 60_000 };
  const held = await one.semaphore(NAME, options).lock();
  const order: Permit[] = [];
  ask(other, options, order);
  await untilStanding(time, other);
  ask(one, options, order);
  await untilStanding(time, one);
  await held.unlock();
  await time.advanceUntil(() => order.length === 1);
  expect(order[0]?.owner).toBe("other");
  await order[0]?.unlock();
  await time.advanceUntil(() => order.length === 2);
  await order[1]?.unlock();
  await time.advance(1_000);
  expect(one.table.rows).toEqual([]);
});

test.each([true, false])("callers go by a look without a place if it has shown the whole queue: %p", (isWhole) => {
  const { session } = new MemoryHost(new ManualTime());
  const settings = mutexSettings({ fair: true });
  const resource = {
    name: NAME,
    kind: new Sections(session).kinds.semaphore,
    at: permitAt(NAME, 0),
    settings,
    permits: 2,
    weight: 1,
  };
  const line = new FairQueue(session, new Turns(session)).newLine(resource);
  const request = { resource, data: undefined, holdAtLeastMs: 0 };
  line.add({ request, call: new Call(session, NAME, { isPatient: true }), settle: () => undefined });
  // It ended at an own place, which is lost by now: others may wait behind it.
  const admission = { upTo: line.lastNumber, othersWait: false };
  line.seen = { gate: [], places: [], isConsistent: true, isWhole, sentAt: session.clock.atMost(), admission };
  expect(line.knownLook).toBe(isWhole ? line.seen : undefined);
});
