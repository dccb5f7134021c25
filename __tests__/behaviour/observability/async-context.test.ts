import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, test } from "@jest/globals";
import type { Diagnostics, Lockable } from "../../../lib/index.js";
import { hear } from "../../support/diagnostics.js";
import { hosts, inWords, type MemoryHost } from "../../support/memory-host.js";

const NAME = "m";
const storage = new AsyncLocalStorage<string>();

/** What is told and sent from here on, each with the context in which that happened. */
function record(host: MemoryHost) {
  const told: string[] = [];
  const note = (what: string) => told.push(`${storage.getStore()}: ${what}`);
  for (const channel of ["missed", "failed", "acquired", "released", "wait-failed", "stuck", "renewed"] as const)
    hear(`dynamutex:${channel}` as keyof Diagnostics, () => note(channel));
  const { fate } = host;
  host.fate = (message) => {
    note(inWords(message));
    return fate(message);
  };
  return { since: () => told.splice(0) };
}

const of = (context: string, told: readonly string[]): boolean => told.every((one) => one.startsWith(`${context}: `));

type Kind = readonly [string, (host: MemoryHost) => Lockable];

const KINDS: readonly Kind[] = [
  ["a mutex", (host) => host.mutex(NAME)],
  ["a fair mutex", (host) => host.mutex(NAME, { fair: true })],
  ["a semaphore", (host) => host.semaphore(NAME, { permits: 1 })],
  ["a fair semaphore", (host) => host.semaphore(NAME, { permits: 1, fair: true })],
  ["a shared mutex", (host) => host.sharedMutex(NAME).exclusive],
];

describe.each(KINDS)("trap 52: callers of one process that wait for %s", (_kind, lockable) => {
  test("after the first one's timeout, each request and event is in the context of the second", async () => {
    const { time, one, other } = hosts();
    const held = await lockable(one).lock();
    const { since } = record(other);
    const first = storage.run("first", () => lockable(other).lock({ waitMs: 2_500 }));
    const missed = expect(first).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
    await time.advance(100);
    const second = storage.run("second", () => lockable(other).lock());
    await time.advance(2_400);
    await missed;
    const before = since();
    expect(before).toContain("first: missed");
    expect(before).not.toContain("first: wait-failed");
    await time.advance(1_000);
    await storage.run("holder", () => held.unlock());
    await time.advance(15_000);
    const lock = await second;
    const after = since().filter((one) => !one.startsWith("holder: "));
    expect(after).toContain("second: acquired");
    expect(after.some((told) => told.includes("take"))).toBe(true);
    // A place in a queue serves all callers of the process, so it ends in the context of none of them.
    expect(after).toEqual(after.filter((told) => /^second: |^undefined: vacate \S*queue#/.test(told)));
    await time.advance(20_000);
    const renewed = since();
    expect(renewed).toContain("second: renewed");
    expect(of("second", renewed)).toBe(true);
    await storage.run("second", () => lock.unlock());
  });

  test("a lease that passes on ends in the context of the one and begins in that of the other", async () => {
    const { time, one } = hosts();
    const { since } = record(one);
    const first = await storage.run("first", () => lockable(one).lock());
    const second = storage.run("second", () => lockable(one).lock());
    await time.advance(6_000);
    expect(since()).toContain("second: stuck");
    await storage.run("third", () => first.unlock());
    await time.advance(1_000);
    const told = since().filter((what) => /acquired|released/.test(what));
    expect(told).toEqual(["third: released", "second: acquired"]);
    await time.advance(20_000);
    expect(of("second", since())).toBe(true);
    await storage.run("second", async () => (await second).unlock());
  });

  test("an abort and a close end each in its own", async () => {
    const { time, one, other } = hosts();
    await lockable(one).lock();
    const { since } = record(other);
    const controller = new AbortController();
    const calls = ["first", "second"].map((context) => {
      const { signal } = context === "first" ? controller : new AbortController();
      return storage.run(context, () => lockable(other).lock({ signal }));
    });
    const ended = Promise.allSettled(calls);
    await time.advance(100);
    storage.run("aborts", () => controller.abort(new Error("enough")));
    await time.advance(1);
    const closed = storage.run("closes", () => other.session.close());
    await time.advance(20_000);
    await Promise.all([ended, closed]);
    expect(since().filter((what) => what.endsWith("failed"))).toEqual(["first: failed", "second: failed"]);
  });
});

test("trap 52: a request that had to wait for its turn leaves in the context of its call", async () => {
  const { time, one } = hosts();
  const { since } = record(one);
  const { width } = one.session.scheduler;
  const names = Array.from({ length: 2 * width }, (_, index) => `${index}`);
  const locks = Promise.all(names.map((name) => storage.run(name, () => one.mutex(name).lock())));
  await time.advance(1_000);
  for (const lock of await locks) await storage.run(lock.name, () => lock.unlock());
  const sent = since().filter((what) => what.endsWith("take lock"));
  expect(sent.toSorted()).toEqual(names.map((name) => `${name}: take lock`).toSorted());
});
