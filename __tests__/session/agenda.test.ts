import { describe, expect, test } from "@jest/globals";
import type { Lock } from "../../lib/lock.js";
import { Agenda } from "../../lib/session/agenda.js";
import { hear } from "../support/diagnostics.js";
import { turn } from "../support/eventually.js";
import { IS_FULL } from "../support/full.js";
import { ManualTime } from "../support/manual-time.js";
import { MemoryHost } from "../support/memory-host.js";

const MANY = { size: 8 };
const TTL_MS = 30_000;
const PERIOD_MS = TTL_MS / 2;

describe("an agenda", () => {
  test("rounds moments down to the grid, and what is due at one begins in one synchronous turn", async () => {
    const time = new ManualTime();
    const agenda = new Agenda(time.clock(), MANY);
    const rung: string[] = [];
    for (const ms of [8_000, 8_400, 8_990]) {
      agenda.alarm(
        ms,
        () => {
          rung.push(`${time.elapsed}`);
          queueMicrotask(() => rung.push("a microtask"));
        },
        1_000,
      );
    }
    expect(time.timers).toBe(1);
    await time.advance(7_999);
    expect(rung).toEqual([]);
    await time.advance(1);
    expect(rung).toEqual(["8000", "8000", "8000", "a microtask", "a microtask", "a microtask"]);
    expect(time.timers).toBe(0);
  });

  test.each([1, 3, 50, 75, 1_000, 1_500, 14_999])("shortens %d ms by at most half, whatever the grid", async (ms) => {
    for (const startMs of [0, 1, 77, 1_234, 9_999]) {
      const time = new ManualTime();
      await time.advance(startMs);
      let rungAt: number | undefined;
      new Agenda(time.clock(), MANY).alarm(
        ms,
        () => {
          rungAt = time.elapsed;
        },
        1_875,
      );
      await time.advance(ms + 10);
      // An alarm rings at a whole ms.
      expect((rungAt as number) - startMs).toBeGreaterThanOrEqual(Math.floor(ms / 2));
      expect((rungAt as number) - startMs).toBeLessThanOrEqual(ms + 5);
    }
  });

  test("without a grid, no alarm is late", async () => {
    for (let ms = 1; ms < 40_000; ms = Math.ceil(ms * 1.1)) {
      for (const startMs of [0, 1_234, 16_380, 32_766 - ms].filter((start) => start >= 0)) {
        const time = new ManualTime();
        await time.advance(startMs);
        const rung: number[] = [];
        new Agenda(time.clock(), MANY).alarm(ms, () => rung.push(time.elapsed - startMs));
        await time.advance(ms);
        expect([ms, rung.length]).toEqual([ms, 1]);
      }
    }
  });

  test("pauses that are about as long end together", async () => {
    const time = new ManualTime();
    const agenda = new Agenda(time.clock(), MANY);
    const ended = new Set<number>();
    for (let ms = 25; ms < 75; ms += 2) void agenda.sleep(ms).then(() => ended.add(time.elapsed));
    await time.advance(80);
    expect(ended.size).toBeLessThanOrEqual(4);
  });

  test("what is cancelled does not ring, and the last one leaves no timer", async () => {
    const time = new ManualTime();
    const agenda = new Agenda(time.clock(), MANY);
    let rung = 0;
    const cancels = [1, 2, 3].map(() => agenda.alarm(1_000, () => (rung += 1), 100));
    cancels[0]?.();
    cancels[0]?.();
    await time.advance(1_000);
    expect(rung).toBe(2);
    const cancel = agenda.alarm(1_000, () => (rung += 1), 100);
    cancel();
    expect(time.timers).toBe(0);
  });

  test("a pause that is ended by its signal rejects with the reason, and leaves no timer", async () => {
    const time = new ManualTime();
    const agenda = new Agenda(time.clock(), MANY);
    const controller = new AbortController();
    const pause = agenda.sleep(1_000, controller.signal);
    await turn();
    controller.abort(new Error("enough"));
    await expect(pause).rejects.toThrow("enough");
    expect(time.timers).toBe(0);
  });

  test.each([MANY, { size: 1 }])(
    "what fell due in a suspend rings within a second after it, with %p leases",
    async (leases) => {
      const time = new ManualTime();
      let suspendedMs = 0;
      // The monotonic clock, by which timers ring, stands while the host is suspended.
      const agenda = new Agenda({ ...time.clock(), atMost: () => time.elapsed + suspendedMs }, leases);
      const rung: string[] = [];
      agenda.alarm(8_000, () => rung.push(`in the suspend: ${time.elapsed}`), 1_000);
      agenda.alarm(16_000, () => rung.push(`after it: ${time.elapsed}`), 1_000);
      const cancel = agenda.alarm(16_000, () => rung.push("cancelled"), 1_000);
      await time.advance(3_100);
      suspendedMs = 10_000;
      await time.advance(500);
      cancel();
      await time.advance(500);
      expect(rung).toEqual(["in the suspend: 4000"]);
      await time.advance(10_000);
      expect(rung.slice(1)).toEqual(["after it: 6000"]);
      expect(time.timers).toBe(0);
    },
  );

  test("is exact where there are fewer leases", async () => {
    const time = new ManualTime();
    const agenda = new Agenda(time.clock(), { size: 7 });
    const rung: number[] = [];
    agenda.alarm(8_400, () => rung.push(time.elapsed), 1_000);
    agenda.alarm(8_999, () => rung.push(time.elapsed), 1_000);
    await time.advance(10_000);
    expect(rung).toEqual([8_400, 8_999]);
  });
});

describe("the renewals of many locks", () => {
  /** When each lock is renewed, and how many requests that took, until so much time has passed. */
  async function keep(
    count: number,
    {
      together,
      clusters,
      periods,
    }: { readonly together: boolean; readonly clusters: number; readonly periods: number },
  ): Promise<{ readonly times: ReadonlyMap<string, readonly number[]>; readonly requests: number }> {
    const time = new ManualTime();
    let draws = 0;
    const random = () => ((draws++ * 7) % 10) / 10;
    const host = new MemoryHost(time, { random, ...(together ? {} : { togetherFrom: Number.POSITIVE_INFINITY }) });
    const times = new Map<string, number[]>();
    const locks: Lock[] = [];
    for (let index = 0; index < count; index += 1) {
      if (index % Math.ceil(count / clusters) === 0) await time.advance(1_237);
      locks.push(await host.mutex(`lock-${index}`, { ttlMs: TTL_MS }).lock());
    }
    const begun = host.sent.length;
    let counts = true;
    hear("dynamutex:renewed", ({ name }) => {
      if (counts) times.set(name, [...(times.get(name) ?? []), time.elapsed]);
    });
    await time.advance(periods * PERIOD_MS);
    counts = false;
    const requests = host.sent.length - begun;
    expect(locks.every(({ held }) => held)).toBe(true);
    await Promise.all(locks.map((lock) => lock.unlock()));
    expect(time.timers).toBe(0);
    return { times, requests };
  }

  test.each([
    [101, 1],
    [101, 9],
    [126, 4],
    [126, 40],
  ])("of %d locks taken in %d clusters: no lock is renewed more often than one by one", async (count, clusters) => {
    const periods = IS_FULL ? 20 : 6;
    const one = await keep(count, { together: false, clusters, periods });
    const all = await keep(count, { together: true, clusters, periods });
    // The first ones were due before there were many locks.
    const gaps = [...all.times.values()].flatMap((times) =>
      times.slice(2).map((at, index) => at - (times[index + 1] as number)),
    );
    // They stay at their moments of the grid: one period lies between two, to the ms that timers have.
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(PERIOD_MS - 1);
    expect(gaps.length).toBeGreaterThanOrEqual(count * (periods - 3));
    const renewals = ({ times }: typeof one) => [...times.values()].reduce((sum, { length }) => sum + length, 0);
    // An eighth of a period sooner, the first of some falls into the same time.
    expect(renewals(all)).toBeLessThanOrEqual(renewals(one) + count / 4);
    expect(one.requests).toBe(renewals(one));
    expect(all.requests).toBeLessThan(renewals(all) / 8);
  });

  test("seven locks are renewed at their own times, one by one", async () => {
    const { times, requests } = await keep(7, { together: true, clusters: 7, periods: 4 });
    const renewals = [...times.values()].flat();
    expect(requests).toBe(renewals.length);
    expect(new Set(renewals).size).toBe(renewals.length);
  });
});
