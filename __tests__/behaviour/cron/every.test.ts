import { describe, expect, test } from "@jest/globals";
import { ManualTime } from "../../support/manual-time.js";
import { useScene } from "../../support/scene.js";
import { afterSleeps } from "../../support/settled.js";

const scene = useScene();

const MINUTE = 60_000;
const HOUR = 3_600_000;

/** A host whose clock may be off by so much, in a time that begins with a period. */
function oneHost({ maxSkewMs = 0, aheadMs = 0 } = {}) {
  const time = new ManualTime();
  const mutex = scene.host({ clock: time.clock({ maxSkewMs, aheadMs }) }).mutex(scene.name);
  const ask = (everyMs = MINUTE) => mutex.tryRun(({ tick }) => tick, { everyMs });
  return { time, ask, begin: time.now };
}

const DONE = { ran: false, reason: "done" };

test("a job runs once in each period of the table's clock: at the first asking, and again in the next period", async () => {
  const { time, ask, begin } = oneHost();
  await time.advance(20_000);
  expect(await ask()).toEqual({ ran: true, value: begin });
  expect(await ask()).toMatchObject({ ...DONE, holder: { tick: begin } });
  await time.advance(34_999);
  expect(await ask()).toMatchObject(DONE);
  expect(time.sleeps).toEqual([]);
  await time.advance(5_001);
  expect(await ask()).toEqual({ ran: true, value: begin + MINUTE });
  await time.advance(10 * MINUTE + 1);
  expect(await ask()).toEqual({ ran: true, value: begin + 11 * MINUTE });
  expect(time.sleeps).toEqual([]);
});

describe("a clock that is not certain", () => {
  test.each([
    ["just after the beginning of a period", MINUTE + 100, 200],
    ["just before it", MINUTE - 100, 400],
    ["at it", MINUTE, 300],
  ])("asked %s, waits until the period has certainly begun, and asks for that one", async (_when, at, waitedMs) => {
    const { time, ask, begin } = oneHost({ maxSkewMs: 300 });
    await time.advance(at);
    expect(await afterSleeps(time, ask())).toEqual({ ran: true, value: begin + MINUTE });
    expect(time.sleeps).toEqual([waitedMs]);
    expect(time.now).toBe(begin + MINUTE + 300);
  });

  test("two hosts that doubt on either side of a beginning run the new period once, and the old one not at all", async () => {
    const early = oneHost({ maxSkewMs: 300, aheadMs: 290 });
    const late = oneHost({ maxSkewMs: 300, aheadMs: -290 });
    const turns: unknown[] = [];
    for (const { time, ask } of [early, late]) {
      await time.advance(MINUTE + 5);
      turns.push(await afterSleeps(time, ask()));
    }
    expect(turns).toMatchObject([{ ran: true, value: early.begin + MINUTE }, DONE]);
  });

  test("a clock whose doubt is as long as the period asks for the one that has certainly begun", async () => {
    const { time, ask, begin } = oneHost({ maxSkewMs: 600 });
    await time.advance(10_700);
    expect(await ask(1_000)).toEqual({ ran: true, value: begin + 10_000 });
    expect(time.sleeps).toEqual([]);
  });

  test("nobody waits for longer than 5 s beyond earlyMs", async () => {
    const { time, ask, begin } = oneHost({ maxSkewMs: MINUTE });
    await time.advance(HOUR);
    expect(await ask(HOUR)).toEqual({ ran: true, value: begin });
    await time.advance(MINUTE - 10_000);
    expect(await afterSleeps(time, ask(HOUR))).toEqual({ ran: true, value: begin + HOUR });
    expect(time.sleeps).toEqual([10_000]);
  });

  test("a clock that still knows nothing once the table has answered is an error, and nothing is written", async () => {
    const time = new ManualTime();
    const locks = scene.host({ clock: { ...time.clock(), wall: () => undefined } });
    const asking = locks.mutex(scene.name).tryRun(() => 1, { everyMs: MINUTE });
    await expect(asking).rejects.toMatchObject({ code: "LOCK_STORE", message: expect.stringContaining("time") });
    expect(scene.proxy.counts()).toEqual({ GetItem: 1 });
  });
});
