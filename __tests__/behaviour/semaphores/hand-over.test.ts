import { describe, expect, test } from "@jest/globals";
import { MemoryTable } from "../../../lib/testing/memory-table.js";
import { turn, watch } from "../../support/eventually.js";
import { deferred } from "../../support/fault-proxy/deferred.js";
import { ManualTime } from "../../support/manual-time.js";
import { isTake, MemoryHost } from "../../support/memory-host.js";

const NAME = "api";

interface Hosts {
  readonly time: ManualTime;
  readonly one: MemoryHost;
  readonly other: MemoryHost;
}

function twoHosts(): Hosts {
  const time = new ManualTime();
  const one = new MemoryHost(time, { owner: "one" });
  return { time, one, other: new MemoryHost(time, { owner: "other", table: one.table }) };
}

test("a permit goes on to the next section of its process without a request", async () => {
  const host = new MemoryHost(new ManualTime());
  const semaphore = host.semaphore(NAME, { permits: 1 });
  const first = await semaphore.lock();
  const waiting = semaphore.lock();
  host.told();
  await first.unlock();
  const second = await waiting;
  expect([second.uuid, second.permit]).toEqual([first.uuid, first.permit]);
  expect([first.held, second.held]).toEqual([false, true]);
  expect(host.told()).toEqual([]);
  await second.unlock();
  expect(host.told()).toEqual(["vacate semaphore#0000"]);
});

test("whichever permit is free first goes to whoever asked first", async () => {
  const host = new MemoryHost(new ManualTime());
  const semaphore = host.semaphore(NAME, { permits: 2 });
  const held = [await semaphore.lock(), await semaphore.lock()];
  const order: number[] = [];
  const waiting = [1, 2, 3].map(async (number) => {
    const permit = await semaphore.lock();
    order.push(number);
    return permit;
  });
  await turn();
  await held[1]?.unlock();
  const first = await waiting[0];
  expect(first?.permit).toBe(held[1]?.permit);
  await held[0]?.unlock();
  const second = await waiting[1];
  expect(second?.permit).toBe(held[0]?.permit);
  await second?.unlock();
  await waiting[2];
  expect(order).toEqual([1, 2, 3]);
});

// Fair callers stand in one line, whatever number they know of.
test.each([false, true])("a caller that knows of fewer permits gets one that it knows of: fair %s", async (fair) => {
  const time = new ManualTime();
  const host = new MemoryHost(time);
  const [many, few] = [host.semaphore(NAME, { permits: 3, fair }), host.semaphore(NAME, { permits: 2, fair })];
  const held = [await many.lock(), await many.lock(), await many.lock()];
  const permits = new Map(held.map((lock) => [lock.permit, lock]));
  const call = few.lock();
  const waiting = watch(call);
  await permits.get(2)?.unlock();
  await time.advance(5_000);
  expect(waiting.settled).toBe(false);
  await permits.get(1)?.unlock();
  await time.advanceUntil(() => waiting.settled);
  expect((await call).permit).toBe(1);
});

test("who knows of more permits does not wait behind a caller of its process that knows of fewer", async () => {
  const { time, one, other } = twoHosts();
  const [many, few] = [one.semaphore(NAME, { permits: 2 }), one.semaphore(NAME, { permits: 1 })];
  await using _held = await other.semaphore(NAME, { permits: 1 }).lock();
  const behind = watch(few.lock());
  await time.advance(1_000);
  const call = many.lock();
  const waiting = watch(call);
  await time.advanceUntil(() => waiting.settled);
  expect((await call).permit).toBe(1);
  expect(behind.settled).toBe(false);
});

test("who was served is not served again: what it has asked for meanwhile goes to the next of its process", async () => {
  const { time, one, other } = twoHosts();
  const elsewhere = await other.semaphore(NAME, { permits: 2 }).lock();
  const semaphore = one.semaphore(NAME, { permits: 2, poll: { minMs: 50, maxMs: 50 } });
  const own = await semaphore.lock();
  const [first, second] = [semaphore.lock(), semaphore.lock()];
  await time.advance(10);
  const answered = deferred<void>();
  one.fate = (message) => (isTake(message) ? answered.promise : "answered");
  const before = one.sent.filter(isTake).length;
  await elsewhere.unlock();
  await time.advanceUntil(() => one.sent.filter(isTake).length > before);
  await own.unlock();
  const served = await first;
  expect(served.permit).toBe(own.permit);
  answered.resolve();
  const next = await second;
  expect(next.permit).toBe(elsewhere.permit);
  expect([served.held, next.held]).toEqual([true, true]);
});

test("a permit with holdAtLeastMs stays taken for that long, and the others are free", async () => {
  const { time, one, other } = twoHosts();
  const held = await one.semaphore(NAME, { permits: 2 }).lock({ holdAtLeastMs: 5_000 });
  await held.unlock();
  expect(one.permit(NAME, held.permit)).toMatchObject({ uuid: undefined });
  const asking = other.semaphore(NAME, { permits: 2 });
  await using free = await asking.tryLock();
  expect(free?.permit).not.toBe(held.permit);
  expect(await asking.tryLock()).toBeNull();
  await time.advance(5_001);
  await using second = await asking.tryLock();
  expect(second?.permit).toBe(held.permit);
});

test("a process that passes permits on lets another host in after handOverMs, and keeps its other permits meanwhile", async () => {
  const { time, one, other } = twoHosts();
  const options = { permits: 2, handOverMs: 500, poll: { minMs: 20, maxMs: 100 } };
  const busy = one.semaphore(NAME, options);
  let enough = false;
  let [running, fewest] = [0, Number.POSITIVE_INFINITY];
  const section = async (): Promise<void> => {
    running += 1;
    await time.clock().sleep(20);
    running -= 1;
  };
  const loops = Array.from({ length: 6 }, async () => {
    while (!enough) await busy.run(section);
  });
  await time.advance(200);
  const asking = other.semaphore(NAME, options).lock();
  const waiting = watch(asking);
  const askedAt = time.elapsed;
  while (!waiting.settled) {
    await time.advance(5);
    fewest = Math.min(fewest, running);
    if (time.elapsed - askedAt > 5_000) throw new Error("it never got in");
  }
  const served = await asking;
  const waitedMs = time.elapsed - askedAt;
  // It says so after handOverMs, and a look of the busy process, which comes every handOverMs, finds that.
  expect(waitedMs).toBeGreaterThanOrEqual(500);
  expect(waitedMs).toBeLessThan(1_500);
  expect(fewest).toBeGreaterThanOrEqual(1);
  await served.unlock();
  enough = true;
  await time.settle(Promise.all(loops));
});

test("a process that passes a permit on all the time finds one that another host frees", async () => {
  const { time, one, other } = twoHosts();
  const held = await other.semaphore(NAME, { permits: 2 }).lock();
  const semaphore = one.semaphore(NAME, { permits: 2 });
  const isBusy = () => time.elapsed < 3_000;
  const worker = async (): Promise<void> => {
    while (isBusy()) {
      const lock = await semaphore.lock();
      await new Promise<void>((resolve) => one.session.clock.alarm(20, resolve));
      await lock.unlock();
    }
  };
  const work = Promise.all(Array.from({ length: 8 }, worker));
  await time.advance(1_000);
  await held.unlock();
  const freedAt = time.elapsed;
  await time.advanceUntil(() => one.permit(NAME, held.permit)?.owner === "one" || !isBusy());
  // The shortest pause is 50 ms.
  expect(time.elapsed - freedAt).toBeLessThan(200);
  await time.settle(work);
});

/** What eight workers of one process send for each section, which lasts that long, while others hold some of four permits. */
async function requestsForEach({ needed, others }: { needed: number; others: number }, sectionMs: number) {
  const time = new ManualTime();
  const table = new MemoryTable({ pageItems: 100 });
  const one = new MemoryHost(time, { owner: "one", table });
  const other = new MemoryHost(time, { owner: "other", table });
  if (others > 0) await other.semaphore(NAME, { permits: 4 }).lock({ permits: others });
  const semaphore = one.semaphore(NAME, { permits: 4 });
  let sections = 0;
  const startedAt = time.elapsed;
  const worker = async (): Promise<void> => {
    while (sections < 400) {
      const lock = await semaphore.lock({ permits: needed });
      await new Promise<void>((resolve) => one.session.clock.alarm(sectionMs, resolve));
      sections += 1;
      await lock.unlock();
    }
  };
  await time.settle(Promise.all(Array.from({ length: 8 }, worker)));
  const looks = one.sent.filter(({ kind }) => kind === "query").length;
  return { each: one.sent.length / sections, looks, elapsedMs: time.elapsed - startedAt };
}

describe.each([
  { title: "two of four permits", needed: 2, others: 0 },
  { title: "one permit beside three that others hold", needed: 1, others: 3 },
])("a process that passes on $title", (work) => {
  test("asks the table once for five of its short sections at most", async () => {
    expect((await requestsForEach(work, 5)).each).toBeLessThanOrEqual(0.2);
  });

  test("looks for permits that others free once a pause, however many sections there are", async () => {
    const { looks, elapsedMs } = await requestsForEach(work, 1);
    // The shortest pause is 50 ms, and some of the looks follow a release.
    expect(looks).toBeLessThanOrEqual(1.5 * Math.ceil(elapsedMs / 50) + 8);
  });
});
