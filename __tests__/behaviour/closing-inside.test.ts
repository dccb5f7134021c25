import { describe, expect, test } from "@jest/globals";
import { TestTable } from "../../lib/testing/index.js";
import { useWarnings } from "../support/diagnostics.js";
import { turn } from "../support/eventually.js";
import { createGate } from "../support/fault-proxy/gate.js";
import { ManualTime } from "../support/manual-time.js";
import { MemoryHost } from "../support/memory-host.js";

const warnings = useWarnings();

const INSIDE =
  'close() was called inside of a section, and waits for lock "a" to be unlocked. If the section awaits close(), each waits for ' +
  "the other until the lock is revoked and close() gives up. Call close() after the section has ended, or do not await it there";

const REVOKED_INSIDE =
  'Lock "a" was revoked: the section had not ended when the drain was over, and close() was called inside of a section. ' +
  "Call close() after the section has ended, or do not await it there";

/** What a promise was rejected with. */
const caught = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error) => error,
  );

function setUp() {
  const time = new ManualTime();
  const host = new MemoryHost(time, { runsByItself: true });
  return { time, host };
}

describe("a close() that is awaited inside of a section which it waits for", () => {
  test.each([
    ["before anything else", async () => undefined],
    ["after a pause", turn],
    ["after others", () => Promise.all([turn(), turn()])],
  ])("is told at once, %s, with the lock, the cause and what to do", async (_when, before) => {
    const { time, host } = setUp();
    const shutDown = async (): Promise<void> => {
      await before();
      await host.session.close();
    };
    const running = caught(host.mutex("a").run(shutDown));
    for (let count = 0; count < 3; count += 1) await turn();
    await time.advance(200);
    expect(warnings).toEqual([INSIDE]);
    await time.advance(60_000);
    expect(warnings).toEqual([INSIDE]);
    await expect(running).resolves.toMatchObject({ message: REVOKED_INSIDE });
  });

  test.each([
    ["a drain of its own", 60_000],
    ["no drain", 0],
  ])("is told with %s", async (_which, drainMs) => {
    const { time, host } = setUp();
    const running = caught(host.mutex("a").run(() => host.session.close(drainMs)));
    await time.advance(200);
    expect(warnings).toEqual([INSIDE]);
    await time.advance(70_000);
    await expect(running).resolves.toMatchObject({ message: REVOKED_INSIDE });
    expect(time.timers).toBe(0);
  });

  test("is told where it joins a close that another caller has begun", async () => {
    const { time, host } = setUp();
    const end = createGate();
    const running = caught(
      host.mutex("a").run(async () => {
        await end.released;
        await host.session.close();
      }),
    );
    await turn();
    const closed = caught(host.session.close(20_000));
    await time.advance(1_000);
    expect(warnings).toEqual([]);
    end.release();
    await time.advance(200);
    expect(warnings).toEqual([INSIDE]);
    await time.advance(60_000);
    await expect(running).resolves.toMatchObject({ message: REVOKED_INSIDE });
    await expect(closed).resolves.toMatchObject({ message: REVOKED_INSIDE });
  });

  test("is told by its error at the end of `await using`, on a table in memory whose time stands still", async () => {
    const table = new TestTable({ time: "manual" });
    const shutDown = async (): Promise<void> => {
      await using locks = table.host();
      await locks.mutex("a").run(async () => {
        await using _sameTable = locks;
      });
    };
    const closed = caught(shutDown());
    await turn();
    await table.clock.advance(60_000);
    expect(messagesOf(await closed)).toContain(REVOKED_INSIDE);
  });
});

describe("a close() of which nothing is told", () => {
  test("is one that its section does not await", async () => {
    const { time, host } = setUp();
    let closing: Promise<void> | undefined;
    await host.mutex("a").run(() => {
      closing = host.session.close();
    });
    await closing;
    await time.advance(60_000);
    expect([warnings, time.timers]).toEqual([[], 0]);
  });

  test("is one of another table", async () => {
    const { time, host } = setUp();
    const other = new MemoryHost(time, { owner: "other", runsByItself: true });
    const lock = await other.mutex("b").lock();
    const running = host.mutex("a").run(() => other.session.close(20_000));
    await time.advance(1_000);
    await lock.unlock();
    await running;
    expect(warnings).toEqual([]);
  });

  test("is one in a handler of a signal or a timer, while a section runs", async () => {
    const { time, host } = setUp();
    const end = createGate();
    const running = host.mutex("a").run(async () => {
      time.clock().alarm(500, () => void turn().then(() => host.session.close(20_000)));
      await end.released;
    });
    await time.advance(1_000);
    await turn();
    end.release();
    await running;
    await time.advance(60_000);
    expect([warnings, host.closed]).toEqual([[], 1]);
  });
});

/** The messages of an error, and of those inside of it. */
function messagesOf(error: unknown): readonly string[] {
  const {
    message,
    cause,
    error: of,
    suppressed,
    errors = [],
  } = error as Record<string, unknown> & { errors?: unknown[] };
  return [`${message}`, ...[cause, of, suppressed, ...errors].flatMap((one) => (one ? messagesOf(one) : []))];
}
