import { describe, expect, test } from "@jest/globals";
import { LockStoreError } from "../lib/errors.js";
import type { RequestKind, ScheduledRequest } from "../lib/session/backlog.js";
import { Scheduler } from "../lib/session/requests.js";
import { noAnswer } from "../lib/session/retry.js";
import { turn } from "./support/eventually.js";
import { ManualTime } from "./support/manual-time.js";
import { seededRandom } from "./support/seeded-random.js";

const WIDTH = 48;
const KINDS: readonly RequestKind[] = ["renewal", "release", "take", "read"];
const THROTTLED = new LockStoreError("too many", { transient: true, throttled: true });

/** A scheduler, with a table that answers when the test says so. */
function scene() {
  const time = new ManualTime();
  const scheduler = new Scheduler(time.clock());
  /** Who has left, in order. */
  const left: string[] = [];
  const answers = new Map<
    string,
    { readonly resolve: (value: string) => void; readonly reject: (error: unknown) => void }
  >();

  function ask(name: string, request: Partial<ScheduledRequest> = {}): Promise<string> {
    return scheduler.run({ kind: "take", deadline: 1_000_000, ...request }, () => {
      left.push(name);
      return new Promise((resolve, reject) => answers.set(name, { resolve, reject }));
    });
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

  /** Takes all slots, with requests of which the first is answered to let one other leave. */
  function fill(count = WIDTH): void {
    const before = left.length;
    askMany("first", count);
    expect(left).toHaveLength(before + count);
    left.length = 0;
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

  return { time, scheduler, left, ask, askMany, succeed, fail, fill, free, answersTake };
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
    await expect(scheduler.run({ kind: "read", deadline: 1 }, broken)).rejects.toThrow("broken");
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
  test("is renewals first, and that of their deadlines; of equal ones, that of their arrival", async () => {
    const { askMany, fill, free } = scene();
    fill();
    askMany("read", 1, { kind: "read", deadline: 300 });
    askMany("never", 1, { kind: "read", deadline: Number.POSITIVE_INFINITY });
    askMany("renewal", 1, { kind: "renewal", deadline: 400 });
    askMany("take", 2, { kind: "take", deadline: 200 });
    askMany("release", 1, { kind: "release", deadline: 200 });
    expect(await free(6)).toEqual(["renewal0", "take0", "take1", "release0", "read0", "never0"]);
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
      ask(name, { deadline, enough: isKept ? undefined : enough.signal }).catch(() => undefined);
    }
    enough.abort();
    await turn();
    const expected = kept.toSorted((one, other) => one.deadline - other.deadline).map(({ name }) => name);
    await succeed("first0");
    for (let index = 0; index < expected.length - 1; index += 1) await succeed(expected[index] as string);
    expect(left).toEqual(expected);
  });

  test.each([1, 2, 3])("leaves each kind that waits one of every 8, whatever the deadlines (seed %i)", async (seed) => {
    const { left, ask, fill, free } = scene();
    const random = seededRandom(seed);
    fill();
    for (let index = 0; index < 200; index += 1) {
      for (const kind of KINDS) {
        // One kind has the earliest deadlines, the others' come later by different amounts.
        const deadline = KINDS.indexOf(kind) * 1_000 * Math.floor(random() * 3);
        ask(kind, { kind, deadline }).catch(() => undefined);
      }
    }
    await free(WIDTH);
    for (let from = 0; from + 8 <= left.length; from += 1) {
      expect(new Set(left.slice(from, from + 8))).toEqual(new Set(KINDS));
    }
  });

  test("releases, takes and reads do not starve behind renewals with earlier deadlines", async () => {
    const { askMany, fill, free } = scene();
    fill();
    askMany("renewal", 1_000, { kind: "renewal", deadline: 1 });
    askMany("release", 1, { kind: "release" });
    askMany("take", 1, { kind: "take" });
    askMany("read", 1, { kind: "read" });
    expect(await free(8)).toEqual(expect.arrayContaining(["release0", "take0", "read0"]));
  });

  test("trap 28: a burst of takes does not hold up renewals, whosever deadline is earlier", async () => {
    const { askMany, fill, free } = scene();
    fill();
    askMany("take", 2_000, { kind: "take", deadline: 500 });
    askMany("urgent", 1, { kind: "renewal", deadline: 499 });
    askMany("later", 3, { kind: "renewal", deadline: 501 });
    expect(await free(4)).toEqual(["urgent0", "later0", "later1", "later2"]);
  });

  test("leaves takes a small share while a renewal is urgent, and releases and reads their own", async () => {
    const { time, left, askMany, fill, free, succeed } = scene();
    fill();
    askMany("take", 10, { kind: "take" });
    askMany("release", 1, { kind: "release" });
    askMany("read", 1, { kind: "read" });
    askMany("renewal", 600, { kind: "renewal", deadline: time.elapsed - 1 });
    expect(await free(12)).toEqual(expect.arrayContaining(["release0", "read0"]));
    for (let index = 0; index < 530; index += 1) await succeed(left[index] as string);
    expect(left.filter((name) => name.startsWith("take"))).toEqual(["take0", "take1"]);
  });
});

describe("a request that takes far longer than the others", () => {
  test("gives its slot to another after 250 ms while nothing is known, and is still answered", async () => {
    const { time, left, ask, askMany, fill, succeed } = scene();
    const hung = ask("hung");
    fill(WIDTH - 1);
    await time.advance(100);
    askMany("next", 2);
    await time.advance(149);
    expect(left).toEqual([]);
    await time.advance(1);
    expect(left).toEqual(["next0", "next1"]);
    await succeed("hung");
    expect(await hung).toBe("hung");
  });

  test("does so after three times the median", async () => {
    const { time, left, askMany, fill, answersTake } = scene();
    await answersTake(200);
    fill();
    askMany("next", 1);
    await time.advance(599);
    expect(left).toEqual([]);
    await time.advance(1);
    expect(left).toEqual(["next0"]);
  });

  test("does so for one that comes when nobody has waited until then", async () => {
    const { time, left, askMany, fill } = scene();
    fill();
    await time.advance(10_000);
    expect(time.timers).toBe(0);
    askMany("next", 1);
    expect(left).toEqual(["next0"]);
  });

  test("frees one slot, and no more when its answer comes", async () => {
    const { time, left, askMany, fill, succeed } = scene();
    askMany("hung", 1);
    await time.advance(200);
    fill(WIDTH - 1);
    askMany("next", 3);
    await time.advance(50);
    expect(left).toEqual(["next0"]);
    await succeed("hung0");
    expect(left).toEqual(["next0"]);
    await succeed("next0");
    expect(left).toEqual(["next0", "next1"]);
  });

  test("keeps its slot where as many have given up theirs as there are: overload does not add to itself", async () => {
    const { time, left, askMany, fill } = scene();
    fill();
    askMany("next", 2 * WIDTH);
    await time.advance(250);
    expect(left).toHaveLength(WIDTH);
    await time.advance(10_000);
    expect(left).toHaveLength(WIDTH);
    expect(time.timers).toBe(0);
  });

  test("is watched with one timer however many wait, and with none when nobody does", async () => {
    const { time, left, askMany, fill, free } = scene();
    const enough = new AbortController();
    fill();
    askMany("leaving", 500, { enough: enough.signal });
    expect(time.timers).toBe(1);
    enough.abort();
    expect(time.timers).toBe(0);
    askMany("next", 2);
    expect(time.timers).toBe(1);
    await free(2);
    expect(left).toEqual(["next0", "next1"]);
    expect(time.timers).toBe(0);
  });
});

describe("how many are under way", () => {
  test("grows with what the held leases need, and at once", async () => {
    const { scheduler, left, askMany, fill, answersTake } = scene();
    await answersTake(1_000);
    fill();
    askMany("next", 100, { kind: "renewal" });
    // 2 x 1 000 ms x 60 renewals a second.
    const ends = Array.from({ length: 60 }, () => scheduler.expectRenewals(1_000));
    expect(scheduler.width).toBe(120);
    expect(left).toHaveLength(120 - WIDTH);
    for (const end of ends) {
      end();
      end();
    }
    expect(scheduler.width).toBe(WIDTH);
  });

  test("leaves room for the renewals that are due while an answer takes as long as it does, whatever else is asked", async () => {
    const { scheduler, left, askMany, succeed, answersTake } = scene();
    await answersTake(400);
    for (let count = 0; count < 50; count += 1) scheduler.expectRenewals(2_500);
    // 8 renewals are under way at a time: 50 in 2 500 ms, each for 400 ms.
    askMany("take", 100);
    expect(left).toHaveLength(WIDTH - 8);
    askMany("renewal", 10, { kind: "renewal" });
    expect(left.slice(WIDTH - 8)).toEqual(Array.from({ length: 8 }, (_, index) => `renewal${index}`));
    await succeed("take0", "renewal0");
    expect(left.slice(WIDTH).sort()).toEqual(["renewal8", "take40"]);
  });

  test("leaves a quarter of it to others, however many leases are held", async () => {
    const { scheduler, left, askMany, answersTake } = scene();
    await answersTake(10, 1);
    await answersTake(900);
    for (let count = 0; count < 500; count += 1) scheduler.expectRenewals(1_500);
    askMany("take", 100);
    expect(left).toHaveLength(WIDTH / 4);
  });

  test("grows with the distance of the table, up to 512", async () => {
    const { scheduler, answersTake } = scene();
    expect(scheduler.width).toBe(WIDTH);
    for (let count = 0; count < 100; count += 1) scheduler.expectRenewals(1_000);
    expect(scheduler.width).toBe(WIDTH);
    await answersTake(500);
    expect(scheduler.width).toBe(100);
    await answersTake(20_000);
    expect(scheduler.width).toBe(512);
  });

  test("does not grow where answers are slow because too much is asked", async () => {
    const { scheduler, answersTake } = scene();
    for (let count = 0; count < 300; count += 1) scheduler.expectRenewals(1_000);
    await answersTake(50, 1);
    await answersTake(900, 64);
    expect(scheduler.typicalMs).toBe(900);
    expect(scheduler.width).toBe(WIDTH);
    // For a minute or two. Then the table is as far away as it seems to be.
    await answersTake(900, 70);
    expect(scheduler.width).toBe(512);
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

  test("does not shrink below 4, nor below what the held leases need", async () => {
    const { time, scheduler, askMany, fail, answersTake } = scene();
    await answersTake(100);
    const end = scheduler.expectRenewals(10);
    for (let count = 0; count < 10; count += 1) {
      await time.advance(10);
      await fail(THROTTLED, ...askMany("throttled", 1));
    }
    expect(scheduler.width).toBe(20);
    end();
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

describe("the end of the wait for a slot", () => {
  test("comes when its signal aborts: the request is not sent, and the others keep their order", async () => {
    const { left, ask, askMany, fill, free } = scene();
    const enough = new AbortController();
    fill();
    const reason = new Error("nobody wants it any more");
    const rejected = expect(ask("leaving", { deadline: 1, enough: enough.signal })).rejects.toBe(reason);
    askMany("next", 1, { deadline: 2 });
    enough.abort(reason);
    await rejected;
    expect(await free(2)).toEqual(["next0"]);
    expect(left).not.toContain("leaving");
  });

  test("has come before the wait where the signal has aborted already, also where a slot is free", async () => {
    const { left, ask } = scene();
    await expect(ask("late", { enough: AbortSignal.abort("over") })).rejects.toBe("over");
    expect(left).toEqual([]);
  });

  test("does not concern a request that has left", async () => {
    const { ask, fill, free, succeed } = scene();
    const enough = new AbortController();
    fill();
    const sent = ask("sent", { enough: enough.signal });
    await free(1);
    enough.abort();
    await succeed("sent");
    expect(await sent).toBe("sent");
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

  test("leaves no timer behind where the request leaves in time", async () => {
    const { time, left, askMany, fill, free } = scene();
    fill();
    askMany("next", 20, { until: () => 10_000 });
    expect(time.timers).toBe(21);
    await free(20);
    expect(left).toHaveLength(20);
    expect(time.timers).toBe(0);
  });
});

describe("how long answers take", () => {
  test("is at least so long as an attempt has waited for one in vain", async () => {
    const { time, scheduler, ask, fail, answersTake } = scene();
    await answersTake(10, 60);
    for (let count = 0; count < 4; count += 1) {
      const unanswered = expect(ask("unanswered")).rejects.toThrow("No answer");
      await time.advance(750);
      await fail(noAnswer(750), "unanswered");
      await unanswered;
    }
    expect([scheduler.distanceMs, scheduler.typicalMs, scheduler.slowMs]).toEqual([10, 10, 750]);
  });

  test("is not known before the first, and then that of the last 64, whatever failed", async () => {
    const { time, scheduler, askMany, fail, answersTake } = scene();
    expect([scheduler.typicalMs, scheduler.slowMs]).toEqual([undefined, undefined]);
    await answersTake(900);
    await answersTake(10, 59);
    await answersTake(400, 5);
    const failing = askMany("failing", 40);
    await time.advance(5_000);
    await fail(new Error("no answer"), ...failing);
    expect([scheduler.typicalMs, scheduler.slowMs]).toEqual([10, 400]);
  });
});
