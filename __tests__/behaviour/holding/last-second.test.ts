import { describe, expect, test } from "@jest/globals";
import { LockStoreError } from "../../../lib/index.js";
import { hear } from "../../support/diagnostics.js";
import { ManualTime } from "../../support/manual-time.js";
import { type Fate, inWords, MemoryHost } from "../../support/memory-host.js";
import { seededRandom } from "../../support/seeded-random.js";

const TTL_MS = 10_000;
const LEASE_MS = 9_000;
const HOSTS = 40;

const down = () => new LockStoreError("connection refused", { transient: true, answered: false });

/** Hosts that each hold a lock, taken at one moment, on a table that is down from their first renewal on until a while before the end. */
async function outage({
  wellMs,
  locksEach = 1,
  how = () => Promise.reject(down()),
}: {
  readonly wellMs: number;
  readonly locksEach?: number;
  readonly how?: () => Fate;
}) {
  const time = new ManualTime();
  const [first, ...others] = Array.from({ length: HOSTS }, (_, index) => `host-${index}`).map((owner, index, all) => {
    const random = seededRandom(index, "pauses");
    return { owner, random, all };
  });
  const one = new MemoryHost(time, { ...first });
  const hosts = [one, ...others.map((how) => new MemoryHost(time, { ...how, table: one.table }))];
  const locks = await Promise.all(
    hosts.flatMap((host) =>
      Array.from({ length: locksEach }, (_, index) =>
        host.mutex(`${host.session.owner}/${index}`, { ttlMs: TTL_MS }).lock(),
      ),
    ),
  );
  const renewedAt: number[] = [];
  let attempts = 0;
  for (const host of hosts) {
    host.fate = (message) => {
      if (!inWords(message).startsWith("renew")) return "answered";
      attempts += 1;
      if (time.elapsed < LEASE_MS - wellMs) return how();
      if (time.elapsed < LEASE_MS) renewedAt.push(time.elapsed);
      return "answered";
    };
  }
  const losses = hear("dynamutex:lost");
  await time.advance(LEASE_MS);
  return { time, hosts, locks, losses, renewedAt, attempts };
}

describe("trap 51: a table that is well again just before leases end", () => {
  test.each([
    ["one lock each", 1],
    ["so many locks each that renewals travel together", 10],
  ])("keeps the locks of all hosts: %s", async (_, locksEach) => {
    const { locks, losses } = await outage({ wellMs: 800, locksEach });
    expect(losses).toEqual([]);
    expect(locks.every((lock) => lock.held)).toBe(true);
  });

  test("keeps the locks of all hosts if it was silent: no attempt waits for an answer to the end", async () => {
    const { locks, losses } = await outage({ wellMs: 800, how: () => "lost" });
    expect(losses).toEqual([]);
    expect(locks.every((lock) => lock.held)).toBe(true);
  });

  test("is asked by each host at a moment of its own, and not more often than before by more than a few times", async () => {
    const { renewedAt, attempts } = await outage({ wellMs: 800 });
    expect(renewedAt).toHaveLength(HOSTS);
    const perMoment = new Map<number, number>();
    for (const at of renewedAt) perMoment.set(Math.floor(at / 50), (perMoment.get(Math.floor(at / 50)) ?? 0) + 1);
    expect(Math.max(...perMoment.values())).toBeLessThan(HOSTS / 3);
    expect(attempts / HOSTS).toBeLessThan(15);
  });

  test("keeps a lock although its answers were slow, where it has turned down all renewals at once since", async () => {
    const time = new ManualTime();
    const one = new MemoryHost(time);
    const losses = hear("dynamutex:lost");
    const slowMs = 2_400;
    one.hold = () => time.clock().sleep(slowMs);
    const lock = await time.outcome(one.mutex("slow", { ttlMs: TTL_MS }).lock());
    one.hold = () => undefined;
    // The lease counts from when the take left.
    const lostAt = time.elapsed - slowMs + LEASE_MS;
    const throttled = new LockStoreError("throttled", { transient: true, throttled: true });
    one.fate = () => (time.elapsed < lostAt - 1_500 ? Promise.reject(throttled) : "answered");
    await time.advance(lostAt - time.elapsed);
    expect(losses).toEqual([]);
    expect(lock).toMatchObject({ held: true });
  });

  test("gets the releases that it has not answered before", async () => {
    const time = new ManualTime();
    const failures = hear("dynamutex:release-failed");
    const hosts = Array.from(
      { length: HOSTS },
      (_, index) => new MemoryHost(time, { owner: `host-${index}`, random: seededRandom(index, "pauses") }),
    );
    const locks = await Promise.all(hosts.map((host) => host.mutex("released").lock()));
    for (const host of hosts) host.fate = () => (time.elapsed < 4_200 ? Promise.reject(down()) : "answered");
    const releasing = Promise.all(locks.map((lock) => lock.unlock()));
    await time.settle(releasing, { stepMs: 50 });
    expect(failures).toEqual([]);
    expect(hosts.map((host) => host.row("released"))).toEqual(Array(HOSTS).fill(undefined));
  });
});
