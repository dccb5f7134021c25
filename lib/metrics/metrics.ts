/** What is counted with a metric, under OpenTelemetry's names. */
export type Attributes = Readonly<Record<string, string>>;

/** One metric: every backend makes an instrument of its own of it. */
export interface Metric {
  /** OpenTelemetry's name: a backend with other rules derives its own. */
  readonly name: string;
  readonly kind: "counter" | "gauge" | "histogram";
  readonly unit: string;
  readonly description: string;
  /** The attributes that a measurement may have, except the lock's name. */
  readonly attributes: readonly string[];
  /** The upper bounds of a histogram's buckets. */
  readonly buckets?: readonly number[];
}

type MetricKey =
  | "calls"
  | "waiting"
  | "waitDuration"
  | "misses"
  | "failures"
  | "held"
  | "holdDuration"
  | "losses"
  | "takeovers"
  | "wanted"
  | "warnings"
  | "requests"
  | "requestDuration"
  | "capacityUnits";

/** Adds to a counter or a gauge, or records a value in a histogram. */
export type Instrument = (value: number, attributes?: Attributes) => void;

/** An instrument for each metric. */
export type Instruments = Readonly<Record<MetricKey, Instrument>>;

/** The attribute that is the name of a lock, where names are asked for. */
export const LOCK_NAME = "dynamutex.lock.name";

/** In seconds: from a free lock to a queue of minutes. */
const WAITS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
/** In seconds: from one write to a job of hours. */
const HOLDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3_600];
/** In seconds: an attempt takes 3 s at most. */
const REQUESTS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** Everything that is measured. docs/guides/observability.md has the same table. */
export const METRICS: Readonly<Record<MetricKey, Metric>> = {
  calls: counter("calls", "{call}", "Calls that asked for a lock"),
  waiting: gauge("waiting", "{call}", "Calls that wait for a lock"),
  waitDuration: duration("wait.duration", "How long calls waited, by what came of them", WAITS, "dynamutex.outcome"),
  misses: counter("misses", "{call}", "Calls that ended without the lock, because others have it", "dynamutex.reason"),
  failures: counter(
    "failures",
    "{call}",
    "Calls that were aborted, closed, or failed",
    "dynamutex.reason",
    "error.type",
  ),
  held: gauge("held", "{lock}", "Locks that sections hold"),
  holdDuration: duration(
    "hold.duration",
    "How long sections ran, by what came of their locks",
    HOLDS,
    "dynamutex.outcome",
  ),
  losses: counter("losses", "{lock}", "Locks that were lost while a section ran", "dynamutex.reason"),
  takeovers: counter(
    "takeovers",
    "{lock}",
    "Locks that were taken from a holder that did not release them",
    "dynamutex.takeover",
  ),
  wanted: counter("wanted", "{lock}", "Locks whose section learned that another host waits"),
  warnings: counter("warnings", "{event}", "What the channels report beside the life of sections", "dynamutex.event"),
  requests: counter("requests", "{request}", "Requests to the table", "dynamutex.operation", "dynamutex.outcome"),
  requestDuration: duration(
    "request.duration",
    "How long requests to the table took",
    REQUESTS,
    "dynamutex.operation",
    "dynamutex.outcome",
  ),
  capacityUnits: counter(
    "capacity_units",
    "{unit}",
    "Capacity units, as replies tell of them",
    "dynamutex.operation",
    "dynamutex.capacity.kind",
  ),
};

/** The instruments of a backend, which makes one of each metric. */
export function instrumentsOf(make: (metric: Metric) => Instrument): Instruments {
  return Object.fromEntries(
    Object.entries(METRICS).map(([key, metric]) => [key, make(metric)]),
  ) as unknown as Instruments;
}

function counter(name: string, unit: string, description: string, ...attributes: string[]): Metric {
  return { name: `dynamutex.${name}`, kind: "counter", unit, description, attributes };
}

function gauge(name: string, unit: string, description: string): Metric {
  return { name: `dynamutex.${name}`, kind: "gauge", unit, description, attributes: [] };
}

function duration(name: string, description: string, buckets: readonly number[], ...attributes: string[]): Metric {
  return { name: `dynamutex.${name}`, kind: "histogram", unit: "s", description, attributes, buckets };
}
