import { instrumentsOf } from "../metrics/metrics.js";
export function instrumentsOn(meter) {
    return instrumentsOf(({ name, kind, unit, description, buckets = [] }) => {
        if (kind === "histogram") {
            const advice = { explicitBucketBoundaries: [...buckets] };
            const histogram = meter.createHistogram(name, { unit, description, advice });
            return (value, attributes) => histogram.record(value, attributes);
        }
        const options = { unit, description };
        const sum = kind === "counter" ? meter.createCounter(name, options) : meter.createUpDownCounter(name, options);
        return (value, attributes) => sum.add(value, attributes);
    });
}
