import { getEventListeners } from "node:events";
import { describe, expect, test } from "@jest/globals";
import { LockConfigError } from "../../../lib/errors.js";
import type { LockInfo } from "../../../lib/lock-info.js";
import { hear } from "../../support/diagnostics.js";
import { turn, watch } from "../../support/eventually.js";
import { createGate } from "../../support/fault-proxy/gate.js";
import { ManualTime } from "../../support/manual-time.js";
import { isTake, MemoryHost } from "../../support/memory-host.js";

const NAME = "leader";
const OPTIONS = { ttlMs: 10_000 };

function setUp() {
  const time = new ManualTime();
  const observer = new MemoryHost(time, { owner: "observer" });
  const hostOf = (owner: string) => new MemoryHost(time, { owner, table: observer.table });
  const [a, b] = [hostOf("a"), hostOf("b")];
  return { time, observer, a, b, mutexOf: (host: MemoryHost) => host.mutex(NAME, OPTIONS) };
}

/** Goes on observing in the background, as a loop would. */
function follow(iterator: AsyncIterable<LockInfo | null>) {
  const seen: (LockInfo | null)[] = [];
  const ended = (async () => {
    for await (const holder of iterator) seen.push(holder);
  })();
  ended.catch(() => undefined);
  return { seen, ended, owners: () => seen.map((holder) => holder?.owner ?? null) };
}

describe("an observer", () => {
  test("sees the present holder first, or that there is none, and then each change in order", async () => {
    const { time, observer, a, b, mutexOf } = setUp();
    const { owners, seen } = follow(mutexOf(observer).observe());
    await turn();
    expect(owners()).toEqual([null]);
    const first = await mutexOf(a).lock({ data: { url: "http://a" } });
    await time.advance(1_000);
    const second = follow(mutexOf(observer).observe());
    await turn();
    await first.unlock();
    await time.advance(1_000);
    const last = await mutexOf(b).lock();
    await time.advance(30_000);
    expect(owners()).toEqual([null, "a", null, "b"]);
    expect(seen[1]).toMatchObject({ name: NAME, kind: "mutex", uuid: first.uuid, data: { url: "http://a" } });
    expect(second.owners()).toEqual(["a", null, "b"]);
    await last.unlock();
  });

  test("asks once a poll, consistently, and polls vary", async () => {
    const { time, observer, a, mutexOf } = setUp();
    await mutexOf(a).lock();
    const { session } = observer;
    const draws = [0, 0.999, 0.5];
    Object.assign(session, { random: () => draws.shift() ?? 0.5 });
    follow(mutexOf(observer).observe({ pollMs: 4_000 }));
    await time.advance(3_000);
    expect(observer.told()).toEqual(["consistent read lock", "consistent read lock"]);
    await time.advance(4_998);
    expect(observer.told()).toEqual(["consistent read lock"]);
    await time.advance(4_000);
    expect(observer.told()).toEqual(["consistent read lock"]);
    await time.advance(400_000);
    expect(observer.told().length).toBe(100);
  });

  test("polls once a second if nothing else is said: 60 reads a minute", async () => {
    const { time, observer, mutexOf } = setUp();
    follow(mutexOf(observer).observe());
    await turn();
    observer.told();
    await time.advance(60_000);
    expect(observer.told()).toEqual(Array(60).fill("consistent read lock"));
  });

  test("sees a holder of its own process without a request, and its end by the next poll", async () => {
    const { time, observer, mutexOf } = setUp();
    const lock = await mutexOf(observer).lock({ data: { port: 1 } });
    observer.told();
    const { owners, seen } = follow(mutexOf(observer).observe());
    await time.advance(4_000);
    expect([owners(), observer.told()]).toEqual([["observer"], []]);
    expect(seen[0]).toEqual(
      await mutexOf(observer)
        .inspect()
        .then((state) => state && { ...state, waiters: undefined }),
    );
    await lock.replaceData({ port: 2 });
    await time.advance(1_000);
    expect(seen.map((holder) => holder?.data)).toEqual([{ port: 1 }, { port: 2 }]);
    await lock.unlock();
    await time.advance(1_000);
    expect(owners()).toEqual(["observer", "observer", null]);
  });

  test("sees that a holder has replaced its data, and not that it renews", async () => {
    const { time, observer, a, mutexOf } = setUp();
    const lock = await mutexOf(a).lock({ data: { url: "http://old" } });
    const { seen } = follow(mutexOf(observer).observe());
    await time.advance(20_000);
    await lock.replaceData({ url: "http://new" });
    await time.advance(20_000);
    expect(seen.map((holder) => holder?.data)).toEqual([{ url: "http://old" }, { url: "http://new" }]);
  });

  test("looks while somebody waits for the next alone, and shows the present holder then", async () => {
    const { time, observer, a, b, mutexOf } = setUp();
    const iterator = mutexOf(observer).observe();
    expect(await iterator.next()).toEqual({ done: false, value: null });
    observer.told();
    const lock = await mutexOf(a).lock();
    await time.advance(60_000);
    await lock.unlock();
    await mutexOf(b).lock();
    expect([observer.told(), time.timers > 0]).toEqual([[], true]);
    expect((await iterator.next()).value).toMatchObject({ owner: "b" });
    await iterator.return?.();
  });
});

describe("a holder that has died", () => {
  test.each(["expired", "unchanged"] as const)(
    "is shown until its lease is over, by the rule %s, and a late renewal does not bring it back",
    async (takeover) => {
      const { time, observer, a } = setUp();
      const options = { ...OPTIONS, takeover };
      const lock = await a.mutex(NAME, options).lock();
      const { owners } = follow(observer.mutex(NAME, options).observe());
      await time.advance(100);
      // A renewal is on its way for very long.
      const network = createGate();
      a.fate = () => network.released;
      await time.advance(9_800);
      expect(owners()).toEqual(["a"]);
      await time.advance(2_000);
      expect([owners(), lock.held]).toEqual([["a", null], false]);
      network.release();
      await turn();
      expect(observer.row(NAME)).toMatchObject({ uuid: lock.uuid, expires: expect.any(Number) });
      expect(observer.row(NAME)?.expires).toBeGreaterThan(time.now);
      await time.advance(5_000);
      expect(owners()).toEqual(["a", null]);
    },
  );
});

describe("the end of an observation", () => {
  test.each(["before it begins", "between two polls", "during a read"])(
    "by its signal, %s: it throws the reason",
    async (when) => {
      const { time, observer, mutexOf } = setUp();
      const stopping = new AbortController();
      const { signal } = stopping;
      const reason = new Error("enough");
      const iterator = mutexOf(observer).observe({ signal });
      if (when !== "before it begins") await iterator.next();
      if (when === "during a read") observer.fate = () => "lost";
      if (when === "before it begins") stopping.abort(reason);
      const next = iterator.next();
      next.catch(() => undefined);
      await turn();
      if (when === "during a read") await time.advance(1_000);
      stopping.abort(reason);
      await expect(next).rejects.toBe(reason);
      expect(await iterator.next()).toEqual({ done: true, value: undefined });
      expect(getEventListeners(signal, "abort")).toEqual([]);
      // An attempt that is in flight ends in the background.
      await time.advance(3_000);
      expect(time.timers).toBe(0);
    },
  );

  test.each(["between two polls", "during a read", "with nobody waiting"])(
    "by its return, %s: whoever waits is answered, and nothing is left",
    async (when) => {
      const { time, observer, mutexOf } = setUp();
      const { signal } = new AbortController();
      const iterator = mutexOf(observer).observe({ signal });
      await iterator.next();
      expect([time.timers, getEventListeners(signal, "abort")]).toEqual([0, []]);
      if (when === "during a read") observer.fate = () => "lost";
      const next = when === "with nobody waiting" ? undefined : iterator.next();
      await turn();
      if (when === "during a read") await time.advance(1_000);
      expect(await iterator.return?.()).toEqual({ done: true, value: undefined });
      if (next !== undefined) expect(await next).toEqual({ done: true, value: undefined });
      expect(await iterator.next()).toEqual({ done: true, value: undefined });
      await time.advance(3_000);
      expect([time.timers, getEventListeners(signal, "abort")]).toEqual([0, []]);
    },
  );

  test("by the close of the table, which it does not hold up", async () => {
    const { time, observer, mutexOf } = setUp();
    const { ended } = follow(mutexOf(observer).observe());
    await time.advance(10_500);
    await observer.session.close();
    await expect(ended).rejects.toMatchObject({ code: "LOCK_CLOSED" });
    expect([time.elapsed, time.timers]).toEqual([10_500, 0]);
    expect(() => mutexOf(observer).observe()).toThrow(expect.objectContaining({ code: "LOCK_CLOSED" }));
  });
});

describe("a table that does not answer as it should", () => {
  test("at all, at first, is an error after 10 s", async () => {
    const { time, observer, mutexOf } = setUp();
    observer.fate = () => "lost";
    const { ended } = follow(mutexOf(observer).observe());
    const over = watch(ended);
    await time.advance(9_900);
    expect(over.settled).toBe(false);
    await time.advance(200);
    await expect(ended).rejects.toMatchObject({ code: "LOCK_STORE", transient: true });
  });

  test("at all, later on, is waited out, and told", async () => {
    const { time, observer, a, mutexOf } = setUp();
    const failures = hear("dynamutex:wait-failed");
    const { owners } = follow(mutexOf(observer).observe());
    await turn();
    observer.fate = () => "lost";
    await time.advance(60_000);
    expect(failures.length).toBeGreaterThan(2);
    expect(failures[0]).toMatchObject({ name: NAME, cause: { code: "LOCK_STORE" } });
    await mutexOf(a).lock();
    observer.fate = () => "answered";
    await time.advance(5_000);
    expect(owners()).toEqual([null, "a"]);
  });
});

test.each([
  ["pollMs", { pollMs: 0 }],
  ["pollMs", { pollMs: 0.5 }],
  ["signal", { signal: 1 }],
  ["waitMs", { waitMs: 1 }],
])("a bad option is refused at once: %s", (option, options) => {
  const { observer, mutexOf } = setUp();
  const observe = () => mutexOf(observer).observe(options as object);
  expect(observe).toThrow(LockConfigError);
  expect(observe).toThrow(expect.objectContaining({ option }));
});

test("an election is observed as its mutex is, and goes on being observed after its end", async () => {
  const { time, observer, a, mutexOf } = setUp();
  const election = mutexOf(observer).elect(({ signal }) => new Promise((end) => signal.addEventListener("abort", end)));
  await turn();
  const { owners } = follow(election.observe({ pollMs: 500 }));
  await time.advance(700);
  await election.resign();
  await time.advance(700);
  await mutexOf(a).lock();
  await time.advance(700);
  expect(owners()).toEqual(["observer", null, "a"]);
});

test.each(["expired", "unchanged"] as const)(
  "a slow answer does not show a leader that renews as dead, by the rule %s",
  async (takeover) => {
    const { time, observer, a } = setUp();
    const options = { ttlMs: 3_000, takeover };
    const lock = await a.mutex(NAME, options).lock();
    const { owners } = follow(observer.mutex(NAME, options).observe({ pollMs: 400 }));
    await time.advance(1_000);
    let reads = 0;
    observer.hold = ({ kind }) => (kind === "read" && reads++ === 0 ? observer.session.clock.sleep(2_500) : undefined);
    await time.advance(60_000);
    expect([lock.held, owners()]).toEqual([true, ["a"]]);
  },
);

test("trap 45: a leader whose take was so slow that its lease was over in between is shown all the same, once it leads", async () => {
  const { time, observer, a, mutexOf } = setUp();
  const { owners, seen } = follow(mutexOf(observer).observe());
  await turn();
  const { clock } = a.session;
  const [answered, arrives] = [clock.sleep(8_500), clock.sleep(11_500)];
  a.hold = (message) => (isTake(message) ? answered : undefined);
  // What renews it before it is handed out arrives when its first stamp is over.
  a.fate = (message) => (message.kind === "write" && !isTake(message) && time.elapsed < 11_500 ? arrives : "answered");
  const leading = mutexOf(a).lock();
  await time.settle(leading);
  expect(time.elapsed).toBeGreaterThan(11_000);
  const lock = await leading;
  await time.advance(60_000);
  expect([lock.held, owners()]).toEqual([true, [null, "a", null, "a"]]);
  expect(seen.at(-1)?.uuid).toBe(lock.uuid);
});
