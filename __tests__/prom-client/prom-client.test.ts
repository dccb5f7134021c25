import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { DataPointType, type Histogram, type MetricData } from "@opentelemetry/sdk-metrics";
import { Counter, type OpenMetricsContentType, Registry, register } from "prom-client";
import { type InstrumentOptions, instrumentLocks } from "../../lib/prom-client/index.js";
import { Collector } from "../otel/collector.js";
import { eventually, turn, watch } from "../support/eventually.js";
import { error } from "../support/fault-proxy.js";
import { ManualTime } from "../support/manual-time.js";
import { rowOf, useScene } from "../support/scene.js";

const scene = useScene();

const TTL_MS = 30_000;
const ends: Disposable[] = [];

afterEach(() => {
  for (const end of ends.splice(0)) end[Symbol.dispose]();
});

/** A registry that measures until the test ends. */
function measured(options: Pick<InstrumentOptions, "lockNames"> = {}) {
  const registry = new Registry();
  const instrumented = instrumentLocks({ registry, ...options });
  ends.push(instrumented);
  return { registry, instrumented };
}

function host(time: ManualTime, tag = "me") {
  return scene.host({ clock: time.clock(), ttlMs: TTL_MS, tag, owner: tag });
}

/** The values of the text that Prometheus reads, by their series. What is 0 is left out. */
async function exposed(registry: Registry): Promise<Readonly<Record<string, number>>> {
  const lines = [...(await registry.metrics()).matchAll(/^(dynamutex_\w+)(?:\{(.*)\})? (\S+)$/gm)];
  const values = lines.map(([, name = "", labels = "", value]) => {
    const each = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, label = "", text = ""]) => [label, text] as const);
    return [seriesOf(name, each), Number(value)] as const;
  });
  return Object.fromEntries(values.filter(([, value]) => value !== 0));
}

function seriesOf(name: string, labels: readonly (readonly [string, string])[]): string {
  return [name, ...labels.map(([label, text]) => `${label}=${text}`).sort()].join(" ");
}

/** The same of the metrics of OpenTelemetry, as its specification has Prometheus's names. */
function specified(metrics: readonly MetricData[]): Readonly<Record<string, number>> {
  const values: [string, number][] = metrics.flatMap((metric) => {
    const { descriptor, dataPointType, dataPoints } = metric;
    const name = `${underscored(descriptor.name)}${descriptor.unit === "s" ? "_seconds" : ""}`;
    const isCounter = dataPointType === DataPointType.SUM && metric.isMonotonic;
    return dataPoints.flatMap(({ attributes, value }): [string, number][] => {
      const labels = Object.entries(attributes).map(([label, text]) => [underscored(label), String(text)] as const);
      if (typeof value === "number") return [[seriesOf(isCounter ? `${name}_total` : name, labels), value]];
      const { buckets, count, sum = 0 } = value as Histogram;
      const upTo = (at: number) => buckets.counts.slice(0, at + 1).reduce((total, each) => total + each, 0);
      return [
        ...[...buckets.boundaries, "+Inf"].map((le, at): [string, number] => [
          seriesOf(`${name}_bucket`, [...labels, ["le", String(le)]]),
          upTo(at),
        ]),
        [seriesOf(`${name}_sum`, labels), sum],
        [seriesOf(`${name}_count`, labels), count],
      ];
    });
  });
  return Object.fromEntries(values.filter(([, value]) => value !== 0));
}

const underscored = (name: string): string => name.replaceAll(".", "_");

describe("the metrics", () => {
  test.each<readonly [string, Pick<InstrumentOptions, "lockNames">]>([
    ["without names of locks", {}],
    ["with them", { lockNames: true }],
  ])("are those of dynamutex/otel, value by value, %s", async (_, options) => {
    const { registry } = measured(options);
    const collector = new Collector();
    collector.instrument(options);
    const time = new ManualTime();
    const [one, other] = [host(time), host(time, "other")];
    const all = watch(
      Promise.allSettled([
        ...[one, other].flatMap((locks) => [
          ...[1, 2, 3].map(() => locks.mutex(scene.name).run(() => turn())),
          locks.mutex(scene.name).tryRun(() => turn()),
          locks.mutex(scene.name).lock({ waitMs: 1 }),
          locks.lockAll([scene.name, `${scene.name}-y`]).then((set) => set.unlock()),
        ]),
      ]),
    );
    await scene.play(time, () => all.settled);
    // One is lost, one cannot be taken, and one is taken from a dead holder.
    const mutex = one.mutex(`${scene.name}-z`);
    const lock = await mutex.lock();
    await scene.put(rowOf({ name: `${scene.name}-z` }));
    await time.advance(TTL_MS / 2);
    await eventually(() => !lock.held);
    await expect(lock.unlock()).rejects.toMatchObject({ reason: "stolen" });
    scene.proxy.on("PutItem", error("AccessDeniedException", "no"));
    await expect(mutex.lock()).rejects.toMatchObject({ code: "LOCK_STORE" });
    await scene.put(rowOf({ name: `${scene.name}-z`, expires: time.now - 1 }));
    await (await mutex.lock()).unlock();

    const values = await exposed(registry);
    expect(values).toEqual(specified(await collector.metrics()));
    for (const name of ["calls_total", "losses_total", "failures_total", "takeovers_total", "misses_total"]) {
      expect(Object.keys(values).filter((series) => series.startsWith(`dynamutex_${name}`))).not.toEqual([]);
    }
  });

  test("go to prom-client's own registry, where none is given", async () => {
    using _ = instrumentLocks();
    await host(new ManualTime())
      .mutex(scene.name)
      .run(() => undefined);
    expect(await register.getSingleMetricAsString("dynamutex_calls_total")).toContain("dynamutex_calls_total 1");
  });

  test("go to a registry that writes OpenMetrics", async () => {
    const registry = new Registry<OpenMetricsContentType>();
    registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
    using _ = instrumentLocks({ registry });
    await host(new ManualTime())
      .mutex(scene.name)
      .run(() => undefined);
    expect(await registry.metrics()).toMatch(/^# TYPE dynamutex_calls counter\ndynamutex_calls_total 1$/m);
  });

  test("that an alarm looks at are there at 0 before the first of their kind", async () => {
    const { registry } = measured();
    const zeros = [
      ...(await registry.metrics()).matchAll(
        /^dynamutex_(losses|failures|takeovers|warnings|requests)_total\{.*\} 0$/gm,
      ),
    ];
    const counts = ["losses", "failures", "takeovers", "warnings", "requests"].map(
      (kind) => zeros.filter(([, found]) => found === kind).length,
    );
    expect(counts).toEqual([6, 3, 2, 11, 34]);
  });

  test("are labelled by a function, whose errors are told once and end nothing", async () => {
    const warn = jest.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    try {
      const { registry } = measured({
        lockNames: (name) => {
          if (name.startsWith("b")) throw new Error("broken");
          return name.split("#")[0];
        },
      });
      const locks = host(new ManualTime());
      for (const name of ["customer#1", "customer#2", "b1", "b2"]) await locks.mutex(name).run(() => undefined);
      const values = await exposed(registry);
      expect(values["dynamutex_calls_total dynamutex_lock_name=customer"]).toBe(2);
      expect(values.dynamutex_calls_total).toBe(2);
      expect(warn.mock.calls).toEqual([
        ['dynamutex: lockNames has thrown for lock "b1": Error: broken', "DynamutexWarning"],
      ]);
    } finally {
      warn.mockRestore();
    }
  });
});

describe("a registry", () => {
  test("is measured on once, and says so", () => {
    const { registry } = measured();
    expect(() => instrumentLocks({ registry })).toThrow(
      expect.objectContaining({
        code: "LOCK_CONFIG",
        option: "registry",
        message: expect.stringContaining("has dynamutex_calls_total already: call instrumentLocks() once"),
      }),
    );
  });

  test("has none of the metrics when that is disposed of, and can be measured on again", async () => {
    const { registry, instrumented } = measured();
    new Counter({ name: "mine_total", help: "mine", registers: [registry] });
    const mutex = host(new ManualTime()).mutex(scene.name);
    await mutex.run(() => undefined);
    instrumented[Symbol.dispose]();
    expect(await registry.metrics()).toBe("# HELP mine_total mine\n# TYPE mine_total counter\nmine_total 0\n");
    using _ = instrumentLocks({ registry });
    await mutex.run(() => undefined);
    expect((await exposed(registry)).dynamutex_calls_total).toBe(1);
  });

  test("that was cleared keeps the metrics of a second instrumentLocks() when the first is disposed of", async () => {
    const { registry, instrumented } = measured();
    registry.clear();
    using _ = instrumentLocks({ registry });
    instrumented[Symbol.dispose]();
    await host(new ManualTime())
      .mutex(scene.name)
      .run(() => undefined);
    expect((await exposed(registry)).dynamutex_calls_total).toBe(1);
  });

  test.each<Pick<InstrumentOptions, "lockNames">>([{}, { lockNames: true }])(
    "that was reset while a lock is held shows that it is held, and 0 when it is released, with %p",
    async (options) => {
      const { registry } = measured(options);
      const label = options.lockNames ? `{dynamutex_lock_name="${scene.name}"}` : "";
      const held = async () => (await registry.metrics()).split("\n").filter((line) => /^dynamutex_held\b/.test(line));
      const lock = await host(new ManualTime()).mutex(scene.name).lock();
      registry.resetMetrics();
      expect(await held()).toEqual([`dynamutex_held${label} 1`]);
      await lock.unlock();
      expect(await held()).toEqual([`dynamutex_held${label} 0`]);
    },
  );
});

test.each([
  ["registry", { registry: {} }],
  ["lockNames", { lockNames: "all" }],
  ["registers", { registers: [] }],
])("instrumentLocks() refuses what cannot work, and names it: %s", (option, options) => {
  expect(() => instrumentLocks(options as never)).toThrow(expect.objectContaining({ code: "LOCK_CONFIG", option }));
});
