/// <reference lib="esnext.disposable" preserve="true" />
/**
 * Metrics of locks on a registry of prom-client. `prom-client` is an optional peer dependency of the package.
 *
 * @packageDocumentation
 */

import { register } from "prom-client";
import * as z from "zod/mini";
import { LockConfigError } from "../errors.js";
import type { LockNames } from "../metrics/labels.js";
import { lockNamesOption } from "../metrics/lock-names-option.js";
import { measure } from "../metrics/measure.js";
import { NO_SPANS } from "../metrics/spans.js";
import { optionsCheck, withMethods } from "../options/check.js";
import type { OptionsCheck } from "../options/options-check.js";
import { type AnyRegistry, instrumentsOn, PROMETHEUS_NAMES } from "./instruments.js";

export type { LockNames } from "../metrics/labels.js";
export type { AnyRegistry } from "./instruments.js";

/** What {@link instrumentLocks} takes. */
export interface InstrumentOptions {
  /** Where the metrics go. Default: `register`, the global registry of prom-client. */
  readonly registry?: AnyRegistry | undefined;
  /** Whether the name of a lock is a label, `dynamutex_lock_name`. Default: false. */
  readonly lockNames?: LockNames | undefined;
}

const METHODS = ["registerMetric", "getSingleMetric", "removeSingleMetric"];
const check: OptionsCheck<InstrumentOptions> = optionsCheck(["instrumentLocks()"], () => ({
  registry: z.optional(withMethods<AnyRegistry>("a Registry of prom-client", METHODS)),
  lockNames: lockNamesOption(),
}));

/**
 * Measures all locks of this process, whichever `LockTable` they are of. Call it once for each registry, when your program starts;
 * docs/guides/observability.md lists the metrics and their labels. They are those of `dynamutex/otel`, under the names that a Collector
 * gives them: the same alarms and the same dashboard fit.
 *
 * Calls and sections that began before are not counted. While it measures, requests ask the table what they cost.
 *
 * @param options.lockNames true for every name as it is; a function for another label, or undefined for none. Each name makes
 * its own time series: group names that contain, for example, a customer's number, or leave names out.
 * @returns what ends it when it is disposed, and takes the metrics off the registry.
 * @throws `LockConfigError` if an option cannot work, or the registry has these metrics already.
 *
 * @example
 * // import { instrumentLocks } from "dynamutex/prom-client";
 * using _metrics = instrumentLocks();
 * await mutex.run(async (lock) => await work(lock.signal));
 */
export function instrumentLocks(options: InstrumentOptions = {}): Disposable {
  const { registry = register, lockNames = false } = check(options);
  const present = PROMETHEUS_NAMES.find((name) => registry.getSingleMetric(name) !== undefined);
  if (present !== undefined) {
    const remedy = `has ${present} already: call instrumentLocks() once for each registry, or dispose of the first`;
    throw new LockConfigError("registry", present, remedy);
  }
  let isWarned = false;
  const report = (message: string, error: unknown): void => {
    // Once: a function that throws for one name may throw for all.
    if (!isWarned) process.emitWarning(`${message}: ${String(error)}`, "DynamutexWarning");
    isWarned = true;
  };
  const { instruments, remove } = instrumentsOn(registry, lockNames !== false);
  const measured = measure({ instruments, spans: NO_SPANS, lockNames, report });
  return {
    [Symbol.dispose]: () => {
      measured[Symbol.dispose]();
      remove();
    },
  };
}
