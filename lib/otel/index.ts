/// <reference lib="esnext.disposable" preserve="true" />
/**
 * Metrics and spans of locks, for OpenTelemetry. `@opentelemetry/api` is an optional peer dependency of the package.
 *
 * @packageDocumentation
 */

import { diag, type MeterProvider, metrics, type TracerProvider, trace } from "@opentelemetry/api";
import * as z from "zod/mini";
import type { LockNames } from "../metrics/labels.js";
import { lockNamesOption } from "../metrics/lock-names-option.js";
import { measure } from "../metrics/measure.js";
import { optionsCheck, withMethods } from "../options/check.js";
import type { OptionsCheck } from "../options/options-check.js";
import { setUntraced } from "../untraced.js";
import { instrumentsOn } from "./instruments.js";
import { spansOf } from "./section-spans.js";
import { untraced } from "./suppress.js";

export type { LockNames } from "../metrics/labels.js";

/** What {@link instrumentLocks} takes. */
export interface InstrumentOptions {
  /** Where the metrics go. Default: the global provider, as it is when `instrumentLocks()` is called. */
  readonly meterProvider?: MeterProvider | undefined;
  /** Where the spans go. Default: the global provider. */
  readonly tracerProvider?: TracerProvider | undefined;
  /** Whether the name of a lock is an attribute, `dynamutex.lock.name`, of metrics and spans. Default: false. */
  readonly lockNames?: LockNames | undefined;
}

const check: OptionsCheck<InstrumentOptions> = optionsCheck(["instrumentLocks()"], () => ({
  meterProvider: z.optional(withMethods<MeterProvider>("a MeterProvider of OpenTelemetry", ["getMeter"])),
  tracerProvider: z.optional(withMethods<TracerProvider>("a TracerProvider of OpenTelemetry", ["getTracer"])),
  lockNames: lockNamesOption(),
}));

/** What measures at present. */
const inUse = new Set<Disposable>();

/** The name of the meter and of the tracer. */
const SCOPE = "dynamutex";

/**
 * Measures all locks of this process, whichever `LockTable` they are of, and makes a span of each section. Call it once, after
 * your SDK has started; docs/guides/observability.md lists the metrics and their attributes.
 *
 * The span of a section is a child of the span that was active where `lock()`, `run()` or another call asked for it. It begins
 * when the lock is there; how long the call waited is an attribute. It is not made active: a span that the section makes is
 * its sibling. A loss is an event of it, and its status is then an error.
 *
 * Polls and renewals make no spans, whatever instruments the AWS SDK and HTTP: they are sent with OpenTelemetry's tracing suppressed. Takes
 * and releases are in the trace of their call.
 *
 * What had begun before is not counted: neither a call that waits nor a section that runs. While it measures, requests ask
 * the table what they cost.
 *
 * @param options.lockNames true for every name as it is; a function for another label, or undefined for none. Names that are
 * many, as those with a customer's number, make as many time series: leave them out, or group them.
 * @returns what ends it when it is disposed. The spans of sections that still run end then.
 * @throws `LockConfigError` if an option cannot work.
 *
 * @example
 * // import { instrumentLocks } from "dynamutex/otel";
 * using _metrics = instrumentLocks({ lockNames: (name) => name.split("#")[0] });
 * await mutex.run(async (lock) => await work(lock.signal));
 */
export function instrumentLocks(options: InstrumentOptions = {}): Disposable {
  const { meterProvider, tracerProvider, lockNames = false } = check(options);
  const tracer = (tracerProvider ?? trace.getTracerProvider()).getTracer(SCOPE);
  const measured = measure({
    instruments: instrumentsOn((meterProvider ?? metrics.getMeterProvider()).getMeter(SCOPE)),
    spans: spansOf(tracer),
    lockNames,
    report: (message, error) => diag.error(message, error),
  });
  inUse.add(measured);
  setUntraced(untraced);
  return {
    [Symbol.dispose]: () => {
      measured[Symbol.dispose]();
      inUse.delete(measured);
      if (inUse.size === 0) setUntraced(undefined);
    },
  };
}
