import { channel, subscribe, unsubscribe } from "node:diagnostics_channel";
import { MeterProvider, MetricReader } from "@opentelemetry/sdk-metrics";
import { AlwaysOnSampler, BasicTracerProvider } from "@opentelemetry/sdk-trace-base";
import type { Diagnostics } from "dynamutex";
import { instrumentLocks } from "dynamutex/otel";
import { now } from "../__tests__/support/monotonic.js";

/** Every channel: the type checker misses one that is not here. */
const CHANNELS: Readonly<Record<keyof Diagnostics, true>> = {
  "dynamutex:asked": true,
  "dynamutex:acquired": true,
  "dynamutex:missed": true,
  "dynamutex:failed": true,
  "dynamutex:renewed": true,
  "dynamutex:wanted": true,
  "dynamutex:renewal-failed": true,
  "dynamutex:one-by-one": true,
  "dynamutex:lost": true,
  "dynamutex:released": true,
  "dynamutex:request": true,
  "dynamutex:blocked": true,
  "dynamutex:stuck": true,
  "dynamutex:forced": true,
  "dynamutex:permits-differ": true,
  "dynamutex:election": true,
  "dynamutex:release-failed": true,
  "dynamutex:not-shared": true,
  "dynamutex:not-recorded": true,
  "dynamutex:wait-failed": true,
  "dynamutex:ticket-lost": true,
  "dynamutex:clock": true,
};

const NAMES = Object.keys(CHANNELS);

/** Who listens. */
export type Listeners = "none" | "idle" | "otel";

/** Has them listen, until the returned function is called. */
export function listen(who: Listeners): () => void {
  if (who === "none") return () => undefined;
  if (who === "otel") {
    const instrumented = instrumentLocks(providers());
    return () => instrumented[Symbol.dispose]();
  }
  const hear = (): void => undefined;
  for (const name of NAMES) subscribe(name, hear);
  return () => {
    for (const name of NAMES) unsubscribe(name, hear);
  };
}

/** The SDK with everything on and nowhere to send it. */
function providers() {
  const tracerProvider = new BasicTracerProvider({ sampler: new AlwaysOnSampler() });
  return { meterProvider: new MeterProvider({ readers: [new Unread()] }), tracerProvider };
}

class Unread extends MetricReader {
  protected override async onForceFlush(): Promise<void> {}
  protected override async onShutdown(): Promise<void> {}
}

/** How often the library looks whether a channel has subscribers while `work` runs. */
export async function countLooks(work: () => Promise<unknown>): Promise<number> {
  let looks = 0;
  const channels = NAMES.map((name) => channel(name));
  for (const one of channels) {
    Object.defineProperty(one, "hasSubscribers", {
      configurable: true,
      get() {
        looks += 1;
        return false;
      },
    });
  }
  try {
    await work();
  } finally {
    for (const one of channels) Reflect.deleteProperty(one, "hasSubscribers");
  }
  return looks;
}

/** What one look takes, in ns: one after the other at all channels, the loop included. */
export function lookNs(): number {
  const channels = NAMES.map((name) => channel(name));
  const rounds = 200_000;
  let seen = 0;
  const from = now();
  for (let round = 0; round < rounds; round++) for (const one of channels) if (one.hasSubscribers) seen += 1;
  const ns = ((now() - from) * 1e6) / (rounds * channels.length);
  if (seen > 0) throw new Error("Somebody listens while looks without listeners are measured");
  return ns;
}
