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

/** A metric on the registry for each. @param withNames whether the lock's name is a label. */
export function instrumentsOn(registry: AnyRegistry, withNames: boolean): Instruments {
  return instrumentsOf((metric) => {
    const { kind, description: help, attributes, buckets = [] } = metric;
    const labelNames = [...attributes, ...(withNames ? [LOCK_NAME] : [])].map(underscored);
    const options = { name: prometheusName(metric), help, labelNames, registers: [registry] };
    if (kind === "histogram") {
      const histogram = new Histogram({ ...options, buckets: [...buckets] });
      return (value, given = {}) => histogram.observe(labelsOf(given), value);
    }
    const sum = kind === "counter" ? new Counter(options) : new Gauge(options);
    return (value, given = {}) => sum.inc(labelsOf(given), value);
  });
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
