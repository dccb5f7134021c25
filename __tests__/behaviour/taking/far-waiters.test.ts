import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { lockAt } from "../../../lib/protocol/addresses.js";
import { markInNumber, numberOfMark } from "../../../lib/protocol/mark.js";
import { DistantHosts, NAME, type Work } from "../../support/distant-hosts.js";

const AT = lockAt(NAME);

let world: DistantHosts;
beforeEach(() => {
  world = new DistantHosts();
});
afterEach(() => world.close());

const HAND_OVER_MS = 500;

interface Waiter {
  readonly oneWayMs: number;
  readonly poll: { readonly minMs: number; readonly maxMs: number };
}

const WAITERS: readonly (readonly [string, Waiter])[] = [
  ["near the table", { oneWayMs: 4, poll: { minMs: 50, maxMs: 400 } }],
  ["600 ms from the table", { oneWayMs: 300, poll: { minMs: 50, maxMs: 400 } }],
  ["1.2 s from the table", { oneWayMs: 600, poll: { minMs: 50, maxMs: 400 } }],
  ["that polls every 2 s", { oneWayMs: 4, poll: { minMs: 2_000, maxMs: 2_000 } }],
];

const BUSY: readonly (readonly [string, Work])[] = [
  ["that passes its lease on", { callers: 3, sectionMs: 10 }],
  ["that takes the lock afresh each time", { callers: 3, sectionMs: 20, lock: { data: { job: 1 } } }],
];

/**
 * What a waiter may have to wait for: its own process stands back after its last section, if that section and its release took
 * `handOverMs`; its first poll after `handOverMs` marks the row; a look of the busy host, and the end of a section; what the
 * waiter needs from there. The busy host may stand back for an earlier mark as the waiter asks, and be back just before its look: then
 * all of that happens once more.
 */
function boundMs({ oneWayMs, poll }: Waiter, sectionMs: number): number {
  const answerMs = 2 * oneWayMs;
  const needMs = Math.min(5_000, 1.25 * poll.maxMs + 3 * answerMs + 250);
  const markedMs = HAND_OVER_MS + 1.25 * poll.maxMs + 3 * answerMs;
  return needMs + answerMs + 2 * (markedMs + HAND_OVER_MS + sectionMs + needMs);
}

describe.each(BUSY)("a busy host %s", (_, busy) => {
  test.each(WAITERS)(
    "trap 27: lets a waiter %s in, each time within what its polls and answers take",
    async (_, waiter) => {
      world.add(busy);
      const { oneWayMs, poll } = waiter;
      const options = { poll, handOverMs: HAND_OVER_MS };
      const host = world.add({ oneWayMs, sectionMs: 10, pauseMs: 300, lock: { data: {} }, mutexes: [options] });
      await world.time.advance(60_000);
      expect(host.sections).toBeGreaterThanOrEqual(5);
      expect(Math.max(...host.waits)).toBeLessThan(boundMs(waiter, busy.sectionMs));
    },
  );

  test("goes on after a pause of at most 5 s, where a waiter would need longer", async () => {
    const host = world.add(busy);
    await world.time.advance(1_000);
    while (!world.table.apply({ kind: "want", at: AT, until: markFor(60_000) }).kind.startsWith("applied"))
      await world.time.advance(3);
    await world.time.advance(1_000);
    const before = host.sections;
    await world.time.advance(5_000);
    expect(host.sections).toBeGreaterThan(before);
  });
});

test.each(WAITERS)("trap 27: a waiter %s gets a permit that a busy host passes on", async (_, waiter) => {
  const { oneWayMs, poll } = waiter;
  const busy = { callers: 6, sectionMs: 20, permits: 2 };
  world.add(busy);
  const options = { poll, handOverMs: HAND_OVER_MS };
  const host = world.add({ oneWayMs, permits: 2, sectionMs: 10, pauseMs: 300, mutexes: [options] });
  await world.time.advance(60_000);
  // A look may have shown as free what was taken before the claim.
  expect(Math.max(...host.waits)).toBeLessThan(2 * boundMs(waiter, busy.sectionMs));
  expect(host.sections).toBeGreaterThanOrEqual(3);
});

function markFor(needMs: number): number {
  return numberOfMark({ until: world.time.now + 60_000, needMs });
}

describe("a mark", () => {
  test.each([
    [1, 250],
    [524, 750],
    [4_999, 5_000],
    [60_000, 5_000],
  ])("that says that its writer needs %d ms counts as %d", (needMs, counts) => {
    const { now } = world.time;
    expect(markInNumber(numberOfMark({ until: now + 0.25, needMs }))).toEqual({ until: now + 1, needMs: counts });
  });

  test("without a need, as an older process writes and carries it on, counts as two longest polls", async () => {
    const { now } = world.time;
    expect(markInNumber(now)).toEqual({ until: now, needMs: undefined });
    expect(numberOfMark({ until: now, needMs: undefined })).toBe(now);
    expect(markInNumber(Math.ceil(markFor(3_000)))).toEqual({ until: now + 60_001, needMs: undefined });
  });

  test("is written over one of a waiter that needs less, once, and not over one that says as much", async () => {
    const holder = world.add({ callers: 0, sectionMs: 0 });
    const holding = holder.mutex({}).lock();
    await world.time.advance(100);
    const lock = await holding;
    const near = world.add({ sectionMs: 0 });
    const far = world.add({ sectionMs: 0, oneWayMs: 300 });
    const second = world.add({ sectionMs: 0 });
    await world.time.advance(20_000);
    expect([near.marks, far.marks, second.marks].sort()).toEqual([0, 1, 1]);
    expect(far.marks).toBe(1);
    expect(markInNumber(world.table.row(AT)?.wanted ?? 0).needMs).toBe(2_500);
    const unlocking = lock.unlock();
    await world.time.advance(20);
    await unlocking;
  });

  test("with a need is carried on, with the longest need that was seen", async () => {
    const host = world.add({ callers: 0, sectionMs: 0 });
    const { now } = world.time;
    const others = { format: 1, uuid: "others", expires: now + 1_000, ttlMs: 1_000, owner: "elsewhere", acquired: now };
    world.table.plant(AT, { ...others, wanted: markFor(2_000) });
    const taking = host.mutex({}).lock();
    await world.time.advance(100);
    world.table.plant(AT, { ...others, wanted: markFor(1_000) });
    await world.time.advance(3_000);
    const lock = await taking;
    const { wanted = 0 } = world.table.row(AT) ?? {};
    const unlocking = lock.unlock();
    await world.time.advance(20);
    await unlocking;
    expect(markInNumber(wanted)).toMatchObject({ needMs: 2_000 });
  });
});
