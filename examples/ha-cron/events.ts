import { writeSync } from "node:fs";
import type { LossReason } from "dynamutex";

/** What can happen to a host. `tick` is in epoch ms. */
export type HostEvent =
  | { readonly kind: "started" }
  /** It takes the lock, and its section begins; its lease lasts `remainingMs` unless it is renewed. */
  | { readonly kind: "began"; readonly tick: number; readonly remainingMs: number }
  /** It works in its section, in the belief that it holds the lock. */
  | { readonly kind: "worked"; readonly remainingMs: number }
  | { readonly kind: "finished" }
  | { readonly kind: "lost"; readonly reason: LossReason }
  /** Another host is at it. */
  | { readonly kind: "left"; readonly tick: number; readonly to: string }
  | { readonly kind: "failed"; readonly message: string }
  | { readonly kind: "stopped" }
  /** What the demo does to it. */
  | { readonly kind: "killed" }
  | { readonly kind: "frozen" }
  | { readonly kind: "woken" };

/** A line of the log. `at` is in ms on the machine's monotonic clock, which is one for all of its processes. */
export type LogEvent = HostEvent & { readonly at: number; readonly host: string };

/**
 * Writes one line to the log, which all processes have open for appending: the kernel puts their lines in order, and
 * a line is in the file when this returns, whatever happens to its writer next.
 */
export function writeEvent(file: number, host: string, event: HostEvent): void {
  writeSync(file, `${JSON.stringify({ at: now(), host, ...event })}\n`);
}

function now(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
