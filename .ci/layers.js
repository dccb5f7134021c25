/**
 * The house, from the roof down: a file may import only files that stand lower in this list.
 * A name that ends in "/" is a folder: its files may import one another, in any direction that makes no circle.
 *
 * A new file in lib/ needs a line here; put it above everything that it imports.
 */
export const LAYERS = [
  "index.ts",
  "cli/",
  "election.ts",
  "lock-table.ts",
  "mutex.ts",
  "force-unlock.ts",
  "inspect.ts",
  "listing.ts",
  "sections.ts",
  "lock-set.ts",
  "held-lock.ts",
  "guarded-write.ts",
  "lease.ts",
  "hold.ts",
  "held-row.ts",
  "loss-signal.ts",
  "fair.ts",
  "acquire-all.ts",
  "acquire.ts",
  "claim.ts",
  "tick.ts",
  "ticket-queue.ts",
  "sweeper.ts",
  "ticket.ts",
  "wait.ts",
  "withdraw.ts",
  "release.ts",
  "look-out.ts",
  "local-queue.ts",
  "asking.ts",
  "grant.ts",
  "host.ts",
  "lanes.ts",
  "observations.ts",
  "stamp.ts",
  "dynamodb/",
  "row.ts",
  "ticket-store.ts",
  "store.ts",
  // Leaves.
  "abort-listening.ts",
  "lock.ts",
  "retry.ts",
  "diagnostics.ts",
  "operation-options.ts",
  "lock-all-options.ts",
  "table-options.ts",
  "mutex-options.ts",
  "mutex-schema.ts",
  "call-options.ts",
  "checking.ts",
  "clock.ts",
  "errors.ts",
  "lock-info.ts",
  "guard.ts",
  "table-report.ts",
];

/** Who else may import a file or folder, where "everything above it" is too many. */
export const ONLY_IMPORTED_BY = {
  "dynamodb/": ["index.ts", "lock-table.ts"],
};

/** What a file or folder may import, where "everything below it" is too much. */
export const IMPORTS_ONLY = {
  "cli/": ["index.ts"],
  "election.ts": [
    "mutex.ts",
    "lock.ts",
    "diagnostics.ts",
    "call-options.ts",
    "mutex-options.ts",
    "clock.ts",
    "errors.ts",
  ],
};

/** Who may use a package: `run` at run time, `types` in `import type` as well. */
export const PACKAGES = [
  {
    name: /^@aws-sdk\/|^@smithy\//,
    run: ["dynamodb/"],
    types: ["lock.ts", "held-lock.ts", "mutex.ts", "lock-table.ts", "table-options.ts", "guarded-write.ts", "store.ts"],
    because: "only lib/dynamodb/ knows AWS",
  },
];

/** What nobody but lib/clock.ts may touch: time enters through the Clock alone. */
export const TIME = {
  allowedIn: ["clock.ts"],
  modules: ["timers", "timers/promises", "perf_hooks", "node:timers", "node:timers/promises", "node:perf_hooks"],
  members: ["Date.now", "performance.now", "process.hrtime", "process.uptime", "AbortSignal.timeout"],
  globals: ["setTimeout", "setInterval", "setImmediate"],
};
