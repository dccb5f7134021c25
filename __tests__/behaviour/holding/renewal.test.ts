import { describe, expect, test } from "@jest/globals";
import type { Clock, Lock } from "../../../lib/index.js";
import { hear } from "../../support/diagnostics.js";
import { eventually, turn } from "../../support/eventually.js";
import { withBody } from "../../support/fault-proxy/reply.js";
import {
  error,
  type Fault,
  hang,
  resetBefore,
  status500,
  throttle,
  transactionConflict,
} from "../../support/fault-proxy.js";
import { ManualTime } from "../../support/manual-time.js";
import { useScene } from "../../support/scene.js";
import { timedOut } from "../../support/settled.js";

// An unhandled rejection in here fails the test that is running: jest sees to that.
const scene = useScene();

const TTL_MS = 30_000;
const LEASE_MS = 27_000;
const FOREVER = { times: Number.POSITIVE_INFINITY };

/** Lets so much time pass, and then the renewal that falls due at its end be answered. */
async function renewAfter(time: ManualTime, ms: number, lock: Lock): Promise<void> {
  const before = lock.expires.getTime();
  await time.advance(ms);
  await eventually(() => lock.expires.getTime() > before);
}

describe("renewing", () => {
  test.each([
    ["half TTL", TTL_MS / 2, {}],
    ["renewEveryMs", 4_000, { renewEveryMs: 4_000 }],
  ])(
    "a long section keeps its lock with one UpdateItem per %s, and each adds a lease from then on",
    async (_, everyMs, options) => {
      const { time, lock } = await scene.locked(options);
      for (let count = 1; count <= 6; count += 1) {
        await time.advance(everyMs - 1);
        expect(scene.proxy.count("UpdateItem")).toBe(count - 1);
        await renewAfter(time, 1, lock);
        expect(scene.proxy.count("UpdateItem")).toBe(count);
        expect(lock.expires.getTime()).toBe(time.now + TTL_MS);
        expect(lock.remainingMs).toBe(LEASE_MS);
        expect(await scene.row()).toMatchObject({ uuid: lock.uuid, expires: lock.expires.getTime() });
      }
      expect(time.elapsed).toBe(6 * everyMs);
      expect(scene.proxy.units("UpdateItem")).toEqual({ read: 0, write: 6 });
      await lock.unlock();
      await time.advance(3 * TTL_MS);
      expect(scene.proxy.counts()).toEqual({ PutItem: 1, UpdateItem: 6, DeleteItem: 1 });
      expect(time.timers).toBe(0);
    },
  );

  test("trap 7: a renewal moves the attribute for DynamoDB's TTL feature as well, in seconds, and leaves the data", async () => {
    const { time, lock } = await scene.locked({}, { data: { job: "report" } });
    await renewAfter(time, TTL_MS / 2, lock);
    expect(await scene.row()).toMatchObject({
      purge: lock.expires.getTime() / 1_000 + 7 * 24 * 60 * 60,
      data: { job: "report" },
      owner: lock.owner,
    });
    await lock.unlock();
  });

  test("renewals are counted from when the last one was sent, however long its answer took", async () => {
    const { time, lock } = await scene.locked();
    const hold = scene.proxy.hold("UpdateItem", { at: "reply" });
    await time.advance(TTL_MS / 2);
    await hold.arrived;
    await time.advance(2_000);
    hold.release();
    await eventually(() => lock.expires.getTime() > time.now + LEASE_MS);
    await time.advance(TTL_MS / 2 - 2_001);
    expect(scene.proxy.count("UpdateItem")).toBe(1);
    await renewAfter(time, 1, lock);
    expect(scene.proxy.count("UpdateItem")).toBe(2);
    await lock.unlock();
  });
});

describe("trap 21: every renewal changes the row, or a watcher would take its holder for dead", () => {
  test("renewals in one and the same millisecond have stamps of their own", async () => {
    const { time, lock } = await scene.locked();
    const stamps = [lock.expires.getTime()];
    for (let count = 0; count < 3; count += 1) {
      await lock.extend();
      stamps.push((await scene.row())?.expires as number);
    }
    expect(stamps).toEqual([0, 1, 2, 3].map((more) => time.now + TTL_MS + more));
    await lock.unlock();
  });

  test("stamps go on while the holder's clock is set back an hour, and the lock is kept", async () => {
    const time = new ManualTime();
    let stepped = 0;
    const right = time.clock();
    const wall = () => ({ earliest: time.now + stepped, latest: time.now + stepped });
    const clock: Clock = { ...right, wall };
    const lock = await scene.host({ clock }).mutex(scene.name).lock();
    const first = lock.expires.getTime();
    stepped = -3_600_000;
    for (const more of [1, 2, 3]) {
      await renewAfter(time, TTL_MS / 2, lock);
      expect(await scene.row()).toMatchObject({ expires: first + more });
      expect(lock.remainingMs).toBe(LEASE_MS);
    }
    await lock.unlock();
  });
});

describe("renewals that fail", () => {
  const FAILURES: readonly [string, () => Fault][] = [
    ["a 500", status500],
    ["throttling", throttle],
    ["a reset", resetBefore],
    ["another transaction on the row (trap 20)", transactionConflict],
    ["a missing permission", () => error("AccessDeniedException", "User is not authorized")],
    [
      "a signature by a wrong clock",
      () => error("InvalidSignatureException", "Signature expired: it is too late", 403),
    ],
  ];

  test.each(FAILURES)("trap 6: %s is tried again while the lease lasts, and told on the channel", async (_, fault) => {
    const failures = hear("dynamutex:renewal-failed");
    const losses = hear("dynamutex:lost");
    const { time, lock } = await scene.locked();
    const trouble = scene.proxy.on("UpdateItem", fault(), { times: 3 });
    const before = lock.expires.getTime();
    await time.advance(TTL_MS / 2);
    await time.sleepUntil(() => lock.expires.getTime() > before);
    await trouble.done;
    expect(failures.map(({ uuid }) => uuid)).toEqual(Array(3).fill(lock.uuid));
    expect([lock.held, losses]).toEqual([true, []]);
    // And renewing goes on.
    await renewAfter(time, TTL_MS / 2, lock);
    await lock.unlock();
  });

  test("trap 6: those that fail to the end end in a loss that its holder sees, and in no unhandled rejection", async () => {
    const losses = hear("dynamutex:lost");
    const { time, lock } = await scene.locked();
    scene.proxy.on("UpdateItem", status500(), FOREVER);
    await time.advance(TTL_MS / 2);
    await time.sleepUntil(() => losses.length > 0);
    expect(time.elapsed).toBe(LEASE_MS);
    expect(lock.signal.reason).toMatchObject({ reason: "expired", cause: { code: "LOCK_STORE" } });
    await turn();
    await expect(lock.unlock()).rejects.toBe(lock.signal.reason);
    expect(losses).toMatchObject([{ name: scene.name, uuid: lock.uuid, reason: "expired" }]);
  });

  test("trap 12: a renewal that hangs does not delay the notice of loss", async () => {
    const { time, lock } = await scene.locked();
    const hung = scene.proxy.on("UpdateItem", hang(), FOREVER);
    let toldAt: number | undefined;
    lock.signal.addEventListener("abort", () => {
      toldAt = time.elapsed;
    });
    await time.advance(TTL_MS / 2);
    await eventually(() => hung.used === 1);
    await time.passUntil(() => toldAt !== undefined);
    expect(toldAt).toBe(LEASE_MS);
    // More than one was sent: a hung request is given up well before the lease ends.
    expect(hung.used).toBeGreaterThan(1);
    await expect(lock.unlock()).rejects.toBe(lock.signal.reason);
  });

  test("trap 12: a lease that is nearly over is not outlasted by the request that should renew it", async () => {
    const { time, lock } = await scene.locked({ autoRenew: false });
    const hung = scene.proxy.on("UpdateItem", hang(), FOREVER);
    await time.advance(LEASE_MS - 1_000);
    const extending = lock.extend();
    await eventually(() => hung.used === 1);
    await timedOut(time, extending);
    expect(time.elapsed).toBe(LEASE_MS);
    await expect(extending).rejects.toBe(lock.signal.reason);
    const last = scene.proxy.requests.at(-1);
    await last?.settled;
    expect(last).toMatchObject({ operation: "UpdateItem", ending: "left" });
  });
});

describe("many locks", () => {
  const STEP_MS = 500;

  test.each([
    [200, 1],
    // More than the process has requests under way at once.
    [60, 50],
  ])(
    "trap 13: of %d locks of one process all are renewed in time while %d of them have hung requests",
    async (count, stuckCount) => {
      const time = new ManualTime();
      const losses = hear("dynamutex:lost");
      const host = scene.host({ clock: time.clock() });
      const names = Array.from({ length: count }, (_, index) => `${scene.name}/${index}`);
      const locks = await Promise.all(names.map((name) => host.mutex(name).lock()));
      const stuckNames = new Set(names.slice(0, stuckCount));
      const others = locks.slice(stuckCount);
      scene.proxy.on(
        { operation: "UpdateItem", where: ({ body }) => stuckNames.has(body.Key?.name?.S ?? "") },
        hang(),
        FOREVER,
      );
      scene.proxy.on("BatchExecuteStatement", unanswered(stuckNames), FOREVER);

      const ends = TTL_MS * 1.5;
      let least = Number.POSITIVE_INFINITY;
      await scene.play(
        time,
        () => {
          least = Math.min(least, ...others.map((lock) => lock.remainingMs));
          return time.elapsed >= ends;
        },
        STEP_MS,
      );
      // Half a lease after the last one: a renewal waits for no other's.
      expect(least).toBeGreaterThanOrEqual(LEASE_MS - TTL_MS / 2 - 4 * STEP_MS);
      expect(others.every((lock) => lock.held)).toBe(true);
      expect(losses.map(({ name }) => name).sort()).toEqual([...stuckNames].sort());
      expect(losses.every(({ reason }) => reason === "expired")).toBe(true);
      // Renewals of many are spread: the first comes early, by half of its time at most.
      const renewed = scene.proxy.select({}).flatMap(({ operation, body }) => {
        return operation === "UpdateItem" ? [body.Key?.name?.S ?? ""] : namesIn(body);
      });
      const renewals = renewed.filter((name) => !stuckNames.has(name)).length;
      expect(renewals / others.length).toBeGreaterThanOrEqual(2);
      expect(renewals / others.length).toBeLessThanOrEqual(4);
    },
  );

  /** As a batch is answered that DynamoDB has no answer to some statements of. */
  function unanswered(names: ReadonlySet<string>): Fault {
    const failed = { Error: { Code: "InternalServerError", Message: "no answer" } };
    return {
      kind: "unanswered",
      apply: async (exchange) => {
        const reply = await exchange.forward();
        const responses = reply.body.Responses as readonly object[];
        const named = namesIn(exchange.request.body);
        const Responses = responses.map((response, index) => (names.has(named[index] ?? "") ? failed : response));
        await exchange.answer(withBody(reply, { ...reply.body, Responses }));
      },
    };
  }

  /** The locks that a batch is about. */
  function namesIn(body: { readonly [part: string]: unknown }): string[] {
    const statements = (body.Statements ?? []) as readonly {
      readonly Parameters: readonly { readonly S?: string }[];
    }[];
    return statements.map(({ Parameters }) => Parameters.find(({ S }) => S?.startsWith("lock-"))?.S ?? "");
  }
});

describe("renewing by hand", () => {
  test("a stamp on the row that its holder never sent is an error, and the lease stays what it was", async () => {
    const { time, lock } = await scene.locked({ autoRenew: false });
    const row = await scene.row();
    await scene.put({ ...row, expires: time.now + 3_600_000 });
    await time.advance(1_000);
    await expect(lock.extend()).rejects.toThrow(/carries a stamp that its holder never sent/);
    expect([lock.held, lock.remainingMs]).toEqual([true, LEASE_MS - 1_000]);
  });

  test("with autoRenew: false extend() adds a lease from now, and nothing else is sent", async () => {
    const { time, lock } = await scene.locked({ autoRenew: false });
    await time.advance(20_000);
    expect(lock.remainingMs).toBe(7_000);
    await lock.extend();
    expect(lock.remainingMs).toBe(LEASE_MS);
    expect(await scene.row()).toMatchObject({ expires: time.now + TTL_MS });
    await time.advance(LEASE_MS - 1);
    expect([lock.held, lock.remainingMs]).toEqual([true, 1]);
    await time.advance(1);
    expect([lock.held, lock.remainingMs]).toEqual([false, 0]);
    expect(lock.signal.reason).toMatchObject({ reason: "expired" });
    await expect(lock.extend()).rejects.toBe(lock.signal.reason);
    expect(scene.proxy.counts()).toEqual({ PutItem: 1, UpdateItem: 1 });
  });
});

describe("maxHoldMs", () => {
  test("ends a lock that renews itself, with the reason max-hold", async () => {
    const losses = hear("dynamutex:lost");
    const { time, lock } = await scene.locked({ maxHoldMs: 40_000 });
    await renewAfter(time, TTL_MS / 2, lock);
    await renewAfter(time, TTL_MS / 2, lock);
    expect(lock.remainingMs).toBe(10_000);
    await time.advance(9_999);
    expect([lock.held, losses.length]).toEqual([true, 0]);
    await time.advance(1);
    expect(losses.map(({ reason }) => reason)).toEqual(["max-hold"]);
    expect(lock.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "max-hold" });
    await time.advance(TTL_MS);
    expect(scene.proxy.count("UpdateItem")).toBe(2);
    expect(await scene.row()).toMatchObject({ uuid: lock.uuid });
    await expect(lock.unlock()).rejects.toBe(lock.signal.reason);
    expect(await scene.row()).toBeUndefined();
  });

  test("ends a lock before its first renewal, at that moment, if it is shorter than a lease", async () => {
    const losses = hear("dynamutex:lost");
    const { time } = await scene.locked({ maxHoldMs: 4_000 });
    await time.advance(3_999);
    expect(losses).toEqual([]);
    await time.advance(1);
    expect(losses.map(({ reason }) => reason)).toEqual(["max-hold"]);
  });
});
