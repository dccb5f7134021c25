import assert from "node:assert/strict";
import { jest, test } from "@jest/globals";
import { TestTable } from "dynamutex/testing";
import { report, reportIfFree } from "./report.mjs";

test("a report is left to the host that builds it", async () => {
  const table = new TestTable();
  const lock = await table.host({ owner: "other" }).mutex("report").lock();
  assert.equal(await reportIfFree(table.host(), () => "built"), "left to other");
  await lock.unlock();
  assert.equal(await reportIfFree(table.host(), () => "built"), "built");
  assert.deepEqual(table.held(), []);
});

test("a report waits for the host that builds another", async () => {
  const table = new TestTable();
  const lock = await table.host().mutex("report").lock();
  const waiting = report(table.host(), () => "built");
  await lock.unlock();
  assert.equal(await waiting, "built");
});

test("a report gives up after five seconds", async () => {
  const table = new TestTable();
  await table.host().mutex("report").lock();
  const waiting = report(table.host(), () => "built");
  await Promise.all([assert.rejects(waiting, { code: "LOCK_TIMEOUT" }), table.clock.advance(5_000)]);
});

test("a report that loses the lock is told, and fails", async () => {
  const table = new TestTable({ time: "manual" });
  const seen = [];
  const building = report(table.host(), (signal) => {
    table.lose("report", "stolen");
    seen.push(signal.aborted);
  });
  await assert.rejects(building, { code: "LOCK_LOST", reason: "stolen" });
  assert.deepEqual(seen, [true]);
});

test("a report is taken over from a host that has died", async () => {
  const table = new TestTable({ time: "manual", ttlMs: 4_000 });
  const dead = table.host();
  await dead.mutex("report").lock();
  table.silence(dead);
  const waiting = report(table.host(), () => "built");
  await table.clock.advance(5_000);
  assert.equal(await waiting, "built");
});

test("fake timers: what is free needs no time", async () => {
  jest.useFakeTimers();
  try {
    assert.equal(await report(new TestTable().host(), () => "built"), "built");
  } finally {
    jest.useRealTimers();
  }
});

test("fake timers: time that passes on them passes for the locks", async () => {
  jest.useFakeTimers();
  try {
    const table = new TestTable({ ttlMs: 10_000 });
    const held = await table.host().mutex("report").lock();
    const waiting = assert.rejects(
      report(table.host(), () => "built"),
      { code: "LOCK_TIMEOUT" },
    );
    await jest.advanceTimersByTimeAsync(60_000);
    await waiting;
    assert.equal(held.held, true);
  } finally {
    jest.useRealTimers();
  }
});
