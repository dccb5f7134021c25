import { diag, metrics, trace } from "@opentelemetry/api";
import * as z from "zod/mini";
import { lockNamesOption } from "../metrics/lock-names-option.js";
import { measure } from "../metrics/measure.js";
import { optionsCheck, withMethods } from "../options/check.js";
import { instrumentsOn } from "./instruments.js";
import { spansOf } from "./section-spans.js";
const check = optionsCheck(["instrumentLocks()"], () => ({
    meterProvider: z.optional(withMethods("a MeterProvider of OpenTelemetry", ["getMeter"])),
    tracerProvider: z.optional(withMethods("a TracerProvider of OpenTelemetry", ["getTracer"])),
    lockNames: lockNamesOption(),
}));
const SCOPE = "dynamutex";
export function instrumentLocks(options = {}) {
    const { meterProvider, tracerProvider, lockNames = false } = check(options);
    const tracer = (tracerProvider ?? trace.getTracerProvider()).getTracer(SCOPE);
    return measure({
        instruments: instrumentsOn((meterProvider ?? metrics.getMeterProvider()).getMeter(SCOPE)),
        spans: spansOf(tracer),
        lockNames,
        report: (message, error) => diag.error(message, error),
    });
}
