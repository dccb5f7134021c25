import { afterAll, afterEach, beforeAll } from "@jest/globals";
import { context, diag } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  type MetricData,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { type InstrumentOptions, instrumentLocks } from "../../lib/otel/index.js";

/** OpenTelemetry's own SDK, with all that it is told in memory. */
export class Collector {
  readonly #metrics = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  readonly #reader = new PeriodicExportingMetricReader({ exporter: this.#metrics, exportIntervalMillis: 3_600_000 });
  readonly #spans = new InMemorySpanExporter();
  readonly meterProvider = new MeterProvider({ readers: [this.#reader] });
  readonly tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(this.#spans)] });
  readonly #ends: Disposable[] = [];

  constructor() {
    collectors.push(this);
  }

  /** Measures until the test ends. */
  instrument(options: Pick<InstrumentOptions, "lockNames"> = {}): Disposable {
    const { meterProvider, tracerProvider } = this;
    const instrumented = instrumentLocks({ meterProvider, tracerProvider, ...options });
    this.#ends.push(instrumented);
    return instrumented;
  }

  get spans(): readonly ReadableSpan[] {
    return this.#spans.getFinishedSpans();
  }

  async metrics(): Promise<readonly MetricData[]> {
    this.#metrics.reset();
    await this.#reader.forceFlush();
    return this.#metrics.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics));
  }

  /** What a metric came to, by its attributes: the sum, or of a histogram the count. What stays at 0 is left out. */
  async values(name: string): Promise<Readonly<Record<string, number>>> {
    const metric = (await this.metrics()).find(({ descriptor }) => descriptor.name === name);
    const points = (metric?.dataPoints ?? []).map(({ attributes, value }): [string, number] => [
      Object.values(attributes).join(" "),
      typeof value === "number" ? value : value.count,
    ]);
    return Object.fromEntries(points.filter(([, value]) => value !== 0));
  }

  /** The same over all attributes. */
  async sum(name: string): Promise<number> {
    return Object.values(await this.values(name)).reduce((total, value) => total + value, 0);
  }

  async end(): Promise<void> {
    for (const end of this.#ends) end[Symbol.dispose]();
    await this.meterProvider.shutdown();
    await this.tracerProvider.shutdown();
  }
}

const collectors: Collector[] = [];

beforeAll(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
});

afterAll(() => context.disable());

afterEach(async () => {
  diag.disable();
  for (const collector of collectors.splice(0)) await collector.end();
});
