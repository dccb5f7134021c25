import { describe, expect, test } from "@jest/globals";
import type { Lock } from "../lib/index.js";
import { Mutex } from "../lib/mutex.js";
import { mutexSettings } from "../lib/options/mutex.js";
import { Sections } from "../lib/queues/sections.js";
import { Session } from "../lib/session/session.js";
import { type Service, slowTable } from "./load/slow-table.js";
import { hear } from "./support/diagnostics.js";
import { ManualTime } from "./support/manual-time.js";
import { seededRandom } from "./support/seeded-random.js";

// How fast the machine is must not matter, so time is virtual, and the table has the capacity that a test gives it. The
// same on real engines, where the machine does matter: `npm run load`.

/** A table that serves so many requests a second, a few ms away. */
function near(perSecond: (elapsedS: number) => number): Service {
  return { serviceMs: (elapsedMs) => 1_000 / perSecond(elapsedMs / 1_000), distanceMs: 4 };
}

/** Stands still for so long in each period, from so many ms of it on. @returns when it goes on. */
function pausing(periodMs: number, pauseMs: number, fromMs: number): (elapsedMs: number) => number {
  return (elapsedMs) => {
    const sinceMs = (elapsedMs + periodMs - fromMs) % periodMs;
    return sinceMs < pauseMs ? elapsedMs + pauseMs - sinceMs : elapsedMs;
  };
}

/** A process, and what it keeps. */
function scene(service: Service, ttlMs: number) {
  const time = new ManualTime();
  const { store, served } = slowTable(time, service);
  const session = new Session({
    store,
    clock: time.clock({ maxSkewMs: 500 }),
    owner: "host",
    random: seededRandom(1),
  });
  const sections = new Sections(session);
  const settings = mutexSettings({ ttlMs });
  const counts = { taken: 0, lost: 0, served: 0, failed: 0 };

  function lock(name: string): Promise<Lock> {
    return new Mutex(sections, name, settings).lock();
  }

  /** Takes so many locks, so many at a time, and keeps them. */
  async function keep(locks: number, atOnce: number): Promise<void> {
    let next = 0;
    const taker = async (): Promise<void> => {
      for (let index = next++; index < locks; index = next++) {
        const kept = await lock(`kept-${index}`);
        kept.signal.addEventListener("abort", () => {
          counts.lost += 1;
        });
        counts.taken += 1;
      }
    };
    await Promise.all(Array.from({ length: atOnce }, taker));
  }

  /** So many calls at once, each released as soon as it has its lock. */
  function burst(calls: number, names: number): void {
    for (let index = 0; index < calls; index += 1) {
      lock(`burst-${index % names}`)
        .then((taken) => taken.unlock())
        .then(
          () => {
            counts.served += 1;
          },
          () => {
            counts.failed += 1;
          },
        );
    }
  }

  /** Lets time pass until the condition holds, for so long at most. */
  async function pass(mostS: number, until: () => boolean = () => false): Promise<void> {
    for (let second = 0; second < mostS && !until(); second += 1) await time.advance(1_000);
  }

  return { time, counts, served, keep, burst, pass };
}

describe("3 000 calls at once of a process that holds 50 locks of 5 s are served, and none of the 50 is lost", () => {
  test.each([3_000, 30])("for %i names", async (names) => {
    const { counts, keep, burst, pass } = scene(
      near(() => 200),
      5_000,
    );
    const unreleased = hear("dynamutex:release-failed");
    void keep(50, 50);
    await pass(10, () => counts.taken === 50);
    burst(3_000, names);
    await pass(120, () => counts.served === 3_000);
    expect(counts).toEqual({ taken: 50, lost: 0, served: 3_000, failed: 0 });
    expect(unreleased).toEqual([]);
  });
});

describe("500 locks of 3 s, taken 32 at a time by a new process", () => {
  test.each<[string, Service]>([
    // Each of them has to be renewed once in 2.7 s at the least.
    ["on a table that serves 220 requests a second", near(() => 220)],
    ["on a table that is slow in its first ten seconds", near((s) => Math.min(300, 20 + 28 * s))],
    [
      "on a table that stands still for 0.7 s again and again",
      { ...near(() => 500), goesOnAt: pausing(3_000, 700, 1_000) },
    ],
  ])("%s, are kept", async (_, service) => {
    const { counts, keep, pass } = scene(service, 3_000);
    void keep(500, 32);
    await pass(60, () => counts.taken === 500);
    await pass(6);
    expect(counts).toMatchObject({ taken: 500, lost: 0 });
  });

  test("without batches, on a table that serves 220 requests a second, are taken slowly, and those that are taken are kept", async () => {
    const { counts, keep, pass } = scene({ ...near(() => 220), hasBatches: false }, 3_000);
    void keep(500, 32);
    await pass(60, () => counts.taken === 500);
    expect(counts.lost).toBe(0);
    expect(counts.taken).toBeGreaterThan(300);
  });

  test("on a table that cannot keep so many, wait rather than cost others their leases", async () => {
    const { counts, served, keep, pass } = scene(
      near(() => 80),
      3_000,
    );
    void keep(500, 32);
    await pass(20);
    expect(counts.lost).toBe(0);
    expect(counts.taken).toBeGreaterThan(80);
    expect(served()).toBeGreaterThan(19 * 80);
  });
});

test("700 locks of 6 s are kept on a table that is 300 ms away", async () => {
  const { counts, keep, pass } = scene({ serviceMs: () => 1, distanceMs: 300 }, 6_000);
  void keep(700, 700);
  await pass(30, () => counts.taken === 700);
  await pass(12);
  expect(counts).toMatchObject({ taken: 700, lost: 0 });
});

test("200 locks of 10 s are kept on a table that hangs for 3.5 s again and again", async () => {
  const { counts, keep, pass } = scene({ ...near(() => 500), goesOnAt: pausing(15_000, 3_500, 10_000) }, 10_000);
  void keep(200, 32);
  await pass(10, () => counts.taken === 200);
  await pass(60);
  expect(counts).toMatchObject({ taken: 200, lost: 0 });
});

test("a key that throttles half of its requests for 15 s keeps its own lock, and costs 50 others none", async () => {
  const random = seededRandom(2);
  let isHot = false;
  const isThrottled = (name: string): boolean => isHot && name === "kept-0" && random() < 0.5;
  const { time, counts, keep, pass } = scene({ ...near(() => 300), isThrottled }, 5_000);
  void keep(51, 51);
  await pass(10, () => counts.taken === 51);
  isHot = true;
  await time.advance(15_000);
  isHot = false;
  await pass(6);
  expect(counts).toMatchObject({ taken: 51, lost: 0 });
});
