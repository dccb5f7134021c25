import { describe, expect, test } from "@jest/globals";
import { MUTEX_QUEUE } from "../../../lib/protocol/addresses.js";
import { hear } from "../../support/diagnostics.js";
import { hosts, inWords, type MemoryHost } from "../../support/memory-host.js";
import { placesIn } from "../../support/places.js";

const NAME = "wanted";
const TTL_MS = 4_000;

/** A lock that somebody holds, and those who line up behind it. */
async function queue() {
  const { time, one, other, third } = hosts();
  const holder = await one.mutex(NAME, { fair: true, ttlMs: TTL_MS }).lock();
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
});
