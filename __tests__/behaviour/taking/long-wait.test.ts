import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, test } from "@jest/globals";
import type { Lockable } from "../../../lib/index.js";
import { hear, useWarnings } from "../../support/diagnostics.js";
import { turn } from "../../support/eventually.js";
import { hosts, type MemoryHost } from "../../support/memory-host.js";

const LONG_MS = 5_000;

/** Long enough that nothing is renewed in the time of a test. */
const OPTIONS = { ttlMs: 600_000, poll: { minMs: 1_000, maxMs: 1_000 } };

const warnings = useWarnings();

const KINDS: readonly (readonly [string, (host: MemoryHost) => Pick<Lockable, "lock">])[] = [
  ["a mutex", (host) => host.mutex("a", OPTIONS)],
  ["a fair mutex", (host) => host.mutex("a", { ...OPTIONS, fair: true })],
  ["a semaphore", (host) => host.semaphore("a", { ...OPTIONS, permits: 1 })],
  ["a fair semaphore", (host) => host.semaphore("a", { ...OPTIONS, permits: 1, fair: true })],
  ["the exclusive side of a shared mutex", (host) => host.sharedMutex("a", OPTIONS).exclusive],
];

const lost = (promise: Promise<unknown>): Promise<unknown> => promise.catch(() => undefined);

describe("a call that waits for 5 s", () => {
  test.each(KINDS)("says behind whom and until when, once: %s of another process", async (_kind, of) => {
    const blocked = hear("dynamutex:blocked");
    const asked = hear("dynamutex:asked");
    const { time, one, other } = hosts();
    const theirs = await of(other).lock();
    const waiting = of(one).lock();
    await time.advance(LONG_MS - 1);
    expect(blocked).toEqual([]);
    await time.advance(1);
    const holder = { owner: "other", expires: theirs.expires };
    expect(blocked).toMatchObject([{ name: "a", call: asked[1]?.call, waitedMs: LONG_MS, holder }]);
    await time.advance(10 * LONG_MS);
    expect([blocked.length, warnings]).toEqual([1, []]);
    await theirs.unlock();
    await time.advance(2_000);
    await (await waiting).unlock();
    await turn();
    expect(time.timers).toBe(0);
  });

  test("says so on the shared side, behind a writer, and for each of those that share a claim", async () => {
    const blocked = hear("dynamutex:blocked");
    const { time, one, other } = hosts();
    const theirs = await other.sharedMutex("a", OPTIONS).exclusive.lock();
    const { shared } = one.sharedMutex("a", OPTIONS);
    const waiting = [shared.lock(), shared.lock()];
    await time.advance(LONG_MS);
    expect(blocked.map(({ holder }) => [holder.kind, holder.owner])).toEqual([
      ["exclusive", "other"],
      ["exclusive", "other"],
    ]);
    await theirs.unlock();
    await time.advance(2_000);
    for (const lock of await Promise.all(waiting)) await lock.unlock();
  });

  test("says so of a set, with the lock that is in the way", async () => {
    const blocked = hear("dynamutex:blocked");
    const { time, one, other } = hosts();
    const theirs = await other.mutex("b", OPTIONS).lock();
    const waiting = one.lockAll(["a", "b"], OPTIONS);
    await time.advance(LONG_MS);
    expect(blocked).toMatchObject([{ name: "a, b", holder: { name: "b", owner: "other" } }]);
    await theirs.unlock();
    await time.advance(2_000);
    await (await waiting).unlock();
  });

  test("says so behind a place in the queue, where nobody has the lock yet, once somebody has it", async () => {
    const blocked = hear("dynamutex:blocked");
    const { time, one, other, third } = hosts();
    const [first, second, last] = [other, third, one].map((host) => host.mutex("a", { ...OPTIONS, fair: true }));
    const theirs = await first?.lock();
    const next = second?.lock();
    await time.advance(1_000);
    const waiting = last?.lock();
    await time.advance(LONG_MS);
    expect(blocked.map(({ holder }) => holder.owner)).toEqual(["other", "other"]);
    await theirs?.unlock();
    await time.advance(5_000);
    await (await next)?.unlock();
    await time.advance(5_000);
    await (await waiting)?.unlock();
  });

  test("sends nothing for it, and is told in its caller's asynchronous context", async () => {
    const storage = new AsyncLocalStorage<string>();
    const contexts: unknown[] = [];
    const { time, one, other } = hosts();
    const theirs = await other.mutex("a", OPTIONS).lock();
    const waiting = storage.run("mine", () => one.mutex("a", OPTIONS).lock());
    await time.advance(LONG_MS - 500);
    const sent = one.sent.length;
    hear("dynamutex:blocked", () => contexts.push(storage.getStore(), one.sent.length));
    await time.advance(500);
    expect(contexts[0]).toBe("mine");
    expect(contexts[1]).toBeLessThanOrEqual(sent + 1);
    await theirs.unlock();
    await time.advance(2_000);
    await (await waiting).unlock();
  });

  test("may be ended by whoever hears it", async () => {
    const ending = new AbortController();
    hear("dynamutex:blocked", () => ending.abort(new Error("enough")));
    const { time, one, other } = hosts();
    await other.mutex("a", OPTIONS).lock();
    const waiting = expect(one.mutex("a", OPTIONS).lock({ signal: ending.signal })).rejects.toThrow("enough");
    await time.advance(LONG_MS);
    await waiting;
    // What is left is the other's: its renewal and its deadline.
    const left = time.timers;
    await time.advance(10 * LONG_MS);
    expect(time.timers).toBe(left);
  });

  test("is none that ends before, none of a table that says nothing, and no try", async () => {
    const blocked = hear("dynamutex:blocked");
    const { time, one, other, third } = hosts();
    await other.mutex("a", OPTIONS).lock();
    const ended = lost(one.mutex("a", OPTIONS).lock({ waitMs: LONG_MS - 1 }));
    expect(await one.mutex("a", OPTIONS).tryLock()).toBeNull();
    third.fate = () => "lost";
    const unheard = lost(third.mutex("b", OPTIONS).lock());
    await time.advance(6 * LONG_MS);
    await Promise.all([ended, unheard]);
    expect(blocked).toEqual([]);
  });
});

describe("a candidate of an election", () => {
  test("waits by design: neither behind a leader of its own process nor behind another is its wait told as long", async () => {
    const told = [hear("dynamutex:blocked"), hear("dynamutex:stuck")];
    const { time, one, other } = hosts();
    const lead = ({ signal }: { readonly signal: AbortSignal }): Promise<void> =>
      new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    const elections = [one, one, other].map((host) => host.mutex("a", OPTIONS).elect(lead));
    await time.advance(12 * LONG_MS);
    expect([...told, warnings]).toEqual([[], [], []]);
    for (const election of elections) election.resign().catch(() => undefined);
    await time.advance(12 * LONG_MS);
    await Promise.all(elections.map(({ done }) => lost(done)));
  });
});
