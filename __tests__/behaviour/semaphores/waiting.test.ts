import { expect, test } from "@jest/globals";
import { LockTimeoutError } from "../../../lib/index.js";
import { permitAt } from "../../../lib/protocol/addresses.js";
import { turn, watch } from "../../support/eventually.js";
import { deferred } from "../../support/fault-proxy/deferred.js";
import { ManualTime } from "../../support/manual-time.js";
import { inWords, isTake, MemoryHost } from "../../support/memory-host.js";

const NAME = "api";

function twoHosts() {
  const time = new ManualTime();
  const one = new MemoryHost(time, { owner: "one" });
  return { time, one, other: new MemoryHost(time, { owner: "other", table: one.table }) };
}

test("who waits looks at all permits with one eventually consistent query at a time, and takes what is free", async () => {
  const { time, one, other } = twoHosts();
  const semaphore = one.semaphore(NAME, { permits: 2 });
  const held = [await semaphore.lock(), await semaphore.lock()];
  const waiting = other.semaphore(NAME, { permits: 2 }).lock();
  const watched = watch(waiting);
  await time.advance(300);
  const [first, ...looks] = other.told();
  expect(first).toMatch(/^take semaphore#000[01]$/);
  expect(looks).toEqual([
    "consistent query semaphore#0000",
    ...Array(other.sent.length - 2).fill("query semaphore#0000"),
  ]);
  await held[1]?.unlock();
  await time.advanceUntil(() => watched.settled);
  const permit = await waiting;
  expect(permit.permit).toBe(held[1]?.permit);
  // What the look has shown is claimed without another.
  expect(other.told().slice(-2)).toEqual(["query semaphore#0000", `take semaphore#000${permit.permit}`]);
});

test("who waits marks again once a mark is over, so that a host whose sections are longer than that lets it in", async () => {
  const { time, one, other } = twoHosts();
  const busy = one.semaphore(NAME, { permits: 1 });
  let ran = 0;
  const sections = Array.from({ length: 6 }, () =>
    busy.run(async () => {
      ran += 1;
      await time.clock().sleep(70_000);
    }),
  );
  await time.advance(1);
  const waiting = other.semaphore(NAME, { permits: 1 }).lock();
  const watched = watch(waiting);
  // The first section has no look for marks in it, and its mark is over before it ends.
  while (!watched.settled && ran < 6) await time.advance(10_000);
  expect(ran).toBeLessThan(4);
  await (await waiting).unlock();
  const ended = watch(Promise.all(sections));
  while (!ended.settled) await time.advance(10_000);
  expect(ran).toBe(6);
});

test("waitMs ends the wait, and its error names a holder", async () => {
  const { time, one, other } = twoHosts();
  const semaphore = one.semaphore(NAME, { permits: 2, ttlMs: 10_000 });
  const uuids = [(await semaphore.lock()).uuid, (await semaphore.lock()).uuid];
  const waiting = other.semaphore(NAME, { permits: 2 }).lock({ waitMs: 1_000 });
  const failure = waiting.catch((error: LockTimeoutError) => error);
  await time.advance(1_000);
  const error = await failure;
  expect(error).toBeInstanceOf(LockTimeoutError);
  expect(error).toMatchObject({ lockName: NAME, waitedMs: 1_000, holder: { owner: "one", kind: "semaphore" } });
  expect(uuids).toContain((error as LockTimeoutError).holder?.uuid);
});

test("a signal ends the wait with its reason, and nothing more is sent for it", async () => {
  const { time, one, other } = twoHosts();
  await using _held = await one.semaphore(NAME, { permits: 1, ttlMs: 60_000 }).lock();
  const controller = new AbortController();
  const waiting = other.semaphore(NAME, { permits: 1 }).lock({ signal: controller.signal });
  await time.advance(100);
  controller.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  other.told();
  await time.advance(10_000);
  expect(other.told()).toEqual([]);
});

test("a permit that arrives after its caller has gone is given back", async () => {
  const { time, one } = twoHosts();
  const answered = deferred<void>();
  one.fate = (message) => (isTake(message) ? answered.promise : "answered");
  const controller = new AbortController();
  const waiting = one.semaphore(NAME, { permits: 3 }).lock({ signal: controller.signal });
  await turn();
  controller.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  answered.resolve();
  await time.advanceUntil(() => one.sent.length > 1 && one.table.rows.length === 0);
});

test("the row of a permit carries the data of its section, and how many permits there are", async () => {
  const { one } = twoHosts();
  await using permit = await one.semaphore(NAME, { permits: 7 }).lock({ data: { order: 42 } });
  const row = one.table.row(permitAt(NAME, permit.permit));
  expect(row).toMatchObject({ data: { order: 42 }, permits: 7, owner: "one", uuid: permit.uuid });
  await permit.replaceData({ order: 43 });
  expect(permit.data).toEqual({ order: 43 });
  expect(one.permit(NAME, permit.permit)?.data).toEqual({ order: 43 });
});

test("a mark that nobody stands behind any more does not end a short wait while permits are free", async () => {
  const { time, one, other } = twoHosts();
  const late = new MemoryHost(time, { owner: "late", table: one.table });
  const of = (host: MemoryHost) => host.semaphore(NAME, { permits: 4 });
  const held = [await of(one).lock(), await of(one).lock(), await of(one).lock(), await of(one).lock()];
  const waiting = of(other).lock();
  await time.advance(3_000);
  const marked = one.table.rows.find(({ wanted }) => wanted !== undefined);
  for (const permit of held) if (permit.uuid !== marked?.uuid) await permit.unlock();
  await time.advance(1_000);
  await (await waiting).unlock();
  await time.advance(5_000);
  // One permit is held, and marked for the rest of a minute; three are free. This one guesses that which is held.
  const number = Number(marked?.sort.split("#")[1]);
  Object.assign(late.session, { random: () => (number + 0.5) / 4 });
  const asked = of(late).lock({ waitMs: 250 });
  const watched = watch(asked);
  await time.advance(300);
  expect(watched.settled).toBe(true);
  expect(await asked).toMatchObject({ held: true });
});

test("while one call asks for a dead holder's permit, the others of its process ask seldom", async () => {
  const { time, one, other } = twoHosts();
  const options = { permits: 2 };
  const { permit } = await one.semaphore(NAME, options).lock();
  await time.advance(1);
  const dead = permitAt(NAME, 1 - permit);
  const row = { format: 1, uuid: "dead", owner: "gone", ttlMs: 1_000, acquired: time.now, expires: 1 };
  one.table.plant(dead, row);
  other.fate = (message) => (inWords(message) === `take ${dead.sort}` ? "lost" : "answered");
  const semaphore = other.semaphore(NAME, options);
  const calls = [semaphore.lock(), semaphore.lock()];
  await time.advance(5_000);
  expect(other.told().length).toBeLessThan(40);
  other.fate = () => "answered";
  const first = Promise.race(calls);
  const watched = watch(first);
  await time.advanceUntil(() => watched.settled);
  await (await first).unlock();
  const served = watch(Promise.all(calls));
  await time.advanceUntil(() => served.settled);
});
