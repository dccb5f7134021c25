import { describe, expect, test } from "@jest/globals";
import type { Clock, Permit } from "../../../lib/index.js";
import { useWarnings } from "../../support/diagnostics.js";
import { watch } from "../../support/eventually.js";
import { ManualTime } from "../../support/manual-time.js";
import { useScene } from "../../support/scene.js";

const scene = useScene();
const warnings = useWarnings();

/** Long enough that nothing is renewed and that nobody looks for others in the time of a test. */
const LONG = { ttlMs: 36_000_000, handOverMs: 36_000_000, poll: { minMs: 10_000, maxMs: 10_000 } };

describe("a semaphore whose permits sections of this process have", () => {
  async function holding(time: ManualTime, weights: readonly number[], permits = 3) {
    // The clock of a process that runs by itself, as far as the library can tell.
    const clock: Clock = { ...time.clock(), stay: () => () => undefined };
    const semaphore = scene.host({ clock, ...LONG }).semaphore(scene.name, { permits });
    const held: Permit[] = [];
    for (const weight of weights) held.push(await semaphore.lock({ permits: weight }));
    return { semaphore, release: () => Promise.all(held.map((lock) => lock.unlock())) };
  }

  async function timeoutOf(time: ManualTime, waiting: Promise<unknown>): Promise<string> {
    const told = waiting.then(String, (error: Error) => error.message);
    const watched = watch(told);
    await scene.play(time, () => watched.settled, 500);
    return await told;
  }

  // A process is warned once: no other test of this file waits for so long.
  test("is told so in the warning after 5 s as well", async () => {
    const time = new ManualTime();
    const { semaphore, release } = await holding(time, [1, 1, 1]);
    await timeoutOf(time, semaphore.lock({ waitMs: 6_000 }));
    expect(warnings).toEqual([
      expect.stringMatching(/the lock is held by 3 sections of this process with all 3 permits, \S+, for 5 s, since /),
    ]);
    expect(warnings[0]).toContain("If one of these sections awaits this call, neither ends: take all permits that");
    await release();
  });

  test("is told with how many sections have how many of them, and what to do", async () => {
    const time = new ManualTime();
    const { semaphore, release } = await holding(time, [1, 1, 1]);
    const told = await timeoutOf(time, semaphore.lock({ waitMs: 1_000 }));
    expect(told).toMatch(/ ms; last seen held by 3 sections of this process with all 3 permits, \S+, until \S+Z\. /);
    expect(told).toMatch(
      /\. If one of these sections awaits this call, waiting longer does not help: take all permits that a section needs by one call, with { permits: … }, before it begins$/,
    );
    expect(told).not.toContain("mutex");
    await release();
  });

  test("is told with those in use, where a call asks for more than the rest, and a section that has several counts once", async () => {
    const time = new ManualTime();
    const { semaphore, release } = await holding(time, [2, 1], 4);
    const told = await timeoutOf(time, semaphore.lock({ permits: 2, waitMs: 1_000 }));
    expect(told).toContain("held by 2 sections of this process with 3 of 4 permits, ");
    await release();
  });
});
