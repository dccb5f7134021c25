import { expect } from "@jest/globals";
import type { Lock, LockOptions } from "../../../lib/index.js";
import { hear } from "../../support/diagnostics.js";
import { LibraryHost } from "../../support/library-host.js";
import { ManualTime } from "../../support/manual-time.js";
import { seededRandom } from "../../support/seeded-random.js";
import { type Service, SlowTable } from "./slow-table.js";

// How fast the machine is must not matter, so time is virtual, and the table has the capacity that a test gives it.

/** A table that serves so many requests a second, a few ms away. */
export function near(perSecond: (elapsedS: number) => number): Service {
  return { serviceMs: (elapsedMs) => 1_000 / perSecond(elapsedMs / 1_000), distanceMs: 4 };
}

/** Stands still for so long in each period, from so many ms of it on. @returns when it goes on. */
export function pausing(periodMs: number, pauseMs: number, fromMs: number): (elapsedMs: number) => number {
  return (elapsedMs) => {
    const sinceMs = (elapsedMs + periodMs - fromMs) % periodMs;
    return sinceMs < pauseMs ? elapsedMs + pauseMs - sinceMs : elapsedMs;
  };
}

/** A process, and what it keeps. */
export function virtualProcess(service: Service, ttlMs: number) {
  const time = new ManualTime();
  const store = new SlowTable(time, service);
  const clock = time.clock({ maxSkewMs: 500 });
  const host = new LibraryHost({ store, clock, owner: "host", random: seededRandom(1) });
  const counts = { taken: 0, lost: 0, served: 0, failed: 0 };
  const count = (what: keyof typeof counts): void => {
    counts[what] += 1;
  };

  function lock(name: string, options: LockOptions = {}): Promise<Lock> {
    return host.mutex(name, { ttlMs }).lock(options);
  }

  /** Takes so many locks, so many at a time, and keeps them. */
  async function keep(locks: number, atOnce: number): Promise<void> {
    let next = 0;
    const taker = async (): Promise<void> => {
      for (let index = next++; index < locks; index = next++) {
        const kept = await lock(`kept-${index}`);
        kept.signal.addEventListener("abort", () => count("lost"));
        count("taken");
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
          () => count("served"),
          () => count("failed"),
        );
    }
  }

  /** Lets time pass until the condition holds, for so long at most. */
  async function pass(mostS: number, until: () => boolean = () => false): Promise<void> {
    for (let second = 0; second < mostS && !until(); second += 1) await time.advance(1_000);
  }

  return { time, counts, store, lock, keep, burst, pass };
}

/** Of a process that holds 50 locks of 5 s, 3 000 calls at once are served, for so many names, and none of the 50 is lost. */
export async function expectBurstServed(names: number): Promise<void> {
  const { counts, keep, burst, pass } = virtualProcess(
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
}
