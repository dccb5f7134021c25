import { describe, expect, test } from "@jest/globals";
import { ManualTime } from "../../support/manual-time.js";
import { inWords, MemoryHost } from "../../support/memory-host.js";

/** The longest pause before a second attempt, which is random. */
const MOST_PAUSE_MS = 75;

/** A host whose requests of one kind are lost, but not the second copy, and when each copy leaves. */
function hostThatLoses(request: string) {
  const time = new ManualTime();
  const host = new MemoryHost(time);
  const leftAt: number[] = [];
  host.fate = (message) => {
    if (inWords(message) !== request) return "answered";
    leftAt.push(time.elapsed);
    return leftAt.length === 1 ? "lost" : "answered";
  };
  /** For how long the first copy was waited for, and the pause after it. */
  const waitedMs = (): number => Number(leftAt[1]) - Number(leftAt[0]);
  return { time, host, leftAt, waitedMs };
}

describe("the first attempt at a request that gets no answer", () => {
  test.each([
    { ttlMs: 100, timeoutMs: 50 },
    { ttlMs: 4_000, timeoutMs: 1_000 },
    { ttlMs: 10_000, timeoutMs: 2_500 },
    { ttlMs: 60_000, timeoutMs: 3_000 },
  ])("of a lease of $ttlMs ms is followed by another after $timeoutMs ms and a pause", async ({ ttlMs, timeoutMs }) => {
    const { time, host, leftAt, waitedMs } = hostThatLoses("take lock");
    const locking = host.mutex("name", { ttlMs }).lock();
    await time.advanceUntil(() => leftAt.length === 2);
    expect(waitedMs()).toBeGreaterThanOrEqual(timeoutMs);
    expect(waitedMs()).toBeLessThanOrEqual(timeoutMs + MOST_PAUSE_MS);
    await (await locking).unlock();
  });

  test("of a renewal leaves the lease time for more", async () => {
    const { time, host, leftAt, waitedMs } = hostThatLoses("renew lock");
    const lock = await host.mutex("name", { ttlMs: 4_000 }).lock();
    await time.advanceUntil(() => leftAt.length === 2);
    expect(waitedMs()).toBeLessThanOrEqual(1_000 + MOST_PAUSE_MS);
    await time.advance(4_000);
    expect(lock.held).toBe(true);
    await lock.unlock();
  });
});
