import { expect, test } from "@jest/globals";
import { near, virtualProcess } from "./virtual-process.js";

test("500 locks of 3 s, taken 32 at a time by a new process, are kept on a table that serves 220 requests a second", async () => {
  // Each of them has to be renewed once in 2.7 s at the least.
  const { counts, keep, pass } = virtualProcess(
    near(() => 220),
    3_000,
  );
  void keep(500, 32);
  await pass(60, () => counts.taken === 500);
  await pass(6);
  expect(counts).toMatchObject({ taken: 500, lost: 0 });
});

test("500 locks of 3 s on a table that cannot keep so many wait rather than cost others their leases", async () => {
  const { counts, store, keep, pass } = virtualProcess(
    near(() => 80),
    3_000,
  );
  void keep(500, 32);
  await pass(20);
  expect(counts.lost).toBe(0);
  expect(counts.taken).toBeGreaterThan(80);
  expect(store.served).toBeGreaterThan(19 * 80);
});
