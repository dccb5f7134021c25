import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import type { MutexOptions } from "../../../lib/index.js";
import { lockAt, permitAt } from "../../../lib/protocol/addresses.js";
import type { Row } from "../../../lib/protocol/row.js";
import { Contention } from "../../../lib/session/contention.js";
import { DistantHosts, NAME, type Work } from "../../support/distant-hosts.js";
import { IS_FULL } from "../../support/full.js";

const AT = lockAt(NAME);

let world: DistantHosts;
beforeEach(() => {
  world = new DistantHosts();
});
afterEach(() => world.close());

const TWO_TTLS: readonly MutexOptions[] = [{ ttlMs: 10_000 }, { ttlMs: 20_000 }];

const WORK: readonly (readonly [string, Work])[] = [
  ["plain", { sectionMs: 10 }],
  ["with data", { sectionMs: 200, lock: { data: { job: 1 } } }],
  ["with data, and short", { sectionMs: 10, lock: { data: { job: 1 } } }],
  ["with a hold that is shorter than they are", { sectionMs: 100, lock: { holdAtLeastMs: 50 } }],
  ["with a hold that is longer than they are", { sectionMs: 100, lock: { holdAtLeastMs: 150 } }],
  ["that are fenced", { sectionMs: 10, mutexes: [{ fencing: true }] }],
  ["that are fenced, with data", { sectionMs: 50, mutexes: [{ fencing: true }], lock: { data: { job: 1 } } }],
  ["with guards", { sectionMs: 10, guarded: true }],
  ["with leases of two lengths", { sectionMs: 50, mutexes: TWO_TTLS }],
];

describe("hosts that want one lock all the time", () => {
  // Long enough not to take the test long.
  const FEWER = WORK.filter(([, { sectionMs }]) => sectionMs >= 50);
  test.each([
    ...WORK.map(([name, work]) => [2, name, { callers: 3, ...work }, 10_000] as const),
    ...(IS_FULL ? FEWER : []).map(([name, work]) => [4, name, { callers: 2, ...work }, 30_000] as const),
  ])("trap 27: of %d with sections %s, none gets less than half of its share", async (count, _, work, ms) => {
    const hosts = Array.from({ length: count }, () => world.add(work));
    await world.time.advance(ms);
    const sections = hosts.map((host) => host.sections);
    const all = sections.reduce((sum, each) => sum + each, 0);
    expect(Math.min(...sections)).toBeGreaterThan(all / count / 2);
    // What fairness costs: a mark is a write.
    const marks = hosts.reduce((sum, host) => sum + host.marks, 0);
    expect(marks).toBeLessThan(all / 10);
    // And the lock is in use for most of the time.
    expect(all * work.sectionMs).toBeGreaterThan(ms / 4);
  });

  test("trap 27: one caller each, which releases and asks again at once, get their turns as well", async () => {
    const hosts = [1, 2].map(() => world.add({ sectionMs: 20 }));
    await world.time.advance(15_000);
    const sections = hosts.map((host) => host.sections);
    expect(Math.min(...sections) * 4).toBeGreaterThan(sections.reduce((sum, each) => sum + each, 0));
  });
});

describe("one caller that waits for a busy host", () => {
  test.each(WORK)("trap 27: with sections %s, it gets in again and again, each time soon", async (_, work) => {
    world.add({ callers: 3, ...work });
    const waiter = world.add({ sectionMs: 10, pauseMs: 300, lock: { data: {} }, mutexes: [{ ttlMs: 10_000 }] });
    await world.time.advance(10_000);
    // After handOverMs it marks the row, by its next poll; the host looks every handOverMs, and a section runs at most.
    expect(Math.max(...waiter.waits)).toBeLessThan(500 + 500 + 500 + 500 + 200);
    expect(waiter.sections).toBeGreaterThan(3);
  });

  test("trap 27: a host whose callers try and try again lets it in, too", async () => {
    const busy = world.add({ sectionMs: 20, tries: true });
    const waiter = world.add({ sectionMs: 20 });
    await world.time.advance(10_000);
    expect(waiter.sections * 4).toBeGreaterThan(busy.sections + waiter.sections);
  });

  test("callers of one process that lead for less than handOverMs each mark the row together", async () => {
    world.add({ callers: 3, sectionMs: 200, lock: { data: {} } });
    const impatient = world.add({ callers: 0, sectionMs: 10 });
    const mutex = impatient.mutex({});
    let got = false;
    const call = async (): Promise<void> => {
      while (!got) {
        const lock = await mutex.lock({ waitMs: 900 }).catch(() => undefined);
        got ||= lock !== undefined;
        await lock?.unlock();
      }
    };
    const first = call();
    await world.time.advance(450);
    const calls = Promise.all([first, call()]);
    await world.time.advance(20_000);
    expect(got).toBe(true);
    await calls;
  });
});

describe("a host that nobody waits for", () => {
  const busy: Work = { callers: 3, sectionMs: 50, lock: { data: {} } };

  /** How many sections a host alone has in this time: a section, its release, the next one's take. */
  const sectionsIn = (ms: number): number => ms / (50 + 16);

  test.each([
    ["of somebody who has died", 60_000],
    ["by a clock that is an hour ahead", 3_600_000],
  ])("pauses once for a mark %s, and never again", async (_, aheadMs) => {
    const host = world.add(busy);
    await world.time.advance(1_000);
    const mark = () => world.table.apply({ kind: "want", at: AT, until: world.time.now + aheadMs });
    while (mark().kind === "refused") await world.time.advance(5);
    await world.time.advance(1_000);
    host.sections = 0;
    await world.time.advance(20_000);
    expect(host.sections).toBeGreaterThan(sectionsIn(20_000 - 800) - 2);
    expect(host.marks).toBe(0);
  });

  test("passes a lease on with a read every handOverMs, and nothing else", async () => {
    const host = world.add({ callers: 32, sectionMs: 10 });
    await world.time.advance(1_000);
    const [requests, sections] = [host.requests, host.sections];
    await world.time.advance(30_000);
    // And a renewal every 15 s.
    expect(host.requests - requests).toBeLessThanOrEqual(30_000 / 500 + 30_000 / 15_000 + 1);
    expect(host.sections - sections).toBeGreaterThan(30_000 / 10 - 75);
  });
});

describe("a mark", () => {
  test("trap 27: is remembered by who finds it, and carried on by each take, until it is over", async () => {
    const host = world.add({ callers: 0, sectionMs: 0 });
    const mutex = host.mutex({ handOverMs: 30_000 });
    const { now } = world.time;
    const others = { format: 1, uuid: "others", expires: now + 1_000, ttlMs: 1_000, owner: "elsewhere", acquired: now };
    world.table.plant(AT, { ...others, wanted: now + 20_000 });
    const wanted: (number | undefined)[] = [];
    const section = async (): Promise<void> => {
      wanted.push(world.table.row(AT)?.wanted);
      await world.time.clock().sleep(6_000);
    };
    const all = Promise.all([1, 2, 3, 4, 5].map((job) => mutex.run(section, { data: { job } })));
    await world.time.advance(40_000);
    await all;
    expect(wanted).toEqual([now + 20_000, now + 20_000, now + 20_000, now + 20_000, undefined]);
  });

  test("is not written where the second look shows a row that may be taken", async () => {
    const host = world.add({ callers: 0, sectionMs: 0 });
    const { now } = world.time;
    const over = { format: 1, uuid: "others", expires: now + 30, ttlMs: 1_000, owner: "elsewhere", acquired: now };
    world.table.plant(AT, over);
    const locking = host.mutex({ handOverMs: 1 }).lock();
    await world.time.advance(200);
    const lock = await locking;
    expect(lock.held).toBe(true);
    expect(host.marks).toBe(0);
    const unlocking = lock.unlock();
    await world.time.advance(20);
    await unlocking;
  });
});

test.each([
  ["this process has ends no turn of it, whatever an old look shows", ["ours"], 500],
  ["another has ends it", [], 0],
])("a permit in the way that %s", (_, uuids, leftMs) => {
  const { time } = world;
  const at = permitAt(NAME, 0);
  const contention = new Contention(time.clock(), () => uuids);
  const lease = { expires: time.now + 1_000, ttlMs: 1_000, owner: "the same", acquired: time.now };
  world.table.plant(at, { format: 1, ...lease, uuid: "others", wanted: time.now + 60_000 });
  const row = world.table.row(at) as Row;
  contention.sees(row);
  contention.begins(at, time.clock().atLeast());
  contention.waitsFor(row);
  expect(contention.turnLeftMs(at, 500)).toBe(leftMs);
});

test.each([
  ["as it was before the take tells nothing", "others", Number.POSITIVE_INFINITY],
  ["as it was before the take, free, tells nothing", undefined, Number.POSITIVE_INFINITY],
  ["with the uuid of this process ends its turn", "ours", 0],
])("a look that shows a mark first after the take, and the row %s", (_, uuid, leftMs) => {
  const { time } = world;
  const at = permitAt(NAME, 0);
  const contention = new Contention(time.clock(), () => ["ours"]);
  const lease = { expires: time.now + 1_000, ttlMs: 1_000, owner: "the same", acquired: time.now };
  world.table.plant(at, { format: 1, ...lease, uuid, wanted: time.now + 60_000 });
  contention.begins(at, time.clock().atLeast());
  contention.waitsFor(world.table.row(at) as Row);
  expect(contention.turnLeftMs(at, 500)).toBe(leftMs);
});
