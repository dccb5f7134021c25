import { describe, expect, test } from "@jest/globals";
import { lockAt } from "../../../lib/protocol/addresses.js";
import { hear } from "../../support/diagnostics.js";
import { ManualTime } from "../../support/manual-time.js";
import { inWords, isRelease, MemoryHost } from "../../support/memory-host.js";
import type { Message } from "../../support/message.js";

const TTL_MS = 10_000;
const RELEASE_WITHIN_MS = 500;

const isRenewal = (message: Message): boolean => inWords(message).startsWith("renew");

function scene() {
  const time = new ManualTime();
  const host = new MemoryHost(time);
  const mutex = (options = {}) => host.mutex("job", { ttlMs: TTL_MS, releaseWithinMs: RELEASE_WITHIN_MS, ...options });
  /** How long its caller waits for it, in ms. */
  const lasts = async (work: Promise<unknown>): Promise<number> => {
    const since = time.elapsed;
    await time.settle(work, { stepMs: 10 });
    return time.elapsed - since;
  };
  /** A lock whose renewal is in flight, and gets no answer. */
  const renewing = async (isLost: (message: Message) => boolean = isRenewal) => {
    const lock = await mutex().lock();
    host.fate = (message) => (isLost(message) ? "lost" : "answered");
    await time.advance(TTL_MS / 2);
    expect(host.sent.filter(isRenewal)).toHaveLength(1);
    return lock;
  };
  return { time, host, mutex, lasts, renewing };
}

// An attempt of this renewal may take 2.5 s, and docs/lambda.md reserves 1 s for what follows a section.
describe("a renewal in flight that gets no answer", () => {
  test("takes half of the time that the release has, and then the row is released", async () => {
    const { time, host, lasts, renewing } = scene();
    const lock = await renewing();
    expect(await lasts(lock.unlock())).toBe(RELEASE_WITHIN_MS / 2);
    expect([host.row("job"), host.sent.filter(isRelease).length, time.timers]).toEqual([undefined, 1, 0]);
  });

  test("leaves the release the other half, however often that fails", async () => {
    const { time, lasts, renewing } = scene();
    const lock = await renewing(() => true);
    const failures = hear("dynamutex:release-failed");
    expect(await lasts(lock.unlock())).toBe(RELEASE_WITHIN_MS);
    expect([failures.length, time.timers]).toEqual([1, 0]);
  });

  test("may be applied after the release: it is refused", async () => {
    const { time, host, lasts, renewing } = scene();
    const lock = await renewing();
    const [late] = host.sent.filter(isRenewal);
    await lasts(lock.unlock());
    if (late?.kind === "write") host.table.write(late.write);
    await time.advance(1);
    expect(host.row("job")).toBeUndefined();
  });

  test("does not hide that the lock was lost", async () => {
    const { time, host, lasts, renewing } = scene();
    const lock = await renewing();
    const theirs = { format: 1, uuid: "theirs", owner: "other", ttlMs: TTL_MS, acquired: time.now };
    host.table.plant(lockAt("job"), { ...theirs, expires: time.now + TTL_MS });
    const outcome = lock.unlock().catch((error: unknown) => error);
    expect(await lasts(outcome)).toBe(RELEASE_WITHIN_MS / 2);
    expect(await outcome).toMatchObject({ code: "LOCK_LOST", reason: "stolen" });
    expect(lock.signal.reason).toBe(await outcome);
  });

  test("that is answered in time costs nothing", async () => {
    const { time, host, mutex } = scene();
    const lock = await mutex().lock();
    let answer = (): void => undefined;
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    host.fate = (message) => (isRenewal(message) ? answered : "answered");
    await time.advance(TTL_MS / 2);
    const unlocking = lock.unlock();
    await time.advance(RELEASE_WITHIN_MS / 2 - 1);
    expect(host.sent.some(isRelease)).toBe(false);
    answer();
    await unlocking;
    expect([host.row("job"), time.timers]).toEqual([undefined, 0]);
  });
});

test("the release of a section that has outlasted maxHoldMs is tried for as long as any other", async () => {
  const { time, host, mutex, lasts } = scene();
  const releaseWithinMs = 5_000;
  const lock = await mutex({ maxHoldMs: 2_000, releaseWithinMs }).lock();
  await time.advance(2_000);
  expect(lock.held).toBe(false);
  const endsAt = time.elapsed + releaseWithinMs - 1_500;
  host.fate = (message) =>
    isRelease(message) && time.elapsed < endsAt ? Promise.reject(new Error("reset")) : "answered";
  const outcome = lock.unlock().catch((error: unknown) => error);
  expect(await lasts(outcome)).toBeLessThan(releaseWithinMs);
  expect(await outcome).toMatchObject({ code: "LOCK_LOST", reason: "max-hold" });
  expect(host.row("job")).toBeUndefined();
});
