import { type Channel, channel } from "node:diagnostics_channel";

/**
 * The channels of `node:diagnostics_channel` on which locks report events, with their messages, for logs and metrics:
 * `diagnostics_channel.subscribe("dynamutex:lost", …)`. Every message is a plain object. An error thrown by a subscriber
 * does not affect the lock.
 */
export interface Diagnostics {
  /** A lock was taken. If it was taken over from a holder that did not release it, `takeover` is the rule that allowed it. */
  readonly "dynamutex:acquired": {
    readonly name: string;
    readonly uuid: string;
    readonly owner: string;
    readonly waitedMs: number;
    readonly takeover: "expired" | "unchanged" | undefined;
  };
  /** A renewal failed. It is retried while the lease lasts. */
  readonly "dynamutex:renewal-failed": { readonly name: string; readonly uuid: string; readonly cause: unknown };
  readonly "dynamutex:lost": {
    readonly name: string;
    readonly uuid: string;
    readonly reason: string;
    readonly cause: unknown;
  };
  readonly "dynamutex:released": { readonly name: string; readonly uuid: string };
  /** This process has unlocked a lock with `forceUnlock()`. With `now`, the lock was free at once. */
  readonly "dynamutex:forced": { readonly name: string; readonly uuid: string; readonly now: boolean };
  /** A release got no answer in time. The lock may stay taken until its lease ends. */
  readonly "dynamutex:release-failed": { readonly name: string; readonly uuid: string; readonly cause: unknown };
  /** A request of a waiting call failed. The call goes on waiting. */
  readonly "dynamutex:wait-failed": { readonly name: string; readonly cause: unknown };
  /**
   * A waiter of a fair mutex has lost its place in the queue, because its ticket expired or was deleted. It goes on
   * waiting with a new ticket, at the end.
   */
  readonly "dynamutex:ticket-lost": {
    readonly name: string;
    readonly ticket: bigint;
    readonly uuid: string;
    readonly reason: "expired" | "deleted";
  };
  /**
   * `no-date`: replies tell no time, and the host's clock is used. `contradicted`: a reply contradicted the known time, and
   * either may be right. `restarted`: replies of a minute agreed with the new time, which replaces what was known.
   */
  readonly "dynamutex:clock": { readonly event: "no-date" | "contradicted" | "restarted"; readonly detail: string };
}

/** The channels of every lock. Callers check `hasSubscribers` before they build a message. */
export const ACQUIRED: Channel = channel("dynamutex:acquired");
export const RELEASED: Channel = channel("dynamutex:released");

export function publish<Name extends keyof Diagnostics>(name: Name, message: Diagnostics[Name]): void {
  const target = channel(name);
  if (target.hasSubscribers) target.publish(message);
}
