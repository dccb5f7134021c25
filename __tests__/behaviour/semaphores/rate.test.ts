import { describe, expect, test } from "@jest/globals";
import { MemoryTable } from "../../../lib/testing/memory-table.js";
import { ManualTime } from "../../support/manual-time.js";
import { MemoryHost } from "../../support/memory-host.js";
import { seededRandom } from "../../support/seeded-random.js";

const NAME = "crm";
const PER_MS = 60_000;

/** Hosts on one table that share a rate. */
function hostsWith(
  count: number,
  { permits = 3, perMs = PER_MS, ttlMs = undefined as number | undefined, maxSkewMs = 0 } = {},
) {
  const time = new ManualTime();
  const table = new MemoryTable();
  const hosts = Array.from(
    { length: count },
    (_, index) => new MemoryHost(time, { table, owner: `host-${index}`, maxSkewMs }),
  );
  const semaphores = hosts.map((host) => host.semaphore(NAME, { permits, perMs, ttlMs }));
  const starts: number[] = [];
  const start = async (index = 0): Promise<boolean> => {
    const { ran } = (await semaphores[index]?.tryRun(() => void starts.push(time.elapsed))) ?? { ran: false };
    return ran;
  };
  return { time, table, hosts, semaphores, starts, start };
}

/** The most starts in any window of a period. */
const mostIn = (starts: readonly number[], perMs: number): number =>
  Math.max(...starts.map((from) => starts.filter((at) => at >= from && at - from <= perMs).length));

describe("a rate of a semaphore", () => {
  test("lets so many begin in a period over all hosts, however soon they end, and as many in the next", async () => {
    const { time, start, starts } = hostsWith(2, { permits: 2 });
    expect([await start(0), await start(1), await start(0), await start(1)]).toEqual([true, true, false, false]);
    await time.advance(PER_MS);
    expect(await start(0)).toBe(false);
    await time.advance(2);
    expect([await start(0), await start(0), await start(1)]).toEqual([true, true, false]);
    expect(starts).toEqual([0, 0, PER_MS + 2, PER_MS + 2]);
  });

  test("is not exceeded in any window by hosts that wait, with clocks that are not certain", async () => {
    const { time, semaphores, starts } = hostsWith(3, { permits: 4, maxSkewMs: 400 });
    const random = seededRandom(7, "rate");
    const work = semaphores.flatMap((semaphore) =>
      Array.from({ length: 4 }, () =>
        semaphore.run(async () => {
          starts.push(time.elapsed);
          await time.clock().sleep(Math.floor(random() * 2 * PER_MS));
        }),
      ),
    );
    await time.settle(Promise.all(work), { stepMs: 50, withinMs: 20 * PER_MS });
    expect(starts).toHaveLength(12);
    expect(mostIn(starts, PER_MS)).toBeLessThanOrEqual(4);
  });

  test("lets a section that takes longer than the period be followed at once", async () => {
    const { time, semaphores, start } = hostsWith(2, { permits: 1 });
    const permit = await semaphores[0]?.lock();
    await time.advance(PER_MS + 2);
    await permit?.unlock();
    expect(await start(1)).toBe(true);
  });

  test("counts each of several permits that one call takes", async () => {
    const { time, semaphores, start } = hostsWith(2, { permits: 3 });
    await (await semaphores[0]?.lock({ permits: 2 }))?.unlock();
    expect([await start(1), await start(1)]).toEqual([true, false]);
    await time.advance(PER_MS + 2);
    expect(await semaphores[1]?.tryLock({ permits: 3 })).not.toBeNull();
  });

  test("is kept by the lease of a host that has crashed", async () => {
    const { time, hosts, semaphores, start } = hostsWith(2, { permits: 1 });
    await semaphores[0]?.lock();
    const [crashed] = hosts;
    if (crashed !== undefined) crashed.fate = () => "lost";
    await time.advance(PER_MS);
    expect(await start(1)).toBe(false);
    await time.advance(0.2 * PER_MS + 1);
    expect(await start(1)).toBe(true);
  });

  test("is kept by the lease of a host that got its permit late and has crashed: the lease is renewed first", async () => {
    const { time, hosts, semaphores, start } = hostsWith(2, { permits: 1, perMs: 20_000, ttlMs: 22_300 });
    const [slow] = hosts;
    if (slow === undefined) throw new Error("no host");
    let isFirst = true;
    slow.hold = ({ kind }) => {
      if (kind !== "write" || !isFirst) return undefined;
      isFirst = false;
      return time.clock().sleep(9_000);
    };
    await time.settle(Promise.resolve(semaphores[0]?.lock()), { stepMs: 10 });
    expect(time.elapsed).toBeGreaterThan(2_300);
    slow.fate = () => "lost";
    await time.advance(20_000);
    expect(await start(1)).toBe(false);
    await time.advance(2_301);
    expect(await start(1)).toBe(true);
  });

  test("is kept when the table of the holder is closed, and its section revoked", async () => {
    const { time, hosts, semaphores, start } = hostsWith(2, { permits: 1 });
    const permit = await semaphores[0]?.lock();
    await time.settle(Promise.resolve(hosts[0]?.session.close(0)));
    await expect(permit?.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "closed" });
    expect(await start(1)).toBe(false);
    await time.advance(PER_MS + 2);
    expect(await start(1)).toBe(true);
  });

  test("is kept when the lock was lost, and through a hand-off that nobody resumes", async () => {
    const { time, semaphores, start } = hostsWith(2, { permits: 1 });
    const permit = await semaphores[0]?.lock();
    await permit?.handOff({ validForMs: 1_000 });
    await time.advance(PER_MS);
    expect(await start(1)).toBe(false);
    await time.advance(2);
    expect(await start(1)).toBe(true);
  });

  test("ends a call that waits too short with the permit that is free first, and not the one that was taken last", async () => {
    const { time, semaphores, start } = hostsWith(2, { permits: 3 });
    for (const after of [0, 10_000, 10_000]) {
      await time.advance(after);
      await start(0);
    }
    for (const waitMs of [0, 5_000]) {
      const message = expect(semaphores[1]?.lock({ waitMs })).rejects.toThrow(
        "and kept until 2030-01-01T00:01:00.001Z, ",
      );
      await time.advance(6_000);
      await message;
    }
  });

  test("of permits that are kept and in use, names one that is kept: nobody knows when a section ends", async () => {
    const { time, semaphores, start } = hostsWith(2, { permits: 2 });
    const permit = await semaphores[0]?.lock();
    await time.advance(10_000);
    await start(0);
    const message = expect(semaphores[1]?.lock({ waitMs: 0 })).rejects.toThrow(
      "and kept until 2030-01-01T00:01:10.001Z, ",
    );
    await time.advance(1_000);
    await message;
    await permit?.unlock();
  });

  test("ends a call that waits too short with the name of who had the permit, and until when it is kept", async () => {
    const { time, semaphores, start } = hostsWith(2, { permits: 1 });
    await start(0);
    const waiting = semaphores[1]?.lock({ waitMs: 1_000 });
    const message = expect(waiting).rejects.toThrow(
      /last seen without a holder, last held by host-0, and kept until 2030-01-01T00:01:00\.001Z, which no unlock can end/,
    );
    await time.advance(2_000);
    await message;
  });

  test("costs two writes for a start", async () => {
    const { hosts, start } = hostsWith(1);
    await start();
    expect(hosts[0]?.told()).toEqual([
      expect.stringMatching(/^take semaphore/),
      expect.stringMatching(/^vacate semaphore/),
    ]);
  });
});

describe("the lease of a rate", () => {
  const settings = (options: object) => () =>
    new MemoryHost(new ManualTime()).semaphore(NAME, { permits: 1, ...options });

  test.each([
    ["a ttl of the period", { perMs: 60_000, ttlMs: 60_000 }, /ttlMs: must be more than 66000/],
    [
      "a ttl of less than the period and the margin",
      { perMs: 60_000, ttlMs: 66_000 },
      /ttlMs: must be more than 66600/,
    ],
    ["no period", { perMs: 0 }, /perMs: must be at least 100 ms/],
    ["a period of more than 20 days", { perMs: 1_728_000_001 }, /perMs: must be at most 1728000000 ms, 20 days/],
    ["a fraction of a millisecond", { perMs: 0.5 }, /perMs: must be a whole number/],
  ])("%s is a LockConfigError", (_, options, message) => {
    expect(settings(options)).toThrow(message);
  });

  test.each([100, 1_000, 25_000, 3_600_000, 1_728_000_000])("has a default for a period of %d ms", (perMs) => {
    expect(settings({ perMs })).not.toThrow();
  });
});
