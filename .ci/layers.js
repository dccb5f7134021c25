/**
 * The house, from the roof down: a file may import only files that stand lower in this list.
 * A name that ends in "/" is a folder: its files may import one another, in any direction that makes no circle.
 *
 * docs/design/architecture.md says what each part does.
 */
export const LAYERS = [
  "cli/",
  "testing/",
  // Other entry points, over the public names alone.
  "otel/",
  "prom-client/",
  "metrics/",
  "node-cron/",
  "nestjs/",
  "index.ts",
  "lock-table.ts",
  "dynamodb/",
  "table-locks.ts",
  "mutex.ts",
  "semaphore.ts",
  "shared-mutex.ts",
  "election.ts",
  "flights/",
  "section-calls.ts",
  "sets/",
  "operations/",
  "queues/",
  "kinds/",
  "holding/",
  "taking/",
  "lockable.ts",
  "lock.ts",
  "session/",
  "store.ts",
  "protocol/",
  "options/",
  "time/",
  // Leaves.
  "diagnostics.ts",
  "retraced.ts",
  "errors.ts",
  "lock-info.ts",
  "shown.ts",
  "table-report.ts",
  "untraced.ts",
];

/** Who else may import a file or folder, where "everything above it" is too many. */
export const ONLY_IMPORTED_BY = {
  // Of what stands in dynamodb/, the table in memory uses the parts that do not load the SDK's client.
  "dynamodb/": ["lock-table.ts", "testing/"],
};

/** What a file or folder may import, where "everything below it" is too much. */
export const IMPORTS_ONLY = {
  // A program over the public names, as anybody could write it, except that a run that could not begin is no attempt.
  "cli/": ["cli/", "index.ts", "holding/handle.ts"],
  // Pure: no promises, no clock, no table.
  "protocol/": ["protocol/", "time/clock.ts", "lock-info.ts"],
  // Types alone of the public names, and the checks of options: a program loads it before the AWS SDK, so that others can
  // instrument that.
  "otel/": ["otel/", "metrics/", "index.ts", "options/check.ts", "options/options-check.ts", "untraced.ts"],
  "prom-client/": ["prom-client/", "metrics/", "errors.ts", "options/check.ts", "options/options-check.ts"],
  "metrics/": ["metrics/", "index.ts", "errors.ts"],
  "node-cron/": ["index.ts", "errors.ts", "options/check.ts", "options/options-check.ts"],
  // The decorators take the options of a mutex and of its calls.
  "nestjs/": ["nestjs/", "index.ts", "errors.ts", "options/"],
};

/** Who may use a package: `run` at run time, `types` in `import type` as well. */
export const PACKAGES = [
  {
    name: /^@aws-sdk\/|^@smithy\//,
    run: ["dynamodb/"],
    types: ["lock.ts", "holding/", "mutex.ts", "lock-table.ts", "options/table.ts", "store.ts", "testing/"],
    because: "only lib/dynamodb/ knows AWS",
  },
  {
    name: /^@opentelemetry\//,
    run: ["otel/"],
    types: [],
    because: "only lib/otel/ knows OpenTelemetry, which most users do not have",
  },
  {
    name: /^prom-client$/,
    run: ["prom-client/"],
    types: [],
    because: "only lib/prom-client/ knows prom-client, which most users do not have",
  },
  {
    name: /^@nestjs\/|^reflect-metadata$/,
    run: ["nestjs/"],
    types: [],
    because: "only lib/nestjs/ knows NestJS, which most users do not have",
  },
];

/** What nobody but lib/time/clock.ts may touch: time enters through the Clock alone. */
export const TIME = {
  allowedIn: ["time/clock.ts"],
  modules: ["timers", "timers/promises", "perf_hooks", "node:timers", "node:timers/promises", "node:perf_hooks"],
  members: ["Date.now", "performance.now", "process.hrtime", "process.uptime", "AbortSignal.timeout"],
  globals: ["setTimeout", "setInterval", "setImmediate"],
};
