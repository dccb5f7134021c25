import {
  Counter,
  Gauge,
  Histogram,
  type OpenMetricsContentType,
  type PrometheusContentType,
  type Registry,
} from "prom-client";
import { type Instruments, instrumentsOf, LOCK_NAME, METRICS, type Metric } from "../metrics/metrics.js";

/** A registry, whichever text it writes. */
export type AnyRegistry = Registry<PrometheusContentType> | Registry<OpenMetricsContentType>;

/** The names that Prometheus knows the metrics by: a Collector makes the same of those of OpenTelemetry. */
export const PROMETHEUS_NAMES: readonly string[] = Object.values(METRICS).map(prometheusName);

/** What was put on a registry. */
export interface Registered {
  readonly instruments: Instruments;
  /** Takes these metrics off the registry, and no others that have their names by now. */
  readonly remove: () => void;
}

/** A metric on the registry for each. @param withNames whether the lock's name is a label. */
export function instrumentsOn(registry: AnyRegistry, withNames: boolean): Registered {
  const own: (Counter | Gauge | Histogram)[] = [];
  const instruments = instrumentsOf((metric) => {
    const { kind, description: help, attributes, buckets = [] } = metric;
    const labelNames = [...attributes, ...(withNames ? [LOCK_NAME] : [])].map(underscored);
    const options = { name: prometheusName(metric), help, labelNames, registers: [registry] };
    if (kind === "histogram") {
      const histogram = new Histogram({ ...options, buckets: [...buckets] });
      own.push(histogram);
      return (value, given = {}) => histogram.observe(labelsOf(given), value);
    }
    if (kind === "counter") {
      const counter = new Counter(options);
      own.push(counter);
      return (value, given = {}) => counter.inc(labelsOf(given), value);
    }
    const levels = new Levels();
    own.push(new Gauge({ ...options, collect: levels.show }));
    return (value, given = {}) => levels.add(labelsOf(given), value);
  });
  const name = (metric: object): string => (metric as { readonly name: string }).name; // its types leave it out
  const remove = (): void => {
    for (const metric of own) {
      if (registry.getSingleMetric(name(metric)) === metric) registry.removeSingleMetric(name(metric));
    }
  };
  return { instruments, remove };
}

/**
 * The values of a gauge. They are kept here and set when somebody reads them: `registry.resetMetrics()` takes no lock away, so what
 * is held then must not be counted down from 0.
 */
class Levels {
  readonly #levels = new Map<string, { readonly labels: Record<string, string>; value: number }>();

  add(labels: Record<string, string>, value: number): void {
    const key = JSON.stringify(labels);
    const level = this.#levels.get(key);
    if (level === undefined) this.#levels.set(key, { labels, value });
    else level.value += value;
  }

  /** What the gauge calls before it is read. */
  get show(): (this: Gauge) => void {
    const levels = this.#levels;
    return function show() {
      for (const { labels, value } of levels.values()) this.set(labels, value);
    };
  }
}

function prometheusName({ name, kind, unit }: Metric): string {
  return `${underscored(name)}${unit === "s" ? "_seconds" : ""}${kind === "counter" ? "_total" : ""}`;
}

function labelsOf(attributes: Readonly<Record<string, string>>): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [name, value] of Object.entries(attributes)) labels[underscored(name)] = value;
  return labels;
}

function underscored(name: string): string {
  return name.replaceAll(".", "_");
}
