import { Counter, Gauge, Histogram, } from "prom-client";
import { instrumentsOf, LOCK_NAME, METRICS } from "../metrics/metrics.js";
export const PROMETHEUS_NAMES = Object.values(METRICS).map(prometheusName);
export function instrumentsOn(registry, withNames) {
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
function prometheusName({ name, kind, unit }) {
    return `${underscored(name)}${unit === "s" ? "_seconds" : ""}${kind === "counter" ? "_total" : ""}`;
}
function labelsOf(attributes) {
    const labels = {};
    for (const [name, value] of Object.entries(attributes))
        labels[underscored(name)] = value;
    return labels;
}
function underscored(name) {
    return name.replaceAll(".", "_");
}
