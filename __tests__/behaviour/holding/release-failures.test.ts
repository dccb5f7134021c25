import { describe, expect, test } from "@jest/globals";
import { hear } from "../../support/diagnostics.js";
import { eventually } from "../../support/eventually.js";
import { error, type Fault, hangAfter, resetBefore, status500 } from "../../support/fault-proxy.js";
import { ManualTime } from "../../support/manual-time.js";
import { QueueRows, untilStanding } from "../../support/queue.js";
import { rowOf, useScene } from "../../support/scene.js";
import { afterSleeps } from "../../support/settled.js";

// One failure of a release costs the next host a whole lease, unless it is tried again.
const scene = useScene();
const queue = new QueueRows(scene);

const TIMES = 3;

const FAILURES: readonly [string, () => Fault][] = [
  ["credentials that have expired", () => error("ExpiredTokenException", "The security token has expired")],
  ["credentials that are not known yet", () => error("UnrecognizedClientException", "The security token is invalid")],
  ["a permission that is missing for a moment", () => error("AccessDeniedException", "User is not authorized")],
  ["a 500", status500],
  ["a connection that breaks", resetBefore],
  ["an error that nobody has heard of", () => error("TableOnHolidayException", "Come back later")],
];

describe.each(FAILURES)("trap 33: %s", (_, failure) => {
  test("does not keep a lock from being released", async () => {
    const { time, locks, failures } = host();
    const lock = await locks.mutex(scene.name).lock();
    scene.proxy.on("DeleteItem", failure(), { times: TIMES });
    await afterSleeps(time, lock.unlock());
    expect([await scene.row(), failures]).toEqual([undefined, []]);
    expect(scene.proxy.count("DeleteItem")).toBe(TIMES + 1);
  });

  test("does not keep a lock with a token from being released, whose row stays", async () => {
    const { time, locks, failures } = host();
    const lock = await locks.mutex(scene.name, { fencing: true }).lock();
    scene.proxy.on("UpdateItem", failure(), { times: TIMES });
    await afterSleeps(time, lock.unlock());
    const row = await scene.row();
    expect([row?.expires, row?.uuid, failures]).toEqual([0, undefined, []]);
  });

  test("does not keep the locks of a set from being released", async () => {
    const { time, locks, failures } = host();
    const names = [`${scene.name}-a`, `${scene.name}-b`];
    const set = await locks.lockAll(names);
    scene.proxy.on("DeleteItem", failure(), { times: TIMES });
    await afterSleeps(time, set.unlock());
    expect(await Promise.all(names.map((name) => scene.row(name)))).toEqual([undefined, undefined]);
    expect(failures).toEqual([]);
  });

  test("does not keep the place of a waiter that has gone", async () => {
    const { time, locks, failures, giveUp } = host();
    await scene.put(rowOf({ expires: time.now + 60_000 }));
    const waiting = locks.mutex(scene.name, { fair: true }).lock({ signal: giveUp.signal });
    waiting.catch(() => undefined);
    await untilStanding(scene, "", time);
    expect(await queue.waiters()).toHaveLength(1);
    scene.proxy.on("DeleteItem", failure(), { times: TIMES });
    giveUp.abort();
    await time.sleepUntil(() => answered("DeleteItem") === TIMES + 1);
    expect([await queue.waiters(), failures]).toEqual([[], []]);
  });

  test("does not keep a claim whose caller has gone: neither the look for it nor its release", async () => {
    const { time, locks, failures, giveUp } = host();
    const applied = scene.proxy.on("PutItem", hangAfter());
    const waiting = locks.mutex(scene.name).lock({ signal: giveUp.signal });
    waiting.catch(() => undefined);
    await applied.done;
    giveUp.abort();
    scene.proxy.on("GetItem", failure(), { times: TIMES });
    scene.proxy.on("DeleteItem", failure(), { times: TIMES });
    await time.advance(3_000);
    await time.sleepUntil(() => answered("DeleteItem") === TIMES + 1);
    expect([await scene.row(), failures]).toEqual([undefined, []]);
    expect(scene.proxy.count("GetItem")).toBe(TIMES + 1);
    await eventually(() => time.timers === 0);
  });

  test("does not keep a lock that came when its caller had gone", async () => {
    const { time, locks, failures, giveUp } = host();
    const hold = scene.proxy.hold("PutItem");
    const waiting = locks.mutex(scene.name).lock({ signal: giveUp.signal });
    waiting.catch(() => undefined);
    await hold.arrived;
    giveUp.abort();
    scene.proxy.on("DeleteItem", failure(), { times: TIMES });
    hold.release();
    await time.sleepUntil(() => answered("DeleteItem") === TIMES + 1);
    expect([await scene.row(), failures]).toEqual([undefined, []]);
  });
});

test("trap 33: a claim that the client sent twice by itself, the second time with credentials that had expired, is removed", async () => {
  const { time, locks } = host({ maxAttempts: 3 });
  scene.proxy.on("PutItem", status500({ applied: true }));
  scene.proxy.on("PutItem", error("ExpiredTokenException", "The security token has expired"));
  const trying = locks.mutex(scene.name).tryLock();
  await expect(afterSleeps(time, trying)).rejects.toMatchObject({ transient: false, retried: true });
  await time.sleepUntil(() => answered("DeleteItem") === 1);
  expect(await scene.row()).toBeUndefined();
});

test("the locks of a set that came when its caller had gone are released, though the table fails for long before that", async () => {
  const { time, locks, failures, giveUp } = host();
  const names = [`${scene.name}-a`, `${scene.name}-b`];
  const hold = scene.proxy.hold("TransactWriteItems");
  const waiting = locks.lockAll(names, { signal: giveUp.signal, releaseWithinMs: 1_000 });
  waiting.catch(() => undefined);
  await hold.arrived;
  giveUp.abort();
  await expect(waiting).rejects.toBe(giveUp.signal.reason);
  const outage = scene.proxy.on("DeleteItem", resetBefore(), { times: Number.POSITIVE_INFINITY });
  hold.release();
  // Nobody waits for it, so there is no reason to end with the time that an unlock() has.
  await time.sleepUntil(() => time.elapsed > 3_000 || failures.length > 0);
  outage.remove();
  const isOver = (): boolean => answered("DeleteItem") >= names.length && time.timers === 0;
  await time.sleepUntil(() => isOver() || failures.length > 0);
  expect(failures).toEqual([]);
  expect(await Promise.all(names.map((name) => scene.row(name)))).toEqual([undefined, undefined]);
});

function host(sdk: { readonly maxAttempts?: number } = {}) {
  const time = new ManualTime();
  const failures = hear("dynamutex:release-failed");
  return { time, locks: scene.host({ clock: time.clock(), sdk }), failures, giveUp: new AbortController() };
}

function answered(operation: string): number {
  return scene.proxy.requests.filter((it) => it.operation === operation && it.ending !== undefined).length;
}
