import { expect, test } from "@jest/globals";
import type { Permit, SemaphoreOptions } from "../../../lib/index.js";
import { ticketOf } from "../../../lib/protocol/addresses.js";
import { hear } from "../../support/diagnostics.js";
import { watch } from "../../support/eventually.js";
import { ManualTime } from "../../support/manual-time.js";
import { MemoryHost } from "../../support/memory-host.js";

const NAME = "memory";
const FAIR = { permits: 3, fair: true, ttlMs: 60_000 };

function hostsOf<Owners extends readonly string[]>(...owners: Owners) {
  const time = new ManualTime();
  const first = new MemoryHost(time, { owner: owners[0] ?? "" });
  const others = owners.slice(1).map((owner) => new MemoryHost(time, { owner, table: first.table }));
  return { time, hosts: [first, ...others] as { [Index in keyof Owners]: MemoryHost } };
}

const places = ({ table }: MemoryHost) => table.rows.filter(({ sort }) => ticketOf(sort) !== undefined);

/** A caller of this host stands in the queue, and adds its permits to the others as it gets them. */
async function stand(
  time: ManualTime,
  host: MemoryHost,
  permits: number,
  got: Permit[],
  options: SemaphoreOptions = FAIR,
): Promise<void> {
  const before = places(host).length;
  void host
    .semaphore(NAME, options)
    .lock({ permits })
    .then((permit) => got.push(permit));
  await time.advanceUntil(() => places(host).length > before);
}

test("order is order, the heavy one too: nobody behind it enters, even where a permit is free", async () => {
  const { time, hosts } = hostsOf("holder", "heavy", "light");
  const [holder, heavy, light] = hosts;
  const two = { ...FAIR, permits: 2 };
  const held = await holder.semaphore(NAME, two).lock();
  const got: Permit[] = [];
  await stand(time, heavy, 2, got, two);
  await stand(time, light, 1, got, two);
  await time.advance(5_000);
  expect(got).toEqual([]);
  // A try does not overtake either, although a permit is free.
  expect(await holder.semaphore(NAME, two).tryLock()).toBeNull();
  await held.unlock();
  await time.advanceUntil(() => got.length === 1);
  await time.advance(5_000);
  expect(got.map(({ owner, permits }) => [owner, permits])).toEqual([["heavy", [0, 1]]]);
  await got[0]?.unlock();
  await time.advanceUntil(() => got.length === 2);
  expect(got[1]?.owner).toBe("light");
});

test("who stands behind light ones enters beside them, once there is room for all", async () => {
  const { time, hosts } = hostsOf("holder", "a", "b");
  const [holder, a, b] = hosts;
  const held = await holder.semaphore(NAME, FAIR).lock({ permits: 3 });
  const got: Permit[] = [];
  await stand(time, a, 1, got);
  await stand(time, b, 2, got);
  await held.unlock();
  await time.advanceUntil(() => got.length === 2);
  expect(got.flatMap(({ permits }) => permits).sort()).toEqual([0, 1, 2]);
});

test("the callers of one process keep their order, whatever each of them needs", async () => {
  const { time, hosts } = hostsOf("holder", "crowd");
  const [holder, crowd] = hosts;
  const held = await holder.semaphore(NAME, FAIR).lock({ permits: 3 });
  const got: Permit[] = [];
  for (const permits of [1, 3, 2]) await stand(time, crowd, permits, got);
  await held.unlock();
  await time.advanceUntil(() => got.length === 1);
  await time.advance(3_000);
  for (const [index, count] of [1, 3, 2].entries()) {
    await time.advanceUntil(() => got.length === index + 1);
    await time.advance(3_000);
    expect(got.map(({ permits }) => permits.length)).toEqual([1, 3, 2].slice(0, index + 1));
    expect(got[index]?.permits).toHaveLength(count);
    await got[index]?.unlock();
  }
});

test("a place says how many permits it needs where every version looks, and how many callers share it", async () => {
  const { time, hosts } = hostsOf("holder", "heavy");
  const [holder, heavy] = hosts;
  await holder.semaphore(NAME, FAIR).lock({ permits: 3 });
  const semaphore = heavy.semaphore(NAME, FAIR);
  for (let count = 0; count < 2; count += 1) void semaphore.lock({ permits: 2 });
  await time.advanceUntil(() => places(heavy).length > 0);
  await time.advance(1_000);
  const data = places(heavy).map((place) => place.data);
  // An older version takes `sections` for the number of permits that all who share the place need.
  expect(data.reduce((sum, one) => sum + Number(one?.sections), 0)).toBe(4);
  expect(data.reduce((sum, one) => sum + Number(one?.callers), 0)).toBe(2);
  const { waiters } = await semaphore.inspect();
  expect(waiters.reduce((sum, { sections }) => sum + sections, 0)).toBe(2);
  expect(waiters.reduce((sum, { permits }) => sum + Number(permits), 0)).toBe(4);
});

test("a place of a light caller is as ever", async () => {
  const { time, hosts } = hostsOf("holder", "light");
  const [holder, light] = hosts;
  await holder.semaphore(NAME, FAIR).lock({ permits: 3 });
  await stand(time, light, 1, []);
  expect(places(light)[0]?.data).toEqual({ sections: 1 });
});

test("a place that needs more than another host declares ends with a timeout that names permits-differ", async () => {
  const { time, hosts } = hostsOf("few", "many");
  const [few, many] = hosts;
  const held = await few.semaphore(NAME, { ...FAIR, permits: 2 }).lock();
  const [differ, missed] = [hear("dynamutex:permits-differ"), hear("dynamutex:missed")];
  const waiting = many.semaphore(NAME, FAIR).lock({ permits: 3 });
  const failure = waiting.catch((error: unknown) => error);
  await time.advance(2_000);
  expect(await failure).toMatchObject({ code: "LOCK_TIMEOUT", message: expect.stringContaining("permits-differ") });
  expect(differ).toMatchObject([{ name: NAME, permits: 3, others: 2, owner: "few" }]);
  expect(missed).toMatchObject([{ reason: "timeout" }]);
  await time.advanceUntil(() => places(many).length === 0);
  // Two are as many as the other host knows of.
  await held.unlock();
  await using lock = await many.semaphore(NAME, FAIR).lock({ permits: 2 });
  expect(lock.held).toBe(true);
});

test("a place stands while there is no room, though a caller of its process knows of fewer permits", async () => {
  const { time, hosts } = hostsOf("two", "five", "waits", "both");
  const [two, five, waits, both] = hosts;
  const [ofTwo, ofFive] = [2, 5].map((permits) => ({ ...FAIR, permits }));
  const own = await both.semaphore(NAME, ofTwo as SemaphoreOptions).lock();
  const others = [await two.semaphore(NAME, ofTwo as SemaphoreOptions).lock()];
  const free = { permits: 5, ttlMs: 60_000 };
  others.push(await five.semaphore(NAME, free).lock());
  const got: Permit[] = [];
  await stand(time, waits, 1, got, ofTwo);
  await stand(time, waits, 1, got, ofTwo);
  const lost = hear("dynamutex:ticket-lost");
  await stand(time, both, 1, got, ofFive);
  await time.advance(60_000);
  expect([lost, places(both).length]).toEqual([[], 3]);
  await Promise.all([own, ...others].map((permit) => permit.unlock()));
  await time.advanceUntil(() => got.length === 3);
});

test("a dead holder that knew of fewer permits than a call needs does not end that call", async () => {
  const { time, hosts } = hostsOf("dead", "holder", "waits");
  const [dead, holder, waits] = hosts;
  await dead.semaphore(NAME, { permits: 2, ttlMs: 1_000 }).lock();
  dead.fate = () => "lost";
  await time.advance(30_000);
  const others = { permits: 5, ttlMs: 60_000 };
  const held = await holder.semaphore(NAME, others).lock({ permits: 3 });
  const locking = waits.semaphore(NAME, { ...others, fair: true }).lock({ permits: 3 });
  const watched = watch(locking);
  await time.advance(10_000);
  expect(watched.settled).toBe(false);
  await held.unlock();
  await time.advanceUntil(() => watched.settled);
  expect((await locking).permits.length).toBe(3);
});
