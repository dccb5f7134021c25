import { describe, expect, test } from "@jest/globals";
import { context, diag, type Span, trace } from "@opentelemetry/api";
import { isTracingSuppressed } from "@opentelemetry/core";
import type { LockTable } from "../../lib/index.js";
import { instrumentLocks } from "../../lib/otel/index.js";
import { untraced } from "../../lib/otel/suppress.js";
import { eventually, turn, watch } from "../support/eventually.js";
import { error } from "../support/fault-proxy.js";
import { ManualTime } from "../support/manual-time.js";
import { rowOf, useScene } from "../support/scene.js";
import { Collector } from "./collector.js";

const scene = useScene();

const TTL_MS = 30_000;

function host(time: ManualTime, tag = "me"): LockTable {
  return scene.host({ clock: time.clock(), ttlMs: TTL_MS, tag, owner: tag });
}

/** A mutex of a host, and what is measured from here on. */
function measured() {
  const [collector, time] = [new Collector(), new ManualTime()];
  const instrumented = collector.instrument();
  const locks = host(time);
  return { collector, instrumented, time, locks, mutex: locks.mutex(scene.name) };
}

describe("the metrics", () => {
  test("of a contended run add up", async () => {
    const { collector, time } = measured();
    // What is sent is counted where it leaves: one that is given up on its way may never reach the proxy.
    let sent = 0;
    const [one, other] = ["one", "other"].map((owner) => {
      const client = scene.client(owner);
      client.middlewareStack.add((next) => (command) => {
        sent += 1;
        return next(command);
      });
      return scene.host({ clock: time.clock(), ttlMs: TTL_MS, owner, client });
    }) as [LockTable, LockTable];
    const section = () => turn();
    const aborted = new AbortController();
    const done = [one, other].flatMap((locks) => [
      ...Array.from({ length: 8 }, () => locks.mutex(scene.name).run(section)),
      ...Array.from({ length: 4 }, () => locks.mutex(scene.name).tryRun(section)),
      ...[1, 2].map(async () => (await locks.mutex(scene.name).lock({ waitMs: 1 })).unlock()),
      ...[1, 2, 3].map(() => locks.semaphore(scene.name, { permits: 2 }).run(section)),
      locks.mutex(scene.name).run(section, { signal: aborted.signal }),
      locks.lockAll([scene.name, `${scene.name}-y`]).then((set) => set.unlock()),
      locks.sharedMutex(scene.name).shared.run(section),
    ]);
    const all = watch(Promise.allSettled(done));
    aborted.abort(new Error("enough"));
    expect(await collector.sum("dynamutex.waiting")).toBeGreaterThan(0);
    await scene.play(time, () => all.settled);
    const [asked, ends] = [await collector.sum("dynamutex.calls"), await collector.values("dynamutex.wait.duration")];
    const { acquired = 0, missed = 0, failed = 0 } = ends;
    expect(asked).toBe(done.length);
    expect(acquired + missed + failed).toBe(asked);
    expect(missed).toBeGreaterThan(0);
    expect(failed).toBe(2);
    expect(await collector.sum("dynamutex.misses")).toBe(missed);
    expect(await collector.sum("dynamutex.failures")).toBe(failed);
    // A set is one call, and has two locks here: two sets were taken.
    const sections = acquired + 2;
    expect(await collector.values("dynamutex.hold.duration")).toEqual({ released: sections });
    expect(collector.spans).toHaveLength(sections);
    expect(await collector.values("dynamutex.waiting")).toEqual({});
    expect(await collector.values("dynamutex.held")).toEqual({});
    const requests = await collector.sum("dynamutex.requests");
    expect(requests).toBe(sent);
    expect(requests).toBeGreaterThan(0);
    expect(await collector.sum("dynamutex.request.duration")).toBe(requests);
    const { "take write": takes = 0 } = await collector.values("dynamutex.capacity_units");
    expect(takes).toBeGreaterThan(0);
  });

  test("are in seconds, and say why", async () => {
    const { collector, time, mutex } = measured();
    const lock = await mutex.lock();
    const waiting = mutex.lock();
    await mutex.tryLock();
    await mutex.tryRun(() => undefined, { once: 1 });
    expect(await collector.values("dynamutex.held")).toEqual({ "": 1 });
    expect(await collector.values("dynamutex.waiting")).toEqual({ "": 1 });
    await time.advance(2_000);
    await lock.unlock();
    const next = await waiting;
    await scene.put(rowOf());
    await time.advance(TTL_MS / 2);
    await eventually(() => !next.held);
    // The section on a lost lock still runs, and holds nothing.
    expect(await collector.values("dynamutex.held")).toEqual({});
    await expect(next.unlock()).rejects.toMatchObject({ reason: "stolen" });
    scene.proxy.on("PutItem", error("AccessDeniedException", "no"));
    await expect(mutex.lock()).rejects.toMatchObject({ code: "LOCK_STORE" });
    await scene.put(rowOf({ expires: time.now - 1 }));
    await (await mutex.lock()).unlock();
    await mutex.forceUnlock("somebody-else");
    const values = (name: string) => collector.values(`dynamutex.${name}`);
    expect([await values("held"), await values("waiting")]).toEqual([{}, {}]);
    expect(await values("wait.duration")).toEqual({ acquired: 3, missed: 2, failed: 1 });
    expect(await values("misses")).toEqual({ held: 2 });
    expect(await values("failures")).toEqual({ "error LOCK_STORE": 1 });
    expect(await values("losses")).toEqual({ stolen: 1 });
    expect(await values("takeovers")).toEqual({ expired: 1 });
    expect(await values("hold.duration")).toEqual({ released: 2, lost: 1 });
    const seconds = async (name: string) => {
      const metric = (await collector.metrics()).find(({ descriptor }) => descriptor.name === name);
      expect(metric?.descriptor.unit).toBe("s");
      return metric?.dataPoints.map(({ value }) => (value as { sum?: number }).sum);
    };
    expect(await seconds("dynamutex.wait.duration")).toEqual([2, 0, 0]);
    expect(await seconds("dynamutex.hold.duration")).toEqual([2, TTL_MS / 2_000]);
  });

  test("have the names of locks only when they are asked for, and as they are asked for", async () => {
    const names = async (lockNames?: boolean | ((name: string) => string | undefined)) => {
      const collector = new Collector();
      using _ = collector.instrument(lockNames === undefined ? {} : { lockNames });
      const locks = host(new ManualTime());
      await locks.mutex("customer#1").run(() => undefined);
      await (await locks.lockAll(["a", "b"])).unlock();
      const told = (await collector.metrics()).flatMap(({ dataPoints }) => dataPoints.map((point) => point.attributes));
      const all = [...told, ...collector.spans.map(({ attributes }) => attributes)];
      return [...new Set(all.map((attributes) => attributes["dynamutex.lock.name"]))].sort();
    };
    expect(await names()).toEqual([undefined]);
    expect(await names(true)).toEqual(["a", "a, b", "b", "customer#1"]);
    const tenant = (name: string) => (name.includes("#") ? name.split("#")[0] : undefined);
    expect(await names(tenant)).toEqual(["customer", undefined]);
    const errors: string[] = [];
    const nothing = () => undefined;
    const logger = { error: (message: string) => errors.push(message), warn: nothing, info: nothing };
    diag.setLogger({ ...logger, debug: nothing, verbose: nothing });
    const broken = names(() => {
      throw new Error("broken");
    });
    expect(await broken).toEqual([undefined]);
    expect(errors[0]).toContain('"customer#1"');
  });

  test("end when they are disposed of: nothing is left over, and nothing is counted", async () => {
    const { collector, instrumented, mutex } = measured();
    const lock = await mutex.lock();
    const waiting = mutex.lock();
    instrumented[Symbol.dispose]();
    await lock.unlock();
    await (await waiting).unlock();
    expect(await collector.values("dynamutex.held")).toEqual({});
    expect(await collector.values("dynamutex.waiting")).toEqual({});
    expect([await collector.sum("dynamutex.calls"), collector.spans.length]).toEqual([2, 1]);
  });

  test("do not count what had begun before, but what follows from it", async () => {
    const collector = new Collector();
    const mutex = host(new ManualTime()).mutex(scene.name);
    const lock = await mutex.lock();
    const waiting = mutex.lock();
    collector.instrument();
    await lock.unlock();
    await (await waiting).unlock();
    expect(await collector.sum("dynamutex.calls")).toBe(0);
    expect(await collector.sum("dynamutex.wait.duration")).toBe(0);
    expect(await collector.values("dynamutex.held")).toEqual({});
    expect(await collector.values("dynamutex.hold.duration")).toEqual({ released: 1 });
  });
});

describe("the span of a section", () => {
  test("is a child of the span that was active where the lock was asked for, however long it waited", async () => {
    const { collector, time, locks, mutex } = measured();
    const tracer = collector.tracerProvider.getTracer("test");
    const first = await mutex.lock();
    const callers = ["lock", "run", "lockAll", "tryLock"].map((name) => tracer.startSpan(name));
    const under = <T>(at: number, call: () => T): T =>
      context.with(trace.setSpan(context.active(), callers[at] as Span), call);
    const waiting = under(0, () => mutex.lock());
    const ran = under(1, () => mutex.run(() => undefined));
    const set = await under(2, () => locks.lockAll(["x", "y"]));
    const other = await under(3, () => locks.mutex("z").tryLock());
    await time.advance(400);
    await first.unlock();
    await (await waiting).unlock();
    await ran;
    await set.unlock();
    await other?.unlock();
    const contexts = callers.map((span) => span.spanContext());
    const parents = collector.spans.map((span) => {
      const at = contexts.findIndex(({ spanId }) => spanId === span.parentSpanContext?.spanId);
      if (at !== -1) expect(span.spanContext().traceId).toBe(contexts[at]?.traceId);
      return at === -1 ? undefined : at;
    });
    expect(parents).toEqual([undefined, 0, 1, 2, 2, 3]);
    expect(collector.spans.map(({ name }) => name)).toEqual(Array.from({ length: 6 }, () => "dynamutex section"));
    expect(collector.spans[1]?.attributes).toEqual({
      "dynamutex.wait.duration": 0.4,
      "dynamutex.passed_on": true,
      "dynamutex.uuid": first.uuid,
    });
  });

  test("has a loss as an event, and an error as its status", async () => {
    const { collector, time, mutex } = measured();
    const lock = await mutex.lock();
    await scene.put(rowOf());
    await time.advance(TTL_MS / 2);
    await eventually(() => !lock.held);
    expect(collector.spans).toEqual([]);
    await expect(lock.unlock()).rejects.toMatchObject({ reason: "stolen" });
    expect(collector.spans).toHaveLength(1);
    const [span] = collector.spans;
    expect(span?.events).toMatchObject([{ name: "lost", attributes: { "dynamutex.reason": "stolen" } }]);
    expect(span?.status).toEqual({ code: 2, message: "The lock was lost: stolen" });
  });
});

test("a lock that another host waits for is counted once, and its span has an event", async () => {
  const { collector, time, mutex } = measured();
  const lock = await mutex.lock();
  const waiting = watch(host(time, "other").mutex(scene.name).lock());
  await scene.play(time, () => lock.wanted, 2_500);
  await lock.extend();
  expect(await collector.sum("dynamutex.wanted")).toBe(1);
  await lock.unlock();
  await scene.play(time, () => waiting.settled);
  expect(collector.spans.map(({ events }) => events.map(({ name }) => name))).toEqual([["wanted"]]);
});

test.each([
  ["meterProvider", { meterProvider: {} }],
  ["tracerProvider", { tracerProvider: 1 }],
  ["lockNames", { lockNames: "all" }],
  ["names", { names: true }],
])("instrumentLocks() refuses what cannot work, and names it: %s", (option, options) => {
  expect(() => instrumentLocks(options as never)).toThrow(expect.objectContaining({ code: "LOCK_CONFIG", option }));
});

describe("the trace of a caller", () => {
  /** Makes a span of each request, as an instrumentation of the AWS SDK does. */
  function traced(collector: Collector) {
    const tracer = collector.tracerProvider.getTracer("aws-sdk");
    const client = scene.client("me");
    client.middlewareStack.add(
      (next, { commandName = "" }) =>
        async (args) => {
          const span = tracer.startSpan(commandName.replace("Command", ""));
          try {
            return await next(args);
          } finally {
            span.end();
          }
        },
      { step: "initialize" },
    );
    return client;
  }

  test("has takes and releases, and no polls, marks or renewals; nor has anybody else's", async () => {
    const [collector, time] = [new Collector(), new ManualTime()];
    const instrumented = collector.instrument();
    const locks = scene.host({ clock: time.clock(), ttlMs: TTL_MS, client: traced(collector) });
    const tracer = collector.tracerProvider.getTracer("test");
    const held = await host(time, "other").mutex(scene.name).lock();
    const request = tracer.startSpan("the request");
    const waiting = context.with(trace.setSpan(context.active(), request), () => locks.mutex(scene.name).lock());
    const taken = watch(waiting);
    await scene.play(time, () => scene.proxy.requests.filter(({ operation }) => operation === "GetItem").length > 10);
    await held.unlock();
    await scene.play(time, () => taken.settled);
    const lock = await waiting;
    await scene.play(time, () => lock.remainingMs < TTL_MS / 2);
    await lock.extend();
    await lock.unlock();
    request.end();
    const names = collector.spans.map(({ name }) => name);
    expect(new Set(names)).toEqual(new Set(["PutItem", "DeleteItem", "dynamutex section", "the request"]));
    const take = collector.spans.find(({ name }) => name === "PutItem");
    expect(take?.parentSpanContext?.spanId).toBe(request.spanContext().spanId);

    // What measures no more suppresses nothing.
    instrumented[Symbol.dispose]();
    await locks.mutex(scene.name).inspect();
    expect(collector.spans.map(({ name }) => name)).toContain("GetItem");
  });

  test("is suppressed by the key of OpenTelemetry's own suppressTracing()", () => {
    expect(untraced(() => isTracingSuppressed(context.active()))).toBe(true);
    expect(isTracingSuppressed(context.active())).toBe(false);
  });
});
