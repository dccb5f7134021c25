import { type Channel, channel } from "node:diagnostics_channel";

/**
 * What happens to locks, for logs and metrics: `diagnostics_channel.subscribe("dynamutex:lost", …)`.
 * Every message is a plain object that names the lock. A subscriber that throws does not disturb the lock.
 */
export interface Diagnostics {
  /** A lock was taken; `takeover` says by which rule from a holder that was gone. */
  readonly "dynamutex:acquired": {
    readonly name: string;
    readonly uuid: string;
    readonly owner: string;
    readonly waitedMs: number;
    readonly takeover: "expired" | "unchanged" | undefined;
  };
  /** A renewal attempt failed; it is tried again while the lease lasts. */
  readonly "dynamutex:renewal-failed": { readonly name: string; readonly uuid: string; readonly cause: unknown };
  readonly "dynamutex:lost": {
    readonly name: string;
    readonly uuid: string;
    readonly reason: string;
    readonly cause: unknown;
  };
  readonly "dynamutex:released": { readonly name: string; readonly uuid: string };
  /** This process has taken another's lock away with `forceUnlock()`; with `now`, the lock was free at once. */
  readonly "dynamutex:forced": { readonly name: string; readonly uuid: string; readonly now: boolean };
  /** A release got no answer in time: the row stays until its lease ends by itself. */
  readonly "dynamutex:release-failed": { readonly name: string; readonly uuid: string; readonly cause: unknown };
  /** A request of a wait failed; the wait goes on. */
  readonly "dynamutex:wait-failed": { readonly name: string; readonly cause: unknown };
  /**
   * A waiter of a fair mutex has lost its place in the queue, because its lease ended or its row is gone; it goes on
   * waiting with a new ticket, at the end.
   */
  readonly "dynamutex:ticket-lost": {
    readonly name: string;
    readonly ticket: bigint;
    readonly uuid: string;
    readonly reason: "expired" | "deleted";
  };
  /** The clock lost what it relied on, or started again. */
  readonly "dynamutex:clock": { readonly event: "no-date" | "restarted"; readonly detail: string };
}

const NAMES: readonly (keyof Diagnostics)[] = [
  "dynamutex:acquired",
  "dynamutex:renewal-failed",
  "dynamutex:lost",
  "dynamutex:released",
  "dynamutex:forced",
  "dynamutex:release-failed",
  "dynamutex:wait-failed",
  "dynamutex:ticket-lost",
  "dynamutex:clock",
];

/** Told of for every lock: nothing is put together where nobody listens. */
export const ACQUIRED: Channel = channel("dynamutex:acquired");
export const RELEASED: Channel = channel("dynamutex:released");

const channels = new Map(NAMES.map((name) => [name, channel(name)]));

export function publish<Name extends keyof Diagnostics>(name: Name, message: Diagnostics[Name]): void {
  const target = channels.get(name);
  if (target?.hasSubscribers) target.publish(message);
}
