import { expect, test } from "@jest/globals";
import { crowd } from "../../support/crowded-host.js";

test("10 300 due ticks that a process asks for at once are granted, by at most one further write each", async () => {
  const { host, all, takes } = crowd({ tick: 7, due: 7, attempt: 1 }, { count: 10_300 });
  const once = { once: 7, untilSuccess: { maxAttempts: 3 } };
  const runs = await all((name) => host.mutex(name).tryRun((lock) => lock.attempt, once));
  expect(runs.filter(({ ran }) => !ran)).toEqual([]);
  expect(takes()).toBeLessThanOrEqual(2 * runs.length);
});
