import { type Channel, channel } from "node:diagnostics_channel";
import type { LockInfo } from "./lock-info.js";

/**
 * The channels of `node:diagnostics_channel` on which locks report events, with their messages, for logs and metrics:
 * `diagnostics_channel.subscribe("dynamutex:lost", …)`. Every message is a plain object. An error thrown by a subscriber
 * does not affect the lock.
 *
 * A section is what runs from the moment at which a call gets its lock to the end of its `unlock()`. Each publishes
 * `acquired` once when it begins, `lost` at most once, and `released` once and last, whatever came of its `unlock()`. A set
 * of locks is a section for each of its names. Sections that pass a lease on share its `uuid`, one after the other.
 */
export interface Diagnostics {
  /** A section begins: a call has got its lock. */
  readonly "dynamutex:acquired": {
    readonly name: string;
    readonly uuid: string;
    readonly owner: string;
    /** How long the call waited, in ms. */
    readonly waitedMs: number;
    /** Whether the section before, in this process, passed its lease on, so that nothing was taken from the table. */
    readonly passedOn: boolean;
    /** The rule by which the lock was taken over from a holder that did not release it. */
    readonly takeover: "expired" | "unchanged" | undefined;
  };
  /** The lease of a lock was renewed: one write. It certainly lasts for `remainingMs` now. */
  readonly "dynamutex:renewed": { readonly name: string; readonly uuid: string; readonly remainingMs: number };
  /** A renewal failed. It is retried while the lease lasts. */
  readonly "dynamutex:renewal-failed": { readonly name: string; readonly uuid: string; readonly cause: unknown };
  /** A section has lost its lock. It may still run: `released` says when it has ended. */
  readonly "dynamutex:lost": {
    readonly name: string;
    readonly uuid: string;
    readonly reason: string;
    readonly cause: unknown;
  };
  /**
   * A section has ended. Its lease was passed on or released, had been lost, or stays until it ends by itself, which
   * `release-failed` has reported.
   */
  readonly "dynamutex:released": {
    readonly name: string;
    readonly uuid: string;
    /** How long the section ran until `unlock()` was called, in ms. Time in which the host was suspended may be missing. */
    readonly heldMs: number;
  };
  /**
   * A call has ended without the lock. `held`: a try (`tryLock()`, `tryRun()`, or `waitMs: 0`) found it held. `done`: its
   * tick was already granted. `timeout`: `waitMs` was over. A call that is aborted or fails publishes nothing: it rejects.
   */
  readonly "dynamutex:missed": {
    /** For a set, all of its names. */
    readonly name: string;
    readonly because: "held" | "done" | "timeout";
    /** Who is in the way, as last seen. */
    readonly holder: LockInfo | undefined;
    /** How long the call waited, in ms. */
    readonly waitedMs: number;
  };
  /**
   * A call has waited for a minute while one and the same section of its own process held the lock. The call may be inside
   * of that section, and then waits for ever; or the section does not end. Published once a call, with a process warning.
   * The call goes on waiting.
   */
  readonly "dynamutex:stuck": {
    readonly name: string;
    /** Of the section. */
    readonly uuid: string;
    /** When the section began, on the table's clock as estimated. */
    readonly since: Date | undefined;
    /** How long the section has run, in ms. */
    readonly heldMs: number;
    /** How long the call has waited, in ms, since it first found the lock held. */
    readonly waitedMs: number;
  };
  /** This process has unlocked a lock with `forceUnlock()`. With `now`, the lock was free at once. */
  readonly "dynamutex:forced": { readonly name: string; readonly uuid: string; readonly now: boolean };
  /** A release got no answer in time. The lock may stay taken until its lease ends. */
  readonly "dynamutex:release-failed": { readonly name: string; readonly uuid: string; readonly cause: unknown };
  /** A request of a waiting call failed. The call goes on waiting. */
  readonly "dynamutex:wait-failed": { readonly name: string; readonly cause: unknown };
  /**
   * A process has lost a place in the queue of a fair mutex, because it expired or was deleted. The callers that shared it go
   * on waiting with the next place of their process, or with a new one, at the end.
   */
  readonly "dynamutex:ticket-lost": {
    readonly name: string;
    readonly ticket: bigint;
    readonly uuid: string;
    readonly reason: "expired" | "deleted";
  };
  /**
   * Another host uses a semaphore with another number of permits. The larger number counts: each uses as many as it knows of.
   * Published once for each number that a process finds.
   */
  readonly "dynamutex:permits-differ": {
    readonly name: string;
    /** How many permits there are, as this process says. */
    readonly permits: number;
    /** How many there are, as the other says. */
    readonly others: number;
    /** The other. */
    readonly owner: string;
  };
  /**
   * What a candidate of `elect()` does, in this order: `campaigning` (it waits for the lock), `leading` (`lead` runs), `stopped`
   * (`lead` has ended, and the lock was released or lost), and `campaigning` again, or `over`, once and last. `failed`: it could
   * not even campaign.
   */
  readonly "dynamutex:election": {
    readonly name: string;
    readonly owner: string;
    readonly event: "campaigning" | "leading" | "stopped" | "failed" | "over";
    /** Of the lock that it leads with: in `leading` and `stopped`. */
    readonly uuid: string | undefined;
    /**
     * In `stopped`, the error of `lead` or the `LockLostError`, if there was one: not how `lead` ends when it is told to. In
     * `failed`, the error of the campaign. In `over`, what `done` rejects with, if it does.
     */
    readonly cause: unknown;
    /** How long until the next campaign, in ms. Undefined if there is none. */
    readonly pauseMs: number | undefined;
  };
  /**
   * `no-date`: replies tell no time, and the host's clock is used. `contradicted`: a reply contradicted the known time, and
   * either may be right. `restarted`: replies of a minute agreed with the new time, which replaces what was known.
   */
  readonly "dynamutex:clock": { readonly event: "no-date" | "contradicted" | "restarted"; readonly detail: string };
}

/** The channels of every lock. Callers check `hasSubscribers` before they build a message. */
export const ACQUIRED: Channel = channel("dynamutex:acquired");
export const LOST: Channel = channel("dynamutex:lost");
export const MISSED: Channel = channel("dynamutex:missed");
export const RELEASED: Channel = channel("dynamutex:released");
export const RENEWED: Channel = channel("dynamutex:renewed");

export function publish<Name extends keyof Diagnostics>(name: Name, message: Diagnostics[Name]): void {
  const target = channel(name);
  if (target.hasSubscribers) target.publish(message);
}
