import { expect, test } from "@jest/globals";
import { turn } from "../../support/eventually.js";
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

test("1 000 calls at once that wait for 1 s, on a table that serves 60 requests a second, end within one timeout of that", async () => {
  const { time, lock, pass } = virtualProcess(
    near(() => 60),
    30_000,
  );
  const outcomes: string[] = [];
  const burst = (name: string): void => {
    for (let index = 0; index < 1_000; index += 1) {
      const call = lock(`${name}-${index}`, { waitMs: 1_000 });
      call.then(
        () => outcomes.push("taken"),
        ({ code, message }) => outcomes.push(`${code}: ${message.replace(/\d+/g, "N")}`),
      );
    }
  };
  burst("first");
  await pass(10, () => outcomes.length === 1_000);
  expect(time.elapsed).toBeLessThanOrEqual(5_000);
  // As many as the table serves in 4 s.
  expect(outcomes.filter((outcome) => outcome === "taken").length).toBeGreaterThan(200);
  const [refused] = new Set(outcomes.filter((outcome) => outcome !== "taken"));
  expect(refused).toMatch(/^LOCK_STORE: Not sent within N ms: N requests of this process were under way/);

  // From now on this process knows how long an answer takes.
  outcomes.length = 0;
  burst("second");
  await turn();
  const atOnce = "LOCK_STORE: Not sent: N requests of this process wait to be sent first, which takes more than N ms";
  expect(outcomes.length).toBeGreaterThan(0);
  expect(new Set(outcomes)).toEqual(new Set([atOnce]));
  await pass(10, () => outcomes.length === 1_000);
});
