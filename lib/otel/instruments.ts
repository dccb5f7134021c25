import {
  type Attributes,
  type Counter,
  diag,
  type Histogram,
  type Meter,
  type UpDownCounter,
} from "@opentelemetry/api";

type Counters =
  | "calls"
  | "misses"
  | "failures"
  | "losses"
  | "takeovers"
  | "wanted"
  | "warnings"
  | "requests"
  | "capacityUnits";

/** Everything that is measured. */
export type Instruments = Readonly<
  Record<Counters, Counter> &
    Record<"waiting" | "held", UpDownCounter> &
    Record<"waitDuration" | "holdDuration" | "requestDuration", Histogram>
>;

/** In seconds: from a free lock to a queue of minutes. */
const WAITS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
/** In seconds: from one write to a job of hours. */
const HOLDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3_600];
/** In seconds: an attempt takes 3 s at most. */
const REQUESTS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

export function instrumentsOf(meter: Meter): Instruments {
  const counter = (name: string, unit: string, description: string) => meter.createCounter(name, { unit, description });
  const gauge = (name: string, unit: string, description: string) =>
    meter.createUpDownCounter(name, { unit, description });
  const duration = (name: string, description: string, explicitBucketBoundaries: number[]) =>
    meter.createHistogram(name, { unit: "s", description, advice: { explicitBucketBoundaries } });
  return {
    calls: counter("dynamutex.calls", "{call}", "Calls that asked for a lock"),
    waiting: gauge("dynamutex.waiting", "{call}", "Calls that wait for a lock"),
    waitDuration: duration("dynamutex.wait.duration", "How long calls waited, by what came of them", WAITS),
    held: gauge("dynamutex.held", "{lock}", "Locks that sections hold"),
    holdDuration: duration("dynamutex.hold.duration", "How long sections ran, by what came of their locks", HOLDS),
    misses: counter("dynamutex.misses", "{call}", "Calls that ended without the lock, because others have it"),
    failures: counter("dynamutex.failures", "{call}", "Calls that were aborted, closed, or failed"),
    losses: counter("dynamutex.losses", "{lock}", "Locks that were lost while a section ran"),
    takeovers: counter(
      "dynamutex.takeovers",
      "{lock}",
      "Locks that were taken from a holder that did not release them",
    ),
    wanted: counter("dynamutex.wanted", "{lock}", "Locks whose section learned that another host waits"),
    warnings: counter("dynamutex.warnings", "{event}", "What the channels report beside the life of sections"),
    requests: counter("dynamutex.requests", "{request}", "Requests to the table"),
    requestDuration: duration("dynamutex.request.duration", "How long requests to the table took", REQUESTS),
    capacityUnits: counter("dynamutex.capacity_units", "{unit}", "Capacity units, as replies tell of them"),
  };
}

/** Whether names of locks are attributes; or what makes a label of a name, and undefined of one that gets none. */
export type LockNames = boolean | ((name: string) => string | undefined);

/** The attributes that a lock's name comes to. */
export type Labels = (name: string | undefined) => Attributes;

const NONE: Attributes = {};

/** An error of the caller's function is reported to OpenTelemetry's own log: thrown, it would end the process. */
export function labelling(lockNames: LockNames): Labels {
  return (name) => {
    if (lockNames === false || name === undefined) return NONE;
    try {
      const label = lockNames === true ? name : lockNames(name);
      return label === undefined ? NONE : { "dynamutex.lock.name": label };
    } catch (error) {
      diag.error(`dynamutex: lockNames has thrown for lock ${JSON.stringify(name)}`, error);
      return NONE;
    }
  };
}
