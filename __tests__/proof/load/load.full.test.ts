import { expect, test } from "@jest/globals";
import { seededRandom } from "../../support/seeded-random.js";
import type { Service } from "./slow-table.js";
import { expectBurstServed, near, pausing, virtualProcess } from "./virtual-process.js";

test("3 000 calls at once for as many names, of a process that holds 50 locks of 5 s, are served, and none of the 50 is lost", async () => {
  await expectBurstServed(3_000);
});

test("3 000 calls at once for 30 names, of a process that holds 50 locks of 5 s, are served, and none of the 50 is lost", async () => {
  await expectBurstServed(30);
});

test.each<[string, Service]>([
  ["is slow in its first ten seconds", near((s) => Math.min(300, 20 + 28 * s))],
  ["stands still for 0.7 s again and again", { ...near(() => 500), goesOnAt: pausing(3_000, 700, 1_000) }],
])("500 locks of 3 s, taken 32 at a time by a new process, are kept on a table that %s", async (_, service) => {
  const { counts, keep, pass } = virtualProcess(service, 3_000);
  void keep(500, 32);
  await pass(60, () => counts.taken === 500);
  await pass(6);
  expect(counts).toMatchObject({ taken: 500, lost: 0 });
});

test("500 locks of 3 s, taken 32 at a time without batches, on a table that serves 220 requests a second, are taken slowly, and those that are taken are kept", async () => {
  const { counts, keep, pass } = virtualProcess({ ...near(() => 220), hasBatches: false }, 3_000);
  void keep(500, 32);
  await pass(60, () => counts.taken === 500);
  expect(counts.lost).toBe(0);
  expect(counts.taken).toBeGreaterThan(300);
});

test("200 locks of 10 s are kept on a table that hangs for 3.5 s again and again", async () => {
  const { counts, keep, pass } = virtualProcess(
    { ...near(() => 500), goesOnAt: pausing(15_000, 3_500, 10_000) },
    10_000,
  );
  void keep(200, 32);
  await pass(10, () => counts.taken === 200);
  await pass(60);
  expect(counts).toMatchObject({ taken: 200, lost: 0 });
});

test("700 locks of 6 s are kept on a table that is 300 ms away", async () => {
  const { counts, keep, pass } = virtualProcess({ serviceMs: () => 1, distanceMs: 300 }, 6_000);
  void keep(700, 700);
  await pass(30, () => counts.taken === 700);
  await pass(12);
  expect(counts).toMatchObject({ taken: 700, lost: 0 });
});

test("a key that throttles half of its requests for 15 s keeps its own lock, and costs 50 others none", async () => {
  const random = seededRandom(2);
  let isHot = false;
  const isThrottled = (name: string): boolean => isHot && name === "kept-0" && random() < 0.5;
  const { time, counts, keep, pass } = virtualProcess({ ...near(() => 300), isThrottled }, 5_000);
  void keep(51, 51);
  await pass(10, () => counts.taken === 51);
  isHot = true;
  await time.advance(15_000);
  isHot = false;
  await pass(6);
  expect(counts).toMatchObject({ taken: 51, lost: 0 });
});
