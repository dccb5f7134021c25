import { context, createContextKey } from "@opentelemetry/api";
import type { Untraced } from "../untraced.js";

/**
 * The key that `suppressTracing()` of `@opentelemetry/core` sets, which tracers and instrumentations ask for. Keys of one description are
 * equal, in every version of that package, so it need not be installed where only its SDK uses it.
 */
const SUPPRESS_TRACING = createContextKey("OpenTelemetry SDK Context Key SUPPRESS_TRACING");

/** With tracing suppressed, as instrumentations find it. */
export const untraced: Untraced = (send) => context.with(context.active().setValue(SUPPRESS_TRACING, true), send);
