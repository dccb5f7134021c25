import { subscribe } from "node:diagnostics_channel";
import { type Diagnostics, LockTable } from "dynamutex";
import { Counter, Gauge, Histogram, register } from "prom-client";

const on = <Name extends keyof Diagnostics>(name: Name, hear: (message: Diagnostics[Name]) => void): void =>
  subscribe(name, (message) => hear(message as Diagnostics[Name]));
const counter = (name: string, ...labelNames: string[]) => new Counter({ name, help: name, labelNames });
const gauge = (name: string) => new Gauge({ name, help: name });
const histogram = (name: string, buckets: number[], ...labelNames: string[]) =>
  new Histogram({ name, help: name, buckets, labelNames });

const calls = counter("dynamutex_calls_total");
const waiting = gauge("dynamutex_waiting");
const waits = histogram("dynamutex_wait_duration_seconds", [0.01, 0.1, 0.5, 1, 5, 30, 60, 300], "dynamutex_outcome");
const misses = counter("dynamutex_misses_total", "dynamutex_because");
const failures = counter("dynamutex_failures_total", "dynamutex_because");
const held = gauge("dynamutex_held");
const holds = histogram("dynamutex_hold_duration_seconds", [0.01, 0.1, 1, 10, 60, 300, 3_600], "dynamutex_outcome");
const losses = counter("dynamutex_losses_total", "dynamutex_reason");
const takeovers = counter("dynamutex_takeovers_total", "dynamutex_takeover");
const wanted = counter("dynamutex_wanted_total");
const warnings = counter("dynamutex_warnings_total", "dynamutex_event");
const requests = counter("dynamutex_requests_total", "dynamutex_operation", "dynamutex_outcome");
const requestTimes = histogram("dynamutex_request_duration_seconds", [0.005, 0.02, 0.1, 0.5, 2], "dynamutex_operation");
const units = counter("dynamutex_capacity_units_total", "dynamutex_operation", "dynamutex_capacity_kind");

// What an alarm looks at is there before the first of its kind.
for (const reason of ["expired", "stolen", "deleted", "forced", "max-hold", "closed"])
  losses.inc({ dynamutex_reason: reason }, 0);
for (const because of ["aborted", "closed", "error"]) failures.inc({ dynamutex_because: because }, 0);

const asked = new Set<number>();
const sections = new Map<string, "held" | "lost">();
const ended = (call: number, waitedMs: number, dynamutex_outcome: string): void => {
  // A set is one call, and acquires each of its locks.
  if (!asked.delete(call)) return;
  waiting.dec();
  waits.observe({ dynamutex_outcome }, waitedMs / 1_000);
};

on("dynamutex:asked", ({ call }) => {
  asked.add(call);
  calls.inc();
  waiting.inc();
});
on("dynamutex:acquired", ({ call, name, waitedMs, takeover }) => {
  ended(call, waitedMs, "acquired");
  sections.set(`${call}/${name}`, "held");
  held.inc();
  if (takeover !== undefined) takeovers.inc({ dynamutex_takeover: takeover });
});
on("dynamutex:missed", ({ call, because, waitedMs }) => {
  ended(call, waitedMs, "missed");
  misses.inc({ dynamutex_because: because });
});
on("dynamutex:failed", ({ call, because, waitedMs }) => {
  ended(call, waitedMs, "failed");
  failures.inc({ dynamutex_because: because });
});
on("dynamutex:lost", ({ call, name, reason }) => {
  sections.set(`${call}/${name}`, "lost");
  held.dec();
  losses.inc({ dynamutex_reason: reason });
});
on("dynamutex:released", ({ call, name, heldMs }) => {
  const isHeld = sections.get(`${call}/${name}`) === "held";
  sections.delete(`${call}/${name}`);
  if (isHeld) held.dec();
  holds.observe({ dynamutex_outcome: isHeld ? "released" : "lost" }, heldMs / 1_000);
});
on("dynamutex:request", ({ operation: dynamutex_operation, outcome, ms, readUnits, writeUnits }) => {
  requests.inc({ dynamutex_operation, dynamutex_outcome: outcome });
  requestTimes.observe({ dynamutex_operation }, ms / 1_000);
  units.inc({ dynamutex_operation, dynamutex_capacity_kind: "read" }, readUnits ?? 0);
  units.inc({ dynamutex_operation, dynamutex_capacity_kind: "write" }, writeUnits ?? 0);
});
on("dynamutex:wanted", () => wanted.inc());
for (const event of [
  "stuck",
  "renewal-failed",
  "release-failed",
  "wait-failed",
  "ticket-lost",
  "permits-differ",
] as const) {
  warnings.inc({ dynamutex_event: event }, 0);
  on(`dynamutex:${event}`, () => warnings.inc({ dynamutex_event: event }));
}

// What your program does.
{
  await using locks = new LockTable({ tableName: "locks" });
  await locks.mutex("nightly-report").run(() => undefined);
}
// What GET /metrics answers.
console.log(await register.metrics());
