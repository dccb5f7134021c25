import { describe, expect, test } from "@jest/globals";
import type { Lockable } from "../../../lib/index.js";
import { hear } from "../../support/diagnostics.js";
import { watch } from "../../support/eventually.js";
import { hosts, isRelease, type MemoryHost } from "../../support/memory-host.js";

// What a call leaves behind that gives up beside a table which is out of reach, or slow: nobody will ever make use of it.
const NAME = "order-42";
const GONE = new Error("gone");

function world() {
  const { time, one: host, other: holder } = hosts();
  const left = () => host.table.rows.filter(({ owner, uuid }) => owner === "one" && uuid !== undefined);
  return { time, holder, host, left };
}

describe("after an outage that is longer than releaseWithinMs", () => {
  type Kind = (host: MemoryHost) => Lockable;
  test.each<readonly [string, Kind, Kind]>([
    ["the place of a waiter", (host) => host.mutex(NAME), (host) => host.mutex(NAME, { fair: true })],
    ["the row of a writer", (host) => host.sharedMutex(NAME).shared, (host) => host.sharedMutex(NAME).exclusive],
  ])("%s that gave up is removed", async (_, held, wanted) => {
    const { time, holder, host, left } = world();
    const failures = hear("dynamutex:release-failed");
    const giveUp = new AbortController();
    await held(holder).lock();
    const waited = watch(wanted(host).lock({ signal: giveUp.signal }));
    await time.advance(1_000);
    expect(left()).toHaveLength(1);
    host.fate = () => "lost";
    giveUp.abort(GONE);
    await time.advance(8_000);
    expect(waited.settled).toBe(true);
    host.fate = () => "answered";
    await time.advance(5_000);
    expect([left(), failures]).toEqual([[], []]);
  });
});

describe("a lock that was taken so slowly that it is renewed before it is handed out", () => {
  const TTL_MS = 15_000;

  /** Its take arrives and is answered after more than half of its lease; its renewal arrives, and is not answered. */
  async function slow(start: (host: MemoryHost) => Promise<unknown>) {
    const { time, host, left } = world();
    const isRenewed = () => host.sent.some((it) => it.kind === "write" && it.write.kind === "renew");
    host.fate = () => (time.elapsed < 8_000 || isRenewed() ? "reply lost" : "answered");
    const waited = watch(start(host));
    await time.advanceUntil(isRenewed, { stepMs: 10 });
    const sent = host.sent.length;
    return { time, host, left, waited, since: () => host.sent.slice(sent) };
  }

  test("is not renewed again once its caller has gone, and released at once", async () => {
    const giveUp = new AbortController();
    const { time, left, since } = await slow((host) => {
      return host.mutex(NAME, { ttlMs: TTL_MS }).lock({ signal: giveUp.signal });
    });
    giveUp.abort(GONE);
    // The renewal that is in flight is awaited: the release must come after it.
    await time.advance(4_000);
    expect(left()).toEqual([]);
    expect(since().every(isRelease)).toBe(true);
  });

  test.each<readonly [string, (host: MemoryHost) => Promise<unknown>]>([
    ["a lock", (host) => host.mutex(NAME, { ttlMs: TTL_MS }).lock()],
    ["a set", (host) => host.lockAll([NAME, `${NAME}-b`], { ttlMs: TTL_MS })],
  ])("is released within a close: %s", async (_, start) => {
    const { time, host, left, waited, since } = await slow(start);
    const closed = watch(host.session.close(0));
    await time.advance(5_000);
    expect([waited.settled, closed.settled]).toEqual([true, true]);
    expect(left()).toEqual([]);
    expect(since().every(isRelease)).toBe(true);
    expect(time.timers).toBe(0);
  });

  test("is answered by a try within its 10 s and an attempt", async () => {
    const { time, waited } = await slow((host) => host.mutex(NAME, { ttlMs: TTL_MS }).tryLock());
    await time.advance(13_000 - time.elapsed);
    expect(waited.settled).toBe(true);
  });
});
