import { channel } from "node:diagnostics_channel";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "@jest/globals";
import { PrometheusSerializer } from "@opentelemetry/exporter-prometheus";
import { DataPointType, type MetricData } from "@opentelemetry/sdk-metrics";
import { Registry } from "prom-client";
import type { Diagnostics } from "../../lib/index.js";
import { instrumentLocks } from "../../lib/prom-client/index.js";
import { consumerFolder } from "../support/consumer-folder.js";
import { freePort } from "../support/free-port.js";
import { blocksOf, firstColumn, pageAt } from "../support/pages.js";
import { createTestTable } from "../support/table.js";
import { Collector } from "./collector.js";

const read = (...path: string[]) => readFileSync(join(process.cwd(), ...path), "utf8");
const OBSERVABILITY = pageAt("docs/guides/observability.md");
const PAGE = OBSERVABILITY.text;
const DASHBOARD = JSON.parse(read("examples", "grafana", "dynamutex.json")) as {
  readonly panels: readonly { readonly title: string; readonly targets: readonly { readonly expr: string }[] }[];
};
const SHOWN = DASHBOARD.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
/** The expressions in the table of the alarms. Inside of a table a bar is escaped. */
const ALARMS = [
  ...(PAGE.split(/^## /m).find((section) => section.startsWith("Alarms")) ?? "").matchAll(/^\|[^|]+\| `(.+?)` \|/gm),
].map(([, expression = ""]) => expression.replaceAll("\\|", "|"));

/** Names of time series, each with the names of its labels. */
type Series = ReadonlyMap<string, ReadonlySet<string>>;

/** The metrics of everything that the channels may tell, without a table, and the text of prom-client. */
async function everything(): Promise<{ readonly metrics: readonly MetricData[]; readonly exposition: string }> {
  const collector = new Collector();
  collector.instrument();
  const registry = new Registry();
  using _ = instrumentLocks({ registry });
  const publish = <Name extends keyof Diagnostics>(name: Name, message: Diagnostics[Name]) =>
    channel(name).publish(message);
  const of = (call: number) => ({ name: "a", uuid: `uuid-${call}`, call });
  for (const call of [1, 2, 3]) publish("dynamutex:asked", { ...of(call), locks: 1 });
  publish("dynamutex:acquired", { ...of(1), owner: "me", waitedMs: 5, passedOn: false, takeover: "expired" });
  publish("dynamutex:wanted", { ...of(1), owner: "me" });
  publish("dynamutex:lost", { ...of(1), reason: "stolen", cause: undefined });
  publish("dynamutex:released", { ...of(1), heldMs: 7 });
  publish("dynamutex:missed", { ...of(2), reason: "held", holder: undefined, waitedMs: 0 });
  publish("dynamutex:failed", { ...of(3), reason: "error", cause: new Error("no"), waitedMs: 0 });
  publish("dynamutex:forced", { ...of(1), now: true });
  const request = { name: "a", ms: 3, cause: undefined, attempts: 1, readUnits: 1, writeUnits: 1 };
  publish("dynamutex:request", { operation: "take", outcome: "ok", ...request });
  return { metrics: await collector.metrics(), exposition: await registry.metrics() };
}

/** The time series of the text that Prometheus reads. */
function seriesIn(exposition: string): Series {
  const series = new Map<string, Set<string>>();
  for (const [, name = "", labels = ""] of exposition.matchAll(/^(dynamutex_\w+)(?:\{(.*)\})? \S+$/gm)) {
    const seen = series.get(name) ?? new Set();
    series.set(name, seen);
    for (const [, label = ""] of labels.matchAll(/(\w+)=/g)) seen.add(label);
  }
  return series;
}

/** The same as the specification of OpenTelemetry has it, and its Collector. */
function specified(metrics: readonly MetricData[]): Series {
  const series = new Map<string, ReadonlySet<string>>();
  for (const metric of metrics) {
    const { descriptor, dataPoints } = metric;
    const labels = dataPoints.flatMap(({ attributes }) => Object.keys(attributes).map(underscored));
    const name = `${underscored(descriptor.name)}${descriptor.unit === "s" ? "_seconds" : ""}`;
    if (metric.dataPointType === DataPointType.HISTOGRAM) {
      for (const part of ["_bucket", "_sum", "_count"]) series.set(name + part, new Set([...labels, "le"]));
    } else {
      const isCounter = metric.dataPointType === DataPointType.SUM && metric.isMonotonic;
      series.set(isCounter ? `${name}_total` : name, new Set(labels));
    }
  }
  return series;
}

const underscored = (name: string): string => name.replaceAll(".", "_");

/** What an expression asks for that is not there. */
function missing(expression: string, series: Series): readonly string[] {
  const names = new Set<string>();
  const wrong: string[] = [];
  const byPattern = [...expression.matchAll(/__name__=~"([^"]+)"/g)];
  for (const [, pattern = ""] of byPattern) {
    const found = [...series.keys()].filter((name) => new RegExp(`^(?:${pattern})$`).test(name));
    for (const name of found) names.add(name);
    if (found.length !== 1) wrong.push(pattern);
  }
  const labels = new Set<string>();
  for (const [, selector = ""] of expression.matchAll(/\{([^}]*)\}/g)) {
    for (const [, label = ""] of selector.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"/g))
      if (label !== "__name__") labels.add(label);
  }
  for (const [, grouped = ""] of expression.matchAll(/by \(([^)]*)\)/g)) {
    for (const label of grouped.split(",")) labels.add(label.trim());
  }
  const bare = expression.replaceAll(/\{[^}]*\}|by \([^)]*\)/g, "");
  for (const [name] of bare.matchAll(/dynamutex_\w+/g)) {
    if (series.has(name)) names.add(name);
    else wrong.push(name);
  }
  const known = new Set([...names].flatMap((name) => [...(series.get(name) ?? [])]));
  return [...wrong, ...[...labels].filter((label) => !known.has(label))];
}

/** A program that takes a lock once the page's exporter is set up, and prints what Prometheus reads there. */
function scraped(tableName: string, port: number): string {
  return `process.env.OTEL_EXPORTER_PROMETHEUS_PORT = "${port}";
await import("./instrument.js");
const { LockTable } = await import("dynamutex");
const locks = new LockTable({ tableName: "${tableName}" });
await locks.mutex("scraped").run(() => undefined);
await locks.close();
console.log(await (await fetch("http://127.0.0.1:${port}/metrics")).text());
process.exit();
`;
}

let printed: string;
let scrape: string;
beforeAll(async () => {
  await using folder = await consumerFolder();
  const table = await createTestTable();
  const exporter = blocksOf(OBSERVABILITY).find((block) => block.files.includes("instrument.ts"));
  await folder.write("log.ts", read("examples", "pino", "log.ts").replaceAll('"locks" }', `"${table}" }`));
  await folder.write("instrument.ts", exporter?.text ?? "");
  await folder.write("scraped.ts", scraped(table, await freePort()));
  const files = ["log.ts", "instrument.ts", "scraped.ts"];
  expect(await folder.compile(files, { target: "es2022", outDir: folder.path })).toBe("");
  printed = await folder.run("log.js");
  scrape = await folder.run("scraped.js");
});

describe("docs/guides/observability.md", () => {
  test("names every channel", () => {
    const library = read("lib", "diagnostics.ts");
    const channels = new Set([...library.matchAll(/"(dynamutex:[\w-]+)"/g)].map(([, name]) => name));
    expect([...firstColumn(OBSERVABILITY, "Channels")].sort()).toEqual([...channels].sort());
  });

  test("names every metric and its attributes", async () => {
    const table = (PAGE.split("## OpenTelemetry")[1] ?? "").split(/^## /m)[0] ?? "";
    const rows = [...table.matchAll(/^\| `(dynamutex[\w.]+)` \|([^|]*)\|([^|]*)\|/gm)];
    const told = rows.map(([, name = "", kind = "", attributes = ""]) => {
      const labels = [...attributes.matchAll(/`((?:dynamutex|error)\.[\w.]+)`/g)].map(([, label = ""]) => label);
      return [name, kind.includes("histogram") ? "s" : "", labels.sort()];
    });
    const measured = (await everything()).metrics.map(({ descriptor: { name, unit }, dataPoints }) => {
      const labels = new Set(dataPoints.flatMap(({ attributes }) => Object.keys(attributes)));
      return [name, unit === "s" ? "s" : "", [...labels].sort()];
    });
    expect(told.sort()).toEqual(measured.sort());
  });

  test("has a recipe for pino that logs sections, and leaves out what nobody wants to read", () => {
    const lines = printed.split("\n").map((line) => JSON.parse(line));
    expect(lines).toMatchObject([
      { level: 30, name: "locks", lock: "nightly-report", msg: "dynamutex:acquired", passedOn: false },
      { level: 30, name: "locks", lock: "nightly-report", msg: "dynamutex:released", call: lines[0]?.call },
    ]);
  });

  test("trap 53: has an exporter for Prometheus with the metrics that its alarms on waits ask for", () => {
    const series = seriesIn(scrape);
    const waits = ALARMS.filter((expression) => expression.includes("wait_duration"));
    expect(waits).toHaveLength(2);
    expect(waits.flatMap((expression) => missing(expression, series))).toEqual([]);
  });
});

describe("the dashboard and the alarms ask for metrics and labels that are there:", () => {
  let metrics: readonly MetricData[];
  let exposition: string;
  beforeAll(async () => {
    ({ metrics, exposition } = await everything());
  });

  test("as a Collector names them", () => {
    const series = specified(metrics);
    expect(SHOWN.length).toBeGreaterThan(15);
    expect(ALARMS.length).toBeGreaterThan(10);
    expect([...SHOWN, ...ALARMS].flatMap((expression) => missing(expression, series))).toEqual([]);
  });

  test("trap 53: as the exporter of the SDK, which the page uses, names them", async () => {
    const collected = { resource: { attributes: {} }, scopeMetrics: [{ scope: { name: "dynamutex" }, metrics }] };
    const series = seriesIn(new PrometheusSerializer().serialize(collected as never));
    expect(series.has("dynamutex_held")).toBe(true);
    expect([...SHOWN, ...ALARMS].flatMap((expression) => missing(expression, series))).toEqual([]);
  });

  test("as dynamutex/prom-client exposes them", () => {
    const series = seriesIn(exposition);
    expect([...series.keys()].sort()).toEqual([...specified(metrics).keys()].sort());
    expect([...SHOWN, ...ALARMS].flatMap((expression) => missing(expression, series))).toEqual([]);
  });

  test("and the dashboard shows all that there is", () => {
    const shown = SHOWN.join(" ").replaceAll("(_seconds)?", "");
    const names = metrics.map(({ descriptor }) => underscored(descriptor.name));
    expect(names.filter((name) => !shown.includes(name))).toEqual([]);
  });

  describe("and what an alarm looks at is there at 0 before the first of its kind, or its absence counts as 0:", () => {
    /** Costs begin far below their threshold, and a histogram has no 0; without either, the alarm gets `vector(0)` or does not fire. */
    const ABSENT = [
      `{__name__=~"dynamutex_wait_duration(_seconds)?_bucket",dynamutex_outcome="acquired"}`,
      "dynamutex_capacity_units_total",
      `dynamutex_requests_total{dynamutex_outcome="refused"}`,
      `{__name__=~"dynamutex_wait_duration(_seconds)?_count",dynamutex_outcome="acquired"}`,
    ];
    const absent = (exposition: string) =>
      [...new Set(ALARMS.flatMap(selectorsIn))].filter((selector) => !isThere(selector, exposition));

    test.each([false, (name: string) => (name === "a" ? name : undefined)])("lockNames: %p", async (lockNames) => {
      const collector = new Collector();
      collector.instrument({ lockNames });
      const registry = new Registry();
      using _ = instrumentLocks({ registry, lockNames });
      const scopeMetrics = [{ scope: { name: "dynamutex" }, metrics: await collector.metrics() }];
      const collected = { resource: { attributes: {} }, scopeMetrics };
      expect(absent(new PrometheusSerializer().serialize(collected as never))).toEqual(ABSENT);
      expect(absent(await registry.metrics())).toEqual(ABSENT);
    });

    test("an alarm that fires if nothing is there gets a 0 for that", () => {
      const [, ...added] = ABSENT.filter((selector) => !selector.includes("_bucket"));
      const alarms = ALARMS.filter((expression) => added.some((selector) => expression.includes(selector)));
      expect(alarms).toHaveLength(2);
      for (const expression of alarms) expect(expression).toMatch(/"\}\[\w+\]\)\) or vector\(0\)\) (==|>) \d+$/);
    });
  });
});

/** What an expression selects, without its range. */
function selectorsIn(expression: string): readonly string[] {
  return [
    ...expression
      .replaceAll(/by \([^)]*\)/g, "")
      .matchAll(/dynamutex_\w+(?=[[ )])(?![^{]*\})|(?:dynamutex_\w+)?\{[^}]*\}/g),
  ].map(([selector]) => selector);
}

/** Whether the text that Prometheus reads has a series that a selector selects. */
function isThere(selector: string, exposition: string): boolean {
  const [name = ""] = /^\w+/.exec(selector) ?? [];
  const matchers = [...selector.matchAll(/(\w+)(=~|!~|=)"([^"]*)"/g)].map(([, label = "", operator, text = ""]) => {
    const pattern = new RegExp(`^(?:${operator === "=" ? text.replaceAll(/\W/g, "\\$&") : text})$`);
    return (values: ReadonlyMap<string, string>) => pattern.test(values.get(label) ?? "") !== (operator === "!~");
  });
  return [...exposition.matchAll(/^(dynamutex_\w+)(?:\{(.*)\})? \S+(?: \d+)?$/gm)].some(
    ([, series = "", labels = ""]) => {
      if (name !== "" && series !== name) return false;
      const values = new Map(
        [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, label = "", value = ""]) => [label, value]),
      );
      values.set("__name__", series);
      return matchers.every((isMatch) => isMatch(values));
    },
  );
}
