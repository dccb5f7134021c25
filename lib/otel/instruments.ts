import type { Meter } from "@opentelemetry/api";
import { type Instruments, instrumentsOf, type Metric } from "../metrics/metrics.js";

/** An instrument of the meter for each metric. */
export function instrumentsOn(meter: Meter): Instruments {
  return instrumentsOf(({ name, kind, unit, description, buckets = [] }: Metric) => {
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
