import { afterEach, describe, expect, test } from "@jest/globals";
import { DistantHosts } from "../../support/distant-hosts.js";

const HOSTS = 16;
const WARM_MS = 4_000;

let world = new DistantHosts();
afterEach(() => world.close());

/** What sixteen hosts that all want a permit all the time came to, once each of them has begun. */
async function crowd(permits: number, forMs: number, { fair, oneWayMs = 4 }: { fair: boolean; oneWayMs?: number }) {
  world = new DistantHosts({ oneWayMs });
  const mutexes = [{ fair, ttlMs: 3_000 }];
  const hosts = Array.from({ length: HOSTS }, () => world.add({ permits, sectionMs: 10, mutexes }));
  await world.time.advance(WARM_MS);
  const before = hosts.map(({ sections, requests }) => ({ sections, requests }));
  await world.time.advance(forMs);
  const sections = hosts.map((host, index) => host.sections - (before[index]?.sections ?? 0));
  const requests = hosts.map((host, index) => host.requests - (before[index]?.requests ?? 0));
  const all = sum(sections);
  return {
    perSecond: (all / forMs) * 1_000,
    requests: sum(requests) / all,
    leastShare: Math.min(...sections) / (all / HOSTS),
  };
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

describe("sixteen hosts that want one of four permits all the time", () => {
  test("run at least 3.2 times as many sections as with one, at 3 requests each, and leave nobody out", async () => {
    const one = await crowd(1, 8_000, { fair: false });
    await world.close();
    const four = await crowd(4, 24_000, { fair: false });
    expect(four.perSecond).toBeGreaterThan(3.2 * one.perSecond);
    expect(four.requests).toBeLessThan(3);
    expect(four.leastShare).toBeGreaterThan(0.3);
  });

  test("ask no more of a table that is twice as slow, where each permit looks free for longer", async () => {
    const { requests, leastShare } = await crowd(4, 24_000, { fair: false, oneWayMs: 8 });
    expect(requests).toBeLessThan(3);
    expect(leastShare).toBeGreaterThan(0.3);
  });

  test("with `fair` run at least 2.2 times as many as with one, and get as many each, nearly", async () => {
    const one = await crowd(1, 8_000, { fair: true });
    await world.close();
    const four = await crowd(4, 8_000, { fair: true });
    expect(four.perSecond).toBeGreaterThan(2.2 * one.perSecond);
    expect(four.leastShare).toBeGreaterThan(0.8);
  });
});
