import { describe, expect, test } from "@jest/globals";
import { LockStoreError } from "../../../lib/index.js";
import { MUTEX_QUEUE } from "../../../lib/protocol/addresses.js";
import { hear } from "../../support/diagnostics.js";
import { hosts, inWords, type MemoryHost } from "../../support/memory-host.js";
import type { Message } from "../../support/message.js";
import { placesIn } from "../../support/places.js";

const NAME = "wanted";
const TTL_MS = 4_000;

/** A lock that somebody holds, and those who line up behind it. */
async function queue(holding = {}) {
  const { time, one, other, third } = hosts();
  const holder = await one.mutex(NAME, { fair: true, ttlMs: TTL_MS, ...holding }).lock();
  /** @returns what ends the wait. */
  const lineUp = async (host: MemoryHost, options = {}): Promise<() => Promise<void>> => {
    const before = placesIn(one.table, NAME).length;
    const controller = new AbortController();
    const { signal } = controller;
    const waiting = host.mutex(NAME, { fair: true, ttlMs: TTL_MS, ...options }).lock({ signal });
    waiting.catch(() => undefined);
    await time.advanceUntil(() => placesIn(one.table, NAME).length > before);
    return async () => {
      controller.abort();
      await time.advanceUntil(() => placesIn(one.table, NAME).length === before);
    };
  };
  const owners = (): readonly string[] => placesIn(one.table, NAME).map(({ owner }) => owner);
  return { time, table: one.table, other, third, holder, lineUp, owners };
}

describe("a place", () => {
  test("is renewed every half of its length, whatever its lock's options say of renewals, and stays", async () => {
    const { time, table, other, lineUp } = await queue();
    const lost = hear("dynamutex:ticket-lost");
    const renewedAt: number[] = [];
    other.fate = (message) => {
      if (/^renew queue/.test(inWords(message))) renewedAt.push(time.elapsed);
      return "answered";
    };
    await lineUp(other, { autoRenew: false, renewEveryMs: TTL_MS - 500 });
    const [place] = placesIn(table, NAME);
    const beganAt = time.elapsed;
    await time.advance(10 * TTL_MS);
    expect(renewedAt.length).toBeGreaterThanOrEqual(19);
    const moments = [beganAt, ...renewedAt];
    for (const [index, at] of renewedAt.entries()) expect(at - Number(moments[index])).toBeLessThanOrEqual(TTL_MS / 2);
    expect(placesIn(table, NAME).map(({ uuid }) => uuid)).toEqual([place?.uuid]);
    expect(lost).toEqual([]);
  });

  test("has a later ticket than all before it, also where DynamoDB has removed the counter meanwhile", async () => {
    const { time, table, other, third, lineUp, owners } = await queue();
    for (let count = 0; count < 3; count += 1) {
      const giveUp = await lineUp(other);
      await giveUp();
    }
    await lineUp(other);
    await time.advance(1_000);
    table.plant({ name: NAME, sort: MUTEX_QUEUE.counter }, undefined);
    await lineUp(third);
    expect(owners()).toEqual(["other", "third"]);
  });

  test("that is lost takes its turn with it, also for a call that looked before it was drawn", async () => {
    // With fencing, its row stays when it is free.
    const { time, other, third, holder, owners } = await queue({ fencing: true });
    const options = { fair: true, ttlMs: 1_000 };
    const looks = (message: Message): boolean => message.kind === "query";
    const wantsTicket = (message: Message): boolean => /^draw/.test(inWords(message));
    // The first call begins to draw a place for both, and gives up. The second one looks, and its look is repeated after the draw.
    other.fate = (message) => (wantsTicket(message) ? "lost" : "answered");
    const gaveUp = new AbortController();
    const first = other.mutex(NAME, options).lock({ signal: gaveUp.signal });
    const second = other.mutex(NAME, options).lock();
    await time.advanceUntil(() => other.sent.some(wantsTicket));
    other.fate = (message) => (looks(message) ? "lost" : "answered");
    other.sent.length = 0;
    gaveUp.abort(new Error("enough"));
    await expect(first).rejects.toThrow("enough");
    await time.advanceUntil(() => owners().length === 1);
    expect(other.sent.filter(looks)).toHaveLength(1);
    // A look from the first of two places does not see who waits behind them.
    const last = other.mutex(NAME, options).lock();
    await time.advanceUntil(() => owners().length === 2);
    const behind = third.mutex(NAME, { fair: true, ttlMs: 20_000 }).lock();
    await time.advanceUntil(() => owners().length === 3);
    third.fate = (message) => (looks(message) ? "lost" : "answered");
    await holder.unlock();
    // Its claim is throttled until its place is lost.
    const lost = hear("dynamutex:ticket-lost");
    const throttled = new LockStoreError("throttled", { transient: true, throttled: true });
    let hasLooked = false;
    other.fate = (message) => {
      hasLooked ||= looks(message);
      return hasLooked && !looks(message) ? Promise.reject(throttled) : "answered";
    };
    await time.advanceUntil(() => lost.length > 0);
    const sentBefore = other.sent.length;
    third.fate = other.fate = () => "answered";
    const isNext = (message: Message): boolean => /^(draw|take)/.test(inWords(message));
    await time.advanceUntil(() => other.sent.slice(sentBefore).some(isNext));
    expect(other.sent.slice(sentBefore).filter(isNext).map(inWords)).toContain("draw tickets");
    expect(other.sent.slice(sentBefore).map(inWords)).not.toContain("take lock");
    for (const call of [behind, second, last]) {
      await time.settle(call);
      await (await call).unlock();
    }
  });
});
