import { describe, expect, it } from "@jest/globals";
import { Scheduler } from "./scheduler.js";

const nothing = (): void => undefined;
const never = (): boolean => false;

describe("virtual time", () => {
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
});
