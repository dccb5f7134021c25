import { describe, expect, test } from "@jest/globals";
import { LockStoreError } from "../../lib/errors.js";
import { Copies, persist, type Requests, Scheduler, sendOnce } from "../../lib/session/requests.js";
import { endAfter, type Persistence } from "../../lib/session/retry.js";
import { turn } from "../support/eventually.js";
import { ManualTime } from "../support/manual-time.js";

const WIDTH = 48;
const ATTEMPT_MS = 1_000;

const refused = (): LockStoreError => new LockStoreError("connect ECONNREFUSED", { transient: true, answered: false });
const busy = (): LockStoreError => new LockStoreError("InternalServerError", { transient: true });
const denied = (): LockStoreError => new LockStoreError("AccessDenied");

/** What an attempt comes to: an error, an answer, or nothing. */
type Fate = Error | string | "hangs";

function scene({ random = () => 0.5 }: { readonly random?: () => number } = {}) {
  const time = new ManualTime();
  const clock = time.clock();
  const scheduler = new Scheduler(clock);
  const session: Requests = { clock, scheduler, random };
  /** When each attempt left, and for how long it was waited for, if not to its end. */
  const attempts: { readonly at: number; endedAfter?: number }[] = [];

  /** What the senders of these were told of on the way. */
  const failures: unknown[] = [];

  /** Sends attempts with these fates in turn; the last one is that of all further attempts. */
  function send(
    fates: readonly Fate[],
    { copies = new Copies(), ...options }: Partial<Persistence> & { readonly copies?: Copies } = {},
  ): Promise<string> {
    const persistence: Persistence = {
      kind: "take",
      until: endAfter(clock, 10_000),
      firstTimeoutMs: ATTEMPT_MS,
      onFailure: (error) => failures.push(error),
      ...options,
    };
    let count = 0;
    return persist(session, persistence, (signal) => copies.count(sendOne(signal)));

    async function sendOne(signal: AbortSignal): Promise<string> {
      const attempt: (typeof attempts)[number] = { at: time.elapsed };
      attempts.push(attempt);
      const fate = fates[Math.min(count++, fates.length - 1)] as Fate;
      if (fate instanceof Error) throw fate;
      if (fate !== "hangs") return fate;
      return await new Promise((_, reject) =>
        signal.addEventListener("abort", () => {
          attempt.endedAfter = time.elapsed - attempt.at;
          reject(new Error("the SDK's own AbortError"));
        }),
      );
    }
  }

  /** Takes all slots for good. @returns what gives one back. */
  function fill(): () => Promise<void> {
    let free: () => void = () => undefined;
    const hold = (): Promise<void> =>
      new Promise((resolve) => {
        free = resolve;
      });
    for (let count = 0; count < WIDTH; count += 1) {
      scheduler.run({ kind: "read", until: () => 0 }, hold).catch(() => undefined);
    }
    return async () => {
      free();
      await turn();
    };
  }

  /** Makes answers take so long at present. */
  async function answersTake(ms: number): Promise<void> {
    for (let count = 0; count < 64; count += 1) {
      const answer = sendOnce(session, { kind: "read", firstTimeoutMs: ms + 1 }, () => clock.sleep(ms));
      await time.advance(ms);
      await answer;
    }
    time.sleeps.length = 0;
  }

  /** How it ended, and when. */
  function ended(work: Promise<string>): { error?: LockStoreError; value?: string; at?: number } {
    const end: ReturnType<typeof ended> = {};
    work.then(
      (value) => Object.assign(end, { value, at: time.elapsed }),
      (error) => Object.assign(end, { error, at: time.elapsed }),
    );
    return end;
  }

  return { time, clock, scheduler, session, attempts, failures, send, fill, answersTake, ended };
}

describe("a request that is answered at once", () => {
  test("leaves synchronously, has one timer meanwhile and none later", async () => {
    const { time, attempts, send } = scene();
    const answer = send(["applied"]);
    expect(attempts).toHaveLength(1);
    expect(time.timers).toBe(1);
    expect(await answer).toBe("applied");
    expect(time.timers).toBe(0);
    expect(time.sleeps).toEqual([]);
  });

  test("may choose as it leaves until when it is worth something: its time ends there", async () => {
    const { time, session, ended } = scene();
    let end = 10_000;
    const work = ended(
      persist(session, { kind: "take", until: () => end, firstTimeoutMs: ATTEMPT_MS }, () => {
        end = 300;
        return new Promise<string>(() => undefined);
      }),
    );
    await time.advance(10_000);
    expect(work.at).toBe(300);
  });
});

describe("a request that fails", () => {
  test("is sent again after growing pauses, until it is answered", async () => {
    const { time, attempts, failures, send } = scene();
    const answer = send([busy(), busy(), busy(), "applied"]);
    await time.advance(10_000);
    expect(await answer).toBe("applied");
    expect(attempts.map(({ at }) => at)).toEqual([0, 50, 150, 350]);
    expect(failures).toHaveLength(3);
  });

  test("trap 31: is never sent again without a pause, however it fails and whatever chance says", async () => {
    for (const fate of [busy(), refused(), denied()]) {
      const { time, attempts, send, ended } = scene({ random: () => 0 });
      const end = ended(send([fate], { worthRetrying: () => true }));
      await time.advance(20_000);
      expect(end.error).toBe(fate);
      const pauses = attempts.slice(1).map(({ at }, index) => at - (attempts[index]?.at ?? 0));
      expect(Math.min(...pauses)).toBe(25);
      expect(Math.max(...pauses)).toBe(500);
    }
  });

  test("a permanent failure is not retried", async () => {
    const { time, attempts, send } = scene();
    await expect(send([denied()])).rejects.toThrow("AccessDenied");
    expect(attempts).toHaveLength(1);
    expect(time.timers).toBe(0);
  });

  test("is not sent again once its signal aborts, and the attempt under way is awaited", async () => {
    const { time, attempts, send, ended } = scene();
    const enough = new AbortController();
    const end = ended(send(["hangs"], { endSignal: enough.signal }));
    await time.advance(10);
    enough.abort();
    await turn();
    expect(end.error).toBeUndefined();
    await time.advance(10_000);
    expect(end.at).toBe(ATTEMPT_MS);
    expect(attempts).toHaveLength(1);
  });

  test("ends a pause early once its signal aborts, with the failure and not with the signal's reason", async () => {
    const { time, send, ended } = scene();
    const enough = new AbortController();
    const failure = busy();
    const end = ended(send([failure], { endSignal: enough.signal }));
    await time.advance(10);
    enough.abort();
    await turn();
    expect(end).toEqual({ error: failure, at: 10 });
    expect(time.timers).toBe(0);
  });

  test("throws what passes by itself at `until`, not before: a caller that tries anew at once has no time left", async () => {
    const { time, send, ended } = scene();
    for (const until of [7, 333, 1_234, 9_999]) {
      const startedAt = time.elapsed;
      const end = ended(send([busy()], { until: () => startedAt + until }));
      await time.advance(10_000);
      expect(end.at).toBe(startedAt + until);
    }
  });

  test("is left behind by a client that ignores the signal, also one that is sent once", async () => {
    const { time, session } = scene();
    const hung = sendOnce(session, { kind: "read", firstTimeoutMs: 100 }, () => new Promise(() => undefined));
    const late = expect(hung).rejects.toMatchObject({
      message: expect.stringContaining("No answer from the table within 100 ms: check its region"),
      transient: true,
      answered: false,
    });
    await time.advance(100);
    await late;
  });
});

describe("the time of an attempt", () => {
  test("is three times that of the one before, up to 3 s, and is counted from when it leaves", async () => {
    const { time, attempts, send, ended, fill, answersTake } = scene();
    await answersTake(5);
    const free = fill();
    const begunAt = time.elapsed;
    ended(send(["hangs"], { until: () => 60_000, firstTimeoutMs: 250 }));
    await time.advance(200);
    expect(attempts).toEqual([]);
    await free();
    await time.advance(15_000);
    expect(attempts[0]).toMatchObject({ at: begunAt + 200, endedAfter: 250 });
    expect(attempts.slice(1, 4).map(({ endedAfter }) => endedAfter)).toEqual([750, 2_250, 3_000]);
  });

  test.each<readonly [Persistence["kind"], number, number, number]>([
    ["take", 100, 1_000, 1_000],
    ["take", 700, 1_000, 2_100],
    ["renewal", 300, 500, 900],
    ["take", 5_000, 1_000, 3_000],
    ["take", 5_000, 5_000, 5_000],
  ])(
    "of a %s is three times as long as the slow answers of %i ms, up to 3 s, or the %i ms that are asked for: %i ms",
    async (kind, slowMs, firstTimeoutMs, expectedMs) => {
      const { time, attempts, send, ended, answersTake } = scene();
      await answersTake(slowMs);
      ended(send(["hangs"], { kind, firstTimeoutMs, until: () => Number.POSITIVE_INFINITY }));
      await time.advance(6_000);
      expect(attempts[0]?.endedAfter).toBe(expectedMs);
    },
  );

  test("does not go beyond `until`, however slow answers are", async () => {
    const { time, attempts, send, ended, answersTake } = scene();
    await answersTake(5_000);
    const end = ended(send(["hangs"], { until: endAfter(time.clock(), 500) }));
    await time.advance(4_000);
    expect(attempts).toEqual([expect.objectContaining({ endedAfter: 500 })]);
    expect(end.error?.message).toContain("No answer from the table within 500 ms");
  });
});

describe("the last attempt", () => {
  test("trap 35: is not sent with too little time for an answer, so that the cause before it is thrown", async () => {
    const { time, attempts, send, ended } = scene();
    const failure = refused();
    // The pauses are 50, 100, 200, ...: after the third there are 30 ms left.
    const end = ended(send([failure, failure, failure, "hangs"], { until: () => 380 }));
    await time.advance(10_000);
    expect(attempts.map(({ at }) => at)).toEqual([0, 50, 150]);
    expect(end).toEqual({ error: failure, at: 380 });
    expect(time.timers).toBe(0);
  });

  test("is sent with as little time as answers take at present", async () => {
    const { time, attempts, send, ended, answersTake } = scene();
    await answersTake(20);
    const startedAt = time.elapsed;
    const end = ended(send([busy(), busy(), busy(), "applied"], { until: () => startedAt + 380 }));
    await time.advance(10_000);
    expect(attempts).toHaveLength(4);
    expect(end.value).toBe("applied");
  });

  test("trap 35: that times out after other failures says how long was tried in all, and carries their last cause", async () => {
    const { time, failures, send, ended } = scene();
    const failure = refused();
    const end = ended(send([busy(), failure, "hangs"], { until: () => 9_150 }));
    await time.advance(20_000);
    // 0, 50, 150 to 3 150, 3 350 to 6 350, 6 750 to 9 150.
    expect(end.at).toBe(9_150);
    expect(end.error).toMatchObject({ cause: failure, transient: true, answered: false });
    expect(end.error?.message).toBe(
      "No answer from the table in 5 attempts within 9150 ms; the last failure before that: connect ECONNREFUSED",
    );
    expect(failures.at(-1)).toBe(end.error);
  });

  test("says what the store knows of why, before what was said earlier", async () => {
    const { time, session } = scene();
    const store = { whySilent: () => "all 50 connections are in use" };
    const sent = sendOnce(
      { ...session, store },
      { kind: "read", firstTimeoutMs: 100 },
      () => new Promise(() => undefined),
    );
    const late = expect(sent).rejects.toThrow(
      /^No answer from the table within 100 ms: all 50 connections are in use$/,
    );
    await time.advance(100);
    await late;
  });

  test("of several without any answer says what to check", async () => {
    const { time, send, ended } = scene();
    const end = ended(send(["hangs"], { until: () => 5_000 }));
    await time.advance(20_000);
    expect(end.error?.message).toMatch(/^No answer from the table in 3 attempts within 5000 ms: check its region/);
    expect(end.error?.cause).toBeUndefined();
  });
});

describe("while it waits for a slot", () => {
  test("a request ends at `until` without having been sent", async () => {
    const { time, attempts, failures, send, ended, fill, answersTake } = scene();
    await answersTake(10_000);
    fill();
    const copies = new Copies();
    const until = time.elapsed + 2_000;
    const end = ended(send(["applied"], { until: () => until, copies }));
    await time.advance(1_999);
    expect(end).toEqual({});
    await time.advance(1);
    expect(end.at).toBe(until);
    expect(end.error).toMatchObject({
      message: expect.stringContaining("Not sent within 2000 ms"),
      transient: true,
      answered: false,
    });
    expect(failures).toEqual([end.error]);
    expect(attempts).toEqual([]);
    expect(copies).toMatchObject({ sent: 0, unanswered: 0 });
    expect(time.timers).toBe(0);
  });

  test("a request is not sent with too little time left for an answer, and still ends at `until`", async () => {
    const { time, attempts, send, ended, fill } = scene();
    const free = fill();
    const end = ended(send(["applied"], { until: () => 230 }));
    await time.advance(200);
    await free();
    await time.advance(1_000);
    expect(attempts).toEqual([]);
    expect(end).toMatchObject({
      at: 230,
      error: { message: expect.stringContaining("Not sent within 200 ms: too little time") },
    });
  });

  test("a request ends once its signal aborts, with the reason", async () => {
    const { time, attempts, failures, send, fill } = scene();
    fill();
    const enough = new AbortController();
    const rejected = expect(send(["applied"], { endSignal: enough.signal })).rejects.toBe("over");
    enough.abort("over");
    await rejected;
    expect([attempts, failures]).toEqual([[], []]);
    expect(time.timers).toBe(0);
  });

  test("a further attempt that does not leave hides no earlier failure, and tells it once", async () => {
    const { time, attempts, failures, send, ended, fill, answersTake } = scene();
    await answersTake(10_000);
    const failure = refused();
    const startedAt = time.elapsed;
    const end = ended(send([failure], { until: () => startedAt + 30_000 }));
    await turn();
    fill();
    await time.advance(20_000);
    expect(attempts).toHaveLength(1);
    await time.advance(20_000);
    expect(end.error).toBe(failure);
    expect(failures).toEqual([failure]);
  });

  test("goes by its deadline, which is `until` where none is given", async () => {
    const { send, fill } = scene();
    const free = fill();
    const left: string[] = [];
    const ask = (name: string, options: Partial<Persistence>): Promise<unknown> =>
      send([name], options).then((answer) => left.push(answer));
    const answers = [
      ask("last", { until: () => 9_000 }),
      ask("second", { until: () => 9_000, deadline: 8_000 }),
      ask("first", { until: () => 7_000 }),
    ];
    await free();
    await Promise.all(answers);
    expect(left).toEqual(["first", "second", "last"]);
  });
});

describe("the copies that were sent", () => {
  test("are counted on success, with those to which the table has said nothing", async () => {
    const { time, send, ended } = scene();
    const copies = new Copies();
    const end = ended(send([busy(), refused(), "hangs", "applied"], { copies }));
    await time.advance(5_000);
    expect(end.value).toBe("applied");
    expect(copies).toMatchObject({ sent: 4, unanswered: 2 });
  });

  test("are counted on failure", async () => {
    const { send } = scene();
    const copies = new Copies();
    await expect(send([denied()], { copies })).rejects.toThrow("AccessDenied");
    expect(copies).toMatchObject({ sent: 1, unanswered: 0 });
  });

  test("are counted as answered by an answer that comes too late", async () => {
    const { time, session, ended } = scene();
    const copies = new Copies();
    const persistence: Persistence = { kind: "take", until: () => 10_000, firstTimeoutMs: ATTEMPT_MS };
    let answer: (value: string) => void = () => undefined;
    const deaf = (): Promise<string> =>
      copies.sent > 0
        ? Promise.resolve("applied")
        : new Promise((resolve) => {
            answer = resolve;
          });
    const end = ended(persist(session, persistence, () => copies.count(deaf())));
    await time.advance(2_000);
    expect(end.value).toBe("applied");
    expect(copies).toMatchObject({ sent: 2, unanswered: 1 });
    answer("refused");
    await turn();
    expect(copies).toMatchObject({ sent: 2, unanswered: 0 });
  });
});

describe("a request that is sent once", () => {
  test("waits for a slot, goes by its deadline, and is not sent again", async () => {
    const { session, fill } = scene();
    const free = fill();
    let sent = 0;
    const failing = sendOnce(session, { kind: "read", firstTimeoutMs: 100 }, () => {
      sent += 1;
      return Promise.reject(busy());
    });
    expect(sent).toBe(0);
    const rejected = expect(failing).rejects.toThrow("InternalServerError");
    await free();
    await rejected;
    expect(sent).toBe(1);
  });
});

describe("whether the table answers at all", () => {
  test("is told by what succeeds and by what it refuses, and not by what gets no reply", async () => {
    const { time, scheduler, send } = scene();
    expect(scheduler.answers).toBe(0);
    for (const [fate, answers] of [
      ["applied", true],
      [denied(), true],
      [new LockStoreError("connect ECONNREFUSED", { answered: false }), false],
      [new Error("broken"), false],
    ] as const) {
      await time.advance(1_000);
      const before = scheduler.answers;
      await send([fate]).catch(() => undefined);
      expect(scheduler.answers - before).toBe(answers ? 1 : 0);
    }
  });

  test("is not known since the first request after the last answer, which may come late, and to a request sent once", async () => {
    const { time, scheduler, session, send, ended } = scene();
    await time.advance(10);
    expect(scheduler.silentSince).toBe(10);
    let answer: () => void = () => undefined;
    const slow = (): Promise<string> =>
      new Promise((resolve) => {
        answer = () => resolve("late");
      });
    const late = ended(sendOnce(session, { kind: "read", firstTimeoutMs: 100 }, slow));
    await time.advance(90);
    ended(send(["hangs"]));
    await time.advance(100);
    expect(late.error?.message).toContain("No answer from the table within 100 ms");
    expect(scheduler.silentSince).toBe(10);
    answer();
    await turn();
    expect(scheduler.silentSince).toBe(200);
    expect(scheduler.answers).toBe(1);
  });
});
