import { describe, expect, test } from "@jest/globals";
import { LockStoreError } from "../../lib/errors.js";
import { NotSent, type ScheduledRequest, TooLate } from "../../lib/session/backlog.js";
import { persist, type Requests, Scheduler, sendOnce } from "../../lib/session/requests.js";
import { turn } from "../support/eventually.js";
import { ManualTime } from "../support/manual-time.js";
import { seededRandom } from "../support/seeded-random.js";

const WIDTH = 48;
const NEVER_ENDS = { kind: "take", until: () => Number.POSITIVE_INFINITY } as const;
const THROTTLED = new LockStoreError("too many", { transient: true, throttled: true });

/** A scheduler, with a table that answers when the test says so. */
function scene() {
  const time = new ManualTime();
  const clock = time.clock();
  const scheduler = new Scheduler(clock);
  const session: Requests = { clock, scheduler, random: () => 0.5 };
  /** Who has left, in order. */
  const left: string[] = [];
  const answers = new Map<
    string,
    { readonly resolve: (value: string) => void; readonly reject: (error: unknown) => void }
  >();

  function ask(name: string, request: Partial<ScheduledRequest> = {}): Promise<string> {
    const send = (): Promise<string> => {
      left.push(name);
      return new Promise((resolve, reject) => answers.set(name, { resolve, reject }));
    };
    return scheduler.run({ ...NEVER_ENDS, deadline: 1_000_000, ...request }, () => scheduler.heard(send));
  }

  function underWay(name: string) {
    const answer = answers.get(name);
    if (answer === undefined) throw new Error(`${name} is not under way`);
    answers.delete(name);
    return answer;
  }

  async function succeed(...names: readonly string[]): Promise<void> {
    for (const name of names) underWay(name).resolve(name);
    await turn();
  }

  /** The caller of `ask` handles the rejection. */
  async function fail(error: unknown, ...names: readonly string[]): Promise<void> {
    for (const name of names) underWay(name).reject(error);
    await turn();
  }

  /** Asks so many times; answers to none of them are awaited. */
  function askMany(prefix: string, count: number, request: Partial<ScheduledRequest> = {}): string[] {
    const names = Array.from({ length: count }, (_, index) => `${prefix}${index}`);
    for (const name of names) ask(name, request).catch(() => undefined);
    return names;
  }

  /** Takes so many slots, and those of so many releases in addition: as the first is answered, one other leaves. */
  function fill(count = WIDTH, releases = 0): readonly string[] {
    const before = left.length;
    askMany("first", count);
    const released = askMany("released", releases, { kind: "release" });
    expect(left).toHaveLength(before + count + releases);
    left.length = 0;
    return released;
  }

  let answered = 0;
  /** Frees so many slots, one after another. @returns who left instead. */
  async function free(count: number): Promise<string[]> {
    const before = left.length;
    for (let index = 0; index < count; index += 1) await succeed(`first${answered++}`);
    return left.slice(before);
  }

  /** Makes answers take so long at present. */
  async function answersTake(ms: number, count = 64): Promise<void> {
    for (let index = 0; index < count; index += 1) {
      ask("measured").catch(() => undefined);
      await time.advance(ms);
      await succeed("measured");
    }
    left.length = 0;
  }

  return { time, scheduler, session, left, ask, askMany, succeed, fail, fill, free, answersTake };
}

describe("where a slot is free", () => {
  test("a request leaves synchronously, and sets no timer", async () => {
    const { time, left, ask, succeed } = scene();
    const answer = ask("one");
    expect(left).toEqual(["one"]);
    expect(time.timers).toBe(0);
    await succeed("one");
    expect(await answer).toBe("one");
  });

  test("48 are under way at once, and each answer lets another leave", async () => {
    const { left, askMany, fill, free } = scene();
    fill();
    askMany("more", 3);
    expect(left).toEqual([]);
    expect(await free(2)).toEqual(["more0", "more1"]);
  });

  test("a request that fails gives its slot back, also one that fails before it has left", async () => {
    const { scheduler, left, ask, fail, fill } = scene();
    fill(WIDTH - 1);
    const broken = (): never => {
      throw new TypeError("broken");
    };
    await expect(scheduler.run(NEVER_ENDS, broken)).rejects.toThrow("broken");
    const refused = expect(ask("refused")).rejects.toThrow("no");
    const next = ask("next");
    expect(left).toEqual(["refused"]);
    await fail(new Error("no"), "refused");
    await refused;
    expect(left).toEqual(["refused", "next"]);
    next.catch(() => undefined);
  });
});

describe("the order in which requests leave", () => {
  test("is releases first, and that of their deadlines; of equal ones, that of their arrival", async () => {
    const { left, askMany, fill, free, succeed } = scene();
    const released = fill(WIDTH, WIDTH);
    askMany("read", 1, { kind: "read", deadline: 300 });
    askMany("never", 1, { kind: "read", deadline: Number.POSITIVE_INFINITY });
    askMany("take", 2, { kind: "take", deadline: 200 });
    askMany("later", 1, { kind: "release", deadline: 500 });
    askMany("release", 1, { kind: "release", deadline: 400 });
    await free(2);
    await succeed(...released, "release0", "later0");
    await free(2);
    expect(left).toEqual(["release0", "later0", "take0", "take1", "read0", "never0"]);
  });

  test("releases do not wait behind a burst of takes, whosever deadline is earlier", async () => {
    const { left, askMany, fill, free } = scene();
    fill();
    askMany("take", 3_000, { kind: "take", deadline: 1 });
    const atOnce = askMany("release", WIDTH, { kind: "release", deadline: 10_000 });
    expect(left).toEqual(atOnce);
    askMany("later", 2, { kind: "release", deadline: 10_000 });
    expect(await free(3)).toEqual(["later0", "later1"]);
  });

  test("stays that of the deadlines among thousands, of which many leave the queue unsent", async () => {
    const { left, ask, fill, succeed } = scene();
    const random = seededRandom(1);
    fill();
    const enough = new AbortController();
    const kept: { readonly name: string; readonly deadline: number }[] = [];
    for (let index = 0; index < 3_000; index += 1) {
      const [name, deadline, isKept] = [`${index}`, Math.floor(random() * 500), random() < 0.3];
      if (isKept) kept.push({ name, deadline });
      ask(name, { deadline, endSignal: isKept ? undefined : enough.signal }).catch(() => undefined);
    }
    enough.abort();
    await turn();
    const expected = kept.toSorted((one, other) => one.deadline - other.deadline).map(({ name }) => name);
    await succeed("first0");
    for (let index = 0; index < expected.length - 1; index += 1) await succeed(expected[index] as string);
    expect(left).toEqual(expected);
  });

  test("trap 28: a burst of takes does not hold up renewals: they leave at once", async () => {
    const { left, askMany, fill } = scene();
    fill();
    askMany("take", 2_000, { kind: "take", deadline: 500 });
    askMany("renewal", 400, { kind: "renewal", deadline: 501 });
    expect(left).toHaveLength(400);
  });
});

describe("how many are under way", () => {
  test("is less by the renewals under way", async () => {
    const { left, askMany, succeed } = scene();
    askMany("renewal", 8, { kind: "renewal" });
    askMany("take", 100);
    expect(left).toHaveLength(WIDTH);
    await succeed("renewal0");
    expect(left.slice(WIDTH)).toEqual(["take40"]);
  });

  test("trap 28: renewals leave at once where other requests hang and throttling has narrowed the width", async () => {
    const { scheduler, time, left, askMany, fail } = scene();
    askMany("release", WIDTH, { kind: "release" });
    askMany("take", WIDTH);
    for (let count = 0; count < 6; count += 1) {
      await time.advance(10);
      await fail(THROTTLED, ...askMany("throttled", 1, { kind: "renewal" }));
    }
    expect(scheduler.width).toBe(4);
    const before = left.length;
    askMany("renewal", 40, { kind: "renewal" });
    expect(left).toHaveLength(before + 40);
  });

  test("is ten times the width of renewals and twice the width of releases, whatever else is under way", async () => {
    const { left, askMany, succeed } = scene();
    askMany("take", WIDTH + 1);
    const releases = askMany("release", WIDTH + 1, { kind: "release" });
    expect(left).toHaveLength(2 * WIDTH);
    const renewals = askMany("renewal", 10 * WIDTH + 1, { kind: "renewal" });
    expect(left).toHaveLength(12 * WIDTH);
    // Nothing new leaves before all but the width of it is answered.
    await succeed(renewals[0] as string);
    expect(left.slice(12 * WIDTH)).toEqual([renewals.at(-1)]);
    await succeed(...renewals.slice(1));
    expect(left.at(-1)).toBe(renewals.at(-1));
    await succeed("take0");
    expect(left.at(-1)).toBe(releases.at(-1));
    await succeed(...releases);
    expect(left.at(-1)).toBe(`take${WIDTH}`);
  });

  test("shrinks on throttling, and on nothing else", async () => {
    const { time, scheduler, askMany, fail } = scene();
    const failures = [
      new LockStoreError("no answer", { transient: true, answered: false }),
      new LockStoreError("refused", { transient: true }),
      new Error("ECONNREFUSED"),
    ];
    for (const failure of failures) {
      await fail(failure, ...askMany("failing", 40));
      await time.advance(1_000);
    }
    expect(scheduler.width).toBe(WIDTH);
    await fail(THROTTLED, ...askMany("throttled", 1));
    expect(scheduler.width).toBe(WIDTH / 2);
  });

  test("shrinks once for all that left before it shrank", async () => {
    const { time, scheduler, askMany, fail } = scene();
    const [first, ...others] = askMany("throttled", 40);
    await time.advance(10);
    await fail(THROTTLED, first as string);
    await time.advance(10);
    await fail(THROTTLED, ...others);
    expect(scheduler.width).toBe(WIDTH / 2);
    const later = askMany("throttled", 1);
    await time.advance(10);
    await fail(THROTTLED, ...later);
    expect(scheduler.width).toBe(WIDTH / 4);
  });

  test("does not shrink below 4", async () => {
    const { time, scheduler, askMany, fail } = scene();
    for (let count = 0; count < 10; count += 1) {
      await time.advance(10);
      await fail(THROTTLED, ...askMany("throttled", 1));
    }
    expect(scheduler.width).toBe(4);
  });

  test("recovers with successes, by one for each round of them, up to 48", async () => {
    const { scheduler, askMany, fail, succeed } = scene();
    await fail(THROTTLED, ...askMany("throttled", 1));
    const widths: number[] = [];
    for (let round = 0; round < 40; round += 1) {
      await succeed(...askMany("fine", scheduler.width));
      widths.push(scheduler.width);
    }
    expect(widths.slice(0, 3)).toEqual([24, 25, 26]);
    expect(widths.at(-1)).toBe(WIDTH);
  });

  test("lets nobody leave in place of those that are answered while there are too many", async () => {
    const { left, askMany, fail, fill, free } = scene();
    askMany("throttled", 1);
    fill(WIDTH - 1);
    askMany("next", 5);
    await fail(THROTTLED, "throttled0");
    await free(23);
    expect(left).toEqual([]);
    await free(2);
    expect(left.length).toBeGreaterThan(0);
  });
});

describe("where ten times the width of renewals are under way", () => {
  /** So many of them, and none of anything else. */
  function fullScene() {
    const { left, askMany, ...rest } = scene();
    const renewals = askMany("renewal", 10 * WIDTH, { kind: "renewal", deadline: 1_000 });
    expect(left).toHaveLength(10 * WIDTH);
    left.length = 0;
    return { left, askMany, renewals, ...rest };
  }

  test("the others wait, that of the lease first which ends first", async () => {
    const { left, ask, succeed } = fullScene();
    ask("second", { kind: "renewal", deadline: 5_000 }).catch(() => undefined);
    ask("first", { kind: "renewal", deadline: 4_000 }).catch(() => undefined);
    expect(left).toEqual([]);
    await succeed("renewal1");
    expect(left).toEqual(["first"]);
    await succeed("renewal2");
    expect(left).toEqual(["first", "second"]);
  });

  test("nothing else that waits leaves before a renewal that waits, and releases before the rest", async () => {
    const { left, ask, askMany, renewals, succeed } = fullScene();
    ask("read", { kind: "read", deadline: 1 }).catch(() => undefined);
    askMany("release", 1, { kind: "release" });
    ask("waiting", { kind: "renewal", deadline: 5_000 }).catch(() => undefined);
    expect(left).toEqual([]);
    await succeed("renewal0");
    expect(left).toEqual(["waiting"]);
    await succeed(...renewals.slice(1, -2 * WIDTH + 2));
    expect(left).toEqual(["waiting", "release0"]);
    await succeed(...renewals.slice(-2 * WIDTH + 2));
    expect(left).toEqual(["waiting", "release0", "read"]);
  });
});

describe("the end of the wait for a slot", () => {
  test("comes when its signal aborts: the request is not sent, and the others keep their order", async () => {
    const { left, ask, askMany, fill, free } = scene();
    const enough = new AbortController();
    fill();
    const reason = new Error("nobody wants it any more");
    const rejected = expect(ask("leaving", { deadline: 1, endSignal: enough.signal })).rejects.toBe(reason);
    askMany("next", 1, { deadline: 2 });
    enough.abort(reason);
    await rejected;
    expect(await free(2)).toEqual(["next0"]);
    expect(left).not.toContain("leaving");
  });

  test("has come before the wait where the signal has aborted already, also where a slot is free", async () => {
    const { left, ask } = scene();
    await expect(ask("late", { endSignal: AbortSignal.abort("over") })).rejects.toBe("over");
    expect(left).toEqual([]);
  });

  test("does not concern a request that has left", async () => {
    const { ask, fill, free, succeed } = scene();
    const enough = new AbortController();
    fill();
    const sent = ask("sent", { endSignal: enough.signal });
    await free(1);
    enough.abort();
    await succeed("sent");
    expect(await sent).toBe("sent");
  });

  test("comes for thousands at once where no attempt of theirs could be answered in time any more", async () => {
    const { time, session, fill, succeed } = scene();
    fill(WIDTH, WIDTH);
    const asked = { kind: "release", firstTimeoutMs: 100, until: () => 1_000 } as const;
    const unsent = Array.from({ length: 5_000 }, () => persist(session, asked, () => Promise.resolve("sent")));
    const errors = Promise.all(unsent.map((answer) => answer.catch((error: unknown) => error)));
    await time.advance(980);
    await succeed("first0");
    await time.advance(20);
    expect(new Set((await errors).map((error) => (error as Error).constructor))).toEqual(new Set([NotSent]));
  });

  test("comes at `until`, also where that is moved meanwhile", async () => {
    const { time, left, ask, fill, answersTake } = scene();
    await answersTake(10_000);
    fill();
    let end = time.elapsed + 100;
    const settled: string[] = [];
    const first = ask("first", { until: () => end }).catch((error) => settled.push(error.message));
    const second = ask("second", { until: () => time.elapsed }).catch((error) => settled.push(error.message));
    await second;
    end += 50;
    await time.advance(149);
    expect(settled).toEqual([expect.stringContaining("Not sent within 0 ms")]);
    await time.advance(1);
    await first;
    expect(settled[1]).toContain("Not sent within 150 ms: 48 requests of this process were under way");
    expect(left).toEqual([]);
    expect(time.timers).toBe(0);
  });

  test("comes before a slot that becomes free too late, in a process that stood still meanwhile", async () => {
    const { time, left, ask, fill, free } = scene();
    fill();
    const errors = Promise.all([
      ask("first", { slotUntil: () => 3_000 }).catch((error) => error),
      ask("second", { until: () => 4_000 }).catch((error) => error),
    ]);
    void ask("third", { slotUntil: () => 9_000 });
    time.skip(5_000);
    expect(await free(1)).toEqual(["third"]);
    expect(await errors).toEqual([expect.any(NotSent), expect.any(NotSent)]);
    expect(left).toEqual(["third"]);
  });

  test("comes at once for a request that is sure to get its slot too late, and not for one that may still get it", async () => {
    const { time, ask, askMany, fill, answersTake } = scene();
    await answersTake(800);
    fill();
    askMany("next", 2 * WIDTH);
    const failed: unknown[] = [];
    // Each slot serves one request in 800 ms at the best, so two rounds leave before it.
    const asked = (ms: number) =>
      ask("last", { slotUntil: () => time.elapsed + ms, deadline: 2_000_000 }).catch((error) => failed.push(error));
    void asked(1_600);
    void asked(1_599);
    await turn();
    expect(failed).toEqual([expect.any(TooLate)]);
    expect(String(failed[0])).toContain("Not sent: 97 requests of this process wait to be sent first");
  });

  test("does not come at once for a request behind releases, which leave twice as many at a time", async () => {
    const { time, ask, askMany, fill, answersTake } = scene();
    await answersTake(800);
    fill(WIDTH, WIDTH);
    askMany("next", 2 * WIDTH, { kind: "release" });
    const failed: unknown[] = [];
    const asked = (ms: number) =>
      ask("last", { slotUntil: () => time.elapsed + ms }).catch((error) => failed.push(error));
    void asked(800);
    await turn();
    expect(failed).toEqual([]);
    void asked(799);
    await turn();
    expect(failed).toEqual([expect.any(TooLate)]);
  });

  test("leaves no timer behind where the request leaves in time", async () => {
    const { time, left, askMany, fill, free } = scene();
    fill();
    askMany("next", 20, { until: () => 10_000 });
    expect(time.timers).toBe(20);
    await free(20);
    expect(left).toHaveLength(20);
    expect(time.timers).toBe(0);
  });
});

describe("how long answers take", () => {
  test("is not told by an attempt that has waited for one in vain, and by an answer that comes too late", async () => {
    const { time, scheduler, session, answersTake } = scene();
    await answersTake(10, 10);
    let answer: () => void = () => undefined;
    const slow = (): Promise<void> =>
      new Promise((resolve) => {
        answer = resolve;
      });
    const late = expect(sendOnce(session, { kind: "read", firstTimeoutMs: 100 }, slow)).rejects.toThrow("No answer");
    await time.advance(100);
    await late;
    expect(scheduler.slowMs).toBe(10);
    await time.advance(400);
    answer();
    await turn();
    expect([scheduler.quickMs, scheduler.slowMs]).toEqual([10, 500]);
  });

  test("is told by errors of the table as well, for as long as it answers with nothing else", async () => {
    const { time, scheduler, askMany, fail, answersTake } = scene();
    await answersTake(400, 2);
    const failing = askMany("throttled", 1);
    await time.advance(20);
    await fail(new LockStoreError("throttled", { throttled: true }), ...failing);
    // How patient an attempt is, only successes say.
    expect([scheduler.quickMs, scheduler.slowMs]).toEqual([20, 400]);
    await answersTake(500, 1);
    expect([scheduler.quickMs, scheduler.slowMs]).toEqual([400, 500]);
  });

  test("is not known before the first, and then that of the last 64, whatever failed", async () => {
    const { time, scheduler, askMany, fail, answersTake } = scene();
    expect([scheduler.quickMs, scheduler.slowMs]).toEqual([undefined, undefined]);
    await answersTake(5);
    await answersTake(10, 59);
    await answersTake(400, 5);
    const failing = askMany("failing", 40);
    await time.advance(5_000);
    await fail(new Error("no answer"), ...failing);
    expect([scheduler.quickMs, scheduler.slowMs]).toEqual([10, 400]);
  });
});
