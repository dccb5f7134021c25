import { expect, test } from "@jest/globals";
import { expectBurstServed, near, pausing, virtualProcess } from "./virtual-process.js";

test("3 000 calls at once for as many names, of a process that holds 50 locks of 5 s, are served, and none of the 50 is lost", async () => {
  await expectBurstServed(3_000);
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
