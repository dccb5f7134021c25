import { describe, expect, test } from "@jest/globals";
import { LockConfigError } from "../../../lib/index.js";
import { MemoryTable } from "../../../lib/testing/memory-table.js";
import { ManualTime } from "../../support/manual-time.js";
import { MemoryHost } from "../../support/memory-host.js";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** The last 00:30 UTC that has passed. */
const nightly = (now: Date): Date =>
  new Date(Math.floor((now.getTime() - HOUR_MS / 2) / DAY_MS) * DAY_MS + HOUR_MS / 2);

/** Hosts on one table, whose bounds on its time are off by so much. Their time begins at midnight. */
function hostsWith(
  ...hosts: readonly { readonly aheadMs?: number; readonly maxSkewMs?: number; readonly fair?: boolean }[]
) {
  const time = new ManualTime();
  const table = new MemoryTable();
  const mutexes = hosts.map(({ fair = false, ...clock }, index) =>
    new MemoryHost(time, { ...clock, table, owner: `host-${index}` }).mutex("job", { fair }),
  );
  const runs: number[] = [];
  const ask = (index = 0, options: object = { once: nightly }) => {
    const asking = mutexes[index]?.tryRun(({ tick }) => void runs.push(Number(tick)), options);
    if (asking === undefined) throw new Error("no such host");
    return asking;
  };
  return { time, runs, ask, begin: time.now };
}

const DONE = { ran: false, reason: "done" };

describe("a tick that a function names", () => {
  test("is named on the table's clock: it runs once, and the next one again", async () => {
    const { time, runs, ask, begin } = hostsWith({}, {});
    await time.advance(HOUR_MS);
    expect(await ask(0)).toMatchObject({ ran: true });
    expect(await ask(1)).toMatchObject({ ...DONE, holder: { tick: begin + HOUR_MS / 2 } });
    await time.advance(DAY_MS);
    expect(await ask(1)).toMatchObject({ ran: true });
    expect(runs).toEqual([begin + HOUR_MS / 2, begin + DAY_MS + HOUR_MS / 2]);
  });

  test("is waited for by hosts whose schedules fire early, and runs once although all of them do", async () => {
    const { time, runs, ask, begin } = hostsWith({ maxSkewMs: 300 }, { maxSkewMs: 500 }, { maxSkewMs: 10 });
    await time.advance(HOUR_MS);
    await ask();
    await time.advance(DAY_MS - HOUR_MS / 2 - 4_900);
    const asked = [0, 1, 2].map((index) => ask(index));
    await time.settle(Promise.all(asked));
    expect(runs).toEqual([begin + HOUR_MS / 2, begin + DAY_MS + HOUR_MS / 2]);
    expect(time.now).toBeGreaterThanOrEqual(begin + DAY_MS + HOUR_MS / 2);
  });

  test("of a fair lock is waited for as well: the look at the queue is as late as the claim", async () => {
    const { time, runs, ask, begin } = hostsWith({ maxSkewMs: 300, fair: true }, { fair: true });
    await time.advance(HOUR_MS);
    await ask();
    await time.advance(DAY_MS - HOUR_MS / 2 - 4_900);
    const asked = [ask(0), ask(1)];
    await time.settle(Promise.all(asked));
    expect(runs).toEqual([begin + HOUR_MS / 2, begin + DAY_MS + HOUR_MS / 2]);
  });

  test("is not waited for earlier than earlyMs before it", async () => {
    const { time, ask } = hostsWith({}, {});
    await time.advance(HOUR_MS);
    await ask();
    await time.advance(DAY_MS - HOUR_MS / 2 - 5_001);
    expect(await ask()).toMatchObject(DONE);
    await time.advance(4_000);
    expect(await ask(1, { once: nightly, earlyMs: 1_000 })).toMatchObject(DONE);
    await time.advance(1);
    const early = ask(1, { once: nightly, earlyMs: 1_000 });
    await time.settle(early);
    expect(await early).toMatchObject({ ran: true });
    expect(time.sleeps).toEqual([1_000]);
  });

  test("of a clock that is too uncertain is the one that has certainly begun", async () => {
    const { time, runs, ask, begin } = hostsWith({ maxSkewMs: 60_000 });
    await time.advance(HOUR_MS / 2);
    await ask();
    expect(runs).toEqual([begin - DAY_MS + HOUR_MS / 2]);
    expect(time.sleeps).toEqual([]);
  });

  test("of a schedule that fires more often than the clock can tell is the one that has certainly begun", async () => {
    const { time, runs, ask, begin } = hostsWith({ maxSkewMs: 1_000 });
    const once = (now: Date): number => Math.floor(now.getTime() / 3_000) * 3_000;
    await time.advance(7_500);
    await ask(0, { once });
    expect(runs).toEqual([begin + 6_000]);
    expect(time.sleeps).toEqual([]);
  });

  test("may be a number in a unit of the caller's, and is 0 rather than -0", async () => {
    const { time, runs, ask } = hostsWith({});
    await ask(0, { once: () => -0 });
    await time.advance(HOUR_MS);
    await ask(0, { once: (now: Date) => now.getUTCFullYear() });
    expect(runs.map((tick) => Object.is(tick, -0))).toEqual([false, false]);
    expect(runs).toEqual([0, 2030]);
  });

  test("gets a date of its own at each call, which it may change", async () => {
    const { time, runs, ask, begin } = hostsWith({});
    await time.advance(HOUR_MS);
    await ask(0, { once: (now: Date) => now.setUTCHours(0, 0, 0, 0) });
    expect(runs).toEqual([begin]);
  });

  test("of a try with untilSuccess is run again by the same function", async () => {
    const { time, ask } = hostsWith({});
    await time.advance(HOUR_MS);
    const options = { once: nightly, untilSuccess: { maxAttempts: 2 } };
    expect(await ask(0, options)).toMatchObject({ ran: true });
    expect(await ask(0, options)).toMatchObject(DONE);
  });
});

describe("a function that names no tick that has begun", () => {
  const failure = new Error("no such zone");
  const never = new Date(Number.NaN);
  const rejected: readonly [string, (now: Date) => unknown, unknown, RegExp][] = [
    [
      "throws",
      () => {
        throw failure;
      },
      failure,
      /has thrown.*no such zone/,
    ],
    ["returns an invalid Date", () => never, never, /got Invalid Date/],
    ["returns nothing, as where nothing was before", () => undefined, undefined, /must return a valid Date/],
    ["returns a string", () => "2030-01-01", "2030-01-01", /must return a valid Date/],
    ["returns a fraction", () => 1.5, 1.5, /must return a valid Date/],
    ["names the next fire", (now) => new Date(nightly(now).getTime() + DAY_MS), expect.any(Date), /the previous fire/],
    ["names a tick of 2099", () => Date.UTC(2099, 0, 1), Date.UTC(2099, 0, 1), /the previous fire/],
    ["names the moment that it is given", (now) => now, expect.any(Number), /each call would run/],
    ["names the time right after", (now) => now.getTime() + 1, expect.any(Number), /the previous fire/],
  ];

  test.each(rejected)("rejects the call if it %s, and writes nothing", async (_, once, cause, message) => {
    const { time, runs, ask } = hostsWith({});
    await time.advance(HOUR_MS);
    const error = await ask(0, { once }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LockConfigError);
    expect(error).toMatchObject({ option: "once", cause, message: expect.stringMatching(message) });
    expect(runs).toEqual([]);
    // The next call finds its tick free.
    expect(await ask()).toMatchObject({ ran: true });
  });

  test("rejects the call if it is asynchronous, and its rejection is handled", async () => {
    const { ask } = hostsWith({});
    const once = async (): Promise<Date> => {
      throw failure;
    };
    await expect(ask(0, { once })).rejects.toThrow(/must return a valid Date/);
  });

  test("rejects the call if it goes back as time advances, as the time on a wall may", async () => {
    const { time, ask } = hostsWith({});
    await time.advance(HOUR_MS - 1_000);
    const from = time.now;
    const once = (now: Date): number => (now.getTime() > from ? 100 : 200);
    await expect(ask(0, { once })).rejects.toThrow(/must not go back/);
  });
});

test.each([
  ["earlyMs without a tick", { earlyMs: 1_000 }, /earlyMs: needs a tick by the table's clock/],
  [
    "earlyMs with a tick that was named before",
    { once: 7, earlyMs: 1_000 },
    /earlyMs: needs a tick by the table's clock/,
  ],
  ["earlyMs of more than half a period", { everyMs: 2_000, earlyMs: 1_001 }, /earlyMs: must be at most 1000/],
  ["a function together with everyMs", { everyMs: 2_000, once: nightly }, /everyMs: must not be given together/],
])("%s is a LockConfigError", async (_, options, message) => {
  await expect(hostsWith({}).ask(0, options)).rejects.toThrow(message);
});

test("a period that was asked for early is the next one, for half of everyMs at most", async () => {
  const { time, runs, ask, begin } = hostsWith({});
  await time.advance(HOUR_MS - 5_000);
  const options = { everyMs: HOUR_MS };
  await time.settle(ask(0, options));
  await time.settle(ask(0, { everyMs: HOUR_MS, earlyMs: HOUR_MS / 100 }));
  expect(runs).toEqual([begin + HOUR_MS]);
});
