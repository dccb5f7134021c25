import { describe, expect, it } from "@jest/globals";
import { Scheduler } from "./scheduler.js";

const nothing = (): void => undefined;
const never = (): boolean => false;

describe("virtual time", () => {
  it("goes from one thing to the next, and things of one moment happen in the order in which they were made", async () => {
    const scheduler = new Scheduler();
    const seen: string[] = [];
    const note = (what: string) => () => void seen.push(`${what} at ${scheduler.now}`);
    scheduler.at(30, note("third"));
    scheduler.at(10, note("first"));
    scheduler.at(30, note("fourth"));
    scheduler.at(20, note("second"));
    await scheduler.run(100, never, nothing);
    expect(seen).toEqual(["first at 10", "second at 20", "third at 30", "fourth at 30"]);
    expect(scheduler.now).toBe(100);
  });

  it("does not go on before all code that can run has run", async () => {
    const scheduler = new Scheduler();
    let turns = 0;
    let turnsThen = 0;
    scheduler.wakeAt(1, () => {
      void (async () => {
        for (; turns < 1_000; turns += 1) await undefined;
        await Promise.all([Promise.resolve(), new Promise<void>((resolve) => queueMicrotask(resolve))]);
        turns += 1;
      })();
    });
    scheduler.at(2, () => {
      turnsThen = turns;
    });
    await scheduler.run(10, never, nothing);
    expect(turnsThen).toBe(1_001);
  });

  it("lets nothing happen that was cancelled, and a thousand things in the right order", async () => {
    const scheduler = new Scheduler();
    const seen: number[] = [];
    for (let index = 0; index < 1_000; index += 1) {
      const time = (index * 7_919) % 1_000;
      const cancel = scheduler.at(time, () => void seen.push(time));
      if (time % 2 === 1) cancel();
    }
    await scheduler.run(2_000, never, nothing);
    expect(seen).toEqual(Array.from({ length: 500 }, (_, index) => 2 * index));
  });

  it("stops as soon as it is told, and is watched after every step", async () => {
    const scheduler = new Scheduler();
    let observed = 0;
    for (let time = 1; time <= 10; time += 1) scheduler.at(time, nothing);
    const met = await scheduler.run(
      100,
      () => scheduler.now >= 4,
      () => {
        observed += 1;
      },
    );
    expect([met, scheduler.now, observed]).toEqual([true, 4, 4]);
  });
});
