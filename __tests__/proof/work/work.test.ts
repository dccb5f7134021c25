import { describe, expect, test } from "@jest/globals";
import { BOUND_PERCENT, readBaseline, SEEDS } from "./baseline.js";
import { changes, figuresOf, lineOf } from "./judge.js";
import { WORKLOADS, workOf } from "./workloads.js";

describe("work on virtual time", () => {
  test.each(Object.keys(WORKLOADS))("%s: one seed decides what is done and with how many requests", async (name) => {
    const counts = await workOf(name, 1);
    expect(Object.values(counts).every((count) => count > 0)).toBe(true);
    expect(await workOf(name, 1)).toEqual(counts);
  });

  test("a baseline has all of it", async () => {
    const { work, seeds } = await readBaseline();
    expect([seeds, Object.keys(work).sort()]).toEqual([SEEDS, Object.keys(WORKLOADS).sort()]);
  });
});

describe("the judge of work", () => {
  const before = { semaphore: { sections: 100, "requests for each": 2 } };

  test("takes the mean of all seeds, and all requests for all that was done", () => {
    const counts = [
      { sections: 10, requests: 40 },
      { sections: 30, requests: 20, resumed: 2 },
    ];
    expect(figuresOf(counts)).toEqual({ resumed: 1, sections: 20, "requests for each": 1.429 });
  });

  test.each([
    [
      "fewer sections are worse",
      { sections: 97.9, "requests for each": 2 },
      "worse: semaphore, sections: 100 before, 97.9 now (-2.1 %)",
    ],
    [
      "more requests are worse",
      { sections: 100, "requests for each": 2.05 },
      "worse: semaphore, requests for each: 2 before, 2.05 now (+2.5 %)",
    ],
    [
      "more sections are better, and to be recorded",
      { sections: 103, "requests for each": 2 },
      "better: semaphore, sections: 100 before, 103 now (+3.0 %)",
    ],
  ])("%s", (_, semaphore, line) => {
    expect(changes(before, { semaphore }, BOUND_PERCENT).map(lineOf)).toEqual([line]);
  });

  test("accepts a difference within the bound", () => {
    expect(changes(before, { semaphore: { sections: 98.1, "requests for each": 2.03 } }, BOUND_PERCENT)).toEqual([]);
  });
});
