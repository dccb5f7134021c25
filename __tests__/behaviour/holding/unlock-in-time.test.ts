import { describe, expect, test } from "@jest/globals";
import { lockAt } from "../../../lib/protocol/addresses.js";
import { hear } from "../../support/diagnostics.js";
import { ManualTime } from "../../support/manual-time.js";
import { inWords, isRelease, MemoryHost } from "../../support/memory-host.js";

const TTL_MS = 10_000;
const RELEASE_WITHIN_MS = 500;

function host() {
  const time = new ManualTime();
  const one = new MemoryHost(time);
  const mutex = (options = {}) => one.mutex("job", { ttlMs: TTL_MS, releaseWithinMs: RELEASE_WITHIN_MS, ...options });
  /** How long its caller waits for it, in ms. */
  const lasts = async (work: Promise<unknown>): Promise<number> => {
    const since = time.elapsed;
    await time.settle(work, { stepMs: 10 });
    return time.elapsed - since;
  };
  return { time, host: one, mutex, lasts };
}

describe("unlock() is answered within releaseWithinMs, and the release goes on", () => {
  test("while a renewal is in flight that gets no answer", async () => {
    const { time, host: one, mutex, lasts } = host();
    const lock = await mutex().lock();
    one.fate = (message) => (inWords(message).startsWith("renew") ? "lost" : "answered");
    await time.advance(TTL_MS / 2);
    expect(await lasts(lock.unlock())).toBe(RELEASE_WITHIN_MS);
    expect([lock.held, one.row("job") !== undefined, one.sent.some(isRelease)]).toEqual([false, true, false]);
    // The attempt of the renewal ends by its own timeout.
    await time.advanceUntil(() => one.row("job") === undefined, { stepMs: 100, withinMs: 4_000 });
    expect(one.sent.filter(isRelease)).toHaveLength(1);
  });

  test("while a caller of the same process waits, for whom the lease gets a new uuid", async () => {
    const { time, host: one, mutex, lasts } = host();
    const fenced = mutex({ fencing: true });
    const lock = await fenced.lock();
    const next = fenced.lock();
    one.fate = () => "lost";
    expect(await lasts(lock.unlock())).toBe(RELEASE_WITHIN_MS);
    one.fate = () => "answered";
    await time.settle(next, { stepMs: 10 });
    await (await next).unlock();
    expect(one.row("job")?.uuid).toBeUndefined();
  });

  test("also where every release goes unanswered, and that is told once", async () => {
    const { time, host: one, mutex, lasts } = host();
    const lock = await mutex().lock();
    const failures = hear("dynamutex:release-failed");
    one.fate = (message) => (isRelease(message) ? "lost" : "answered");
    expect(await lasts(lock.unlock())).toBe(RELEASE_WITHIN_MS);
    await time.advance(1);
    expect(failures).toEqual([expect.objectContaining({ name: "job" })]);
  });

  test("with the loss, if that was known before", async () => {
    const { time, host: one, mutex, lasts } = host();
    const lock = await mutex({ maxHoldMs: 2_000 }).lock();
    await time.advance(2_000);
    one.fate = (message) => (isRelease(message) ? "lost" : "answered");
    const outcome = lock.unlock().catch((error: unknown) => error);
    expect(await lasts(outcome)).toBe(RELEASE_WITHIN_MS);
    expect(await outcome).toBe(lock.signal.reason);
  });

  test("without a loss that is found later: the section was over", async () => {
    const { time, host: one, mutex, lasts } = host();
    const lock = await mutex().lock();
    const [losses, ends] = [hear("dynamutex:lost"), hear("dynamutex:released")];
    one.fate = (message) => (inWords(message).startsWith("renew") ? "lost" : "answered");
    await time.advance(TTL_MS / 2);
    expect(await lasts(lock.unlock())).toBe(RELEASE_WITHIN_MS);
    const theirs = { format: 1, uuid: "theirs", owner: "other", ttlMs: TTL_MS, acquired: time.now };
    one.table.plant(lockAt("job"), { ...theirs, expires: time.now + TTL_MS });
    await time.advance(4_000);
    expect(one.sent.filter(isRelease)).toHaveLength(1);
    expect([lock.signal.aborted, losses.length, ends.length]).toEqual([false, 0, 1]);
    await lock.unlock();
  });

  test("all of this leaves no timer", async () => {
    const { time, mutex } = host();
    const lock = await mutex().lock();
    await lock.unlock();
    expect(time.timers).toBe(0);
  });
});

test("the release of a section that has outlasted maxHoldMs is tried for as long as any other", async () => {
  const { time, host: one, mutex, lasts } = host();
  const releaseWithinMs = 5_000;
  const lock = await mutex({ maxHoldMs: 2_000, releaseWithinMs }).lock();
  await time.advance(2_000);
  expect(lock.held).toBe(false);
  const endsAt = time.elapsed + releaseWithinMs - 1_500;
  one.fate = (message) =>
    isRelease(message) && time.elapsed < endsAt ? Promise.reject(new Error("reset")) : "answered";
  const unlocking = lock.unlock();
  const outcome = unlocking.catch((error: unknown) => error);
  expect(await lasts(outcome)).toBeLessThan(releaseWithinMs);
  expect(await outcome).toMatchObject({ code: "LOCK_LOST", reason: "max-hold" });
  expect(one.row("job")).toBeUndefined();
});
