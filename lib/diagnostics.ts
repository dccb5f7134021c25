import { type Channel, channel } from "node:diagnostics_channel";
import type { LossReason } from "./errors.js";
import type { LockInfo } from "./lock-info.js";

/**
 * The channels of `node:diagnostics_channel` on which locks report events, with their messages, for logs and metrics:
 * `diagnostics_channel.subscribe("dynamutex:lost", …)`. Every message is a plain object, built only for a channel that has
 * subscribers. An error thrown by a subscriber does not affect the lock; Node reports it as an uncaught exception.
 *
 * A call is one of `lock()`, `tryLock()`, `run()`, `tryRun()`, `singleFlight()`, `lockAll()` or `resume()`. Each publishes `asked`, and then
 * `acquired`, `missed` or `failed`: one of the three, once; of a set `acquired` for each of its locks. A call that is refused as it is made (an argument that cannot
 * work, a closed table, a signal that has aborted) publishes nothing. `call` is its number, which no other call of the
 * process has.
 *
 * A section is what runs from the moment at which a call gets its lock to the end of its `unlock()`. Each publishes
 * `acquired` once when it begins, `lost` at most once, and `released` once and last, whatever came of its `unlock()` or
 * `handOff()`, with the `call` that it belongs to. A set of locks is a section for each of its names: `call` and `name`
 * together tell sections apart. `uuid` does not: sections that pass a lease on share it, one after the other, and so do
 * readers of one process.
 */
export interface Diagnostics {
  /** A call asks for a lock. Published before the call returns its promise, so in the caller's own asynchronous context. */
  readonly "dynamutex:asked": {
    /** For a set, all of its names. */
    readonly name: string;
    readonly call: number;
    /** How many locks it asks for: more than one for a set. */
    readonly locks: number;
  };
  /** A section begins: a call has got its lock. */
  readonly "dynamutex:acquired": {
    readonly name: string;
    readonly uuid: string;
    readonly owner: string;
    readonly call: number;
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
  /**
   * Renewals cannot go together, and go one by one from now on: these credentials lack the permission
   * `dynamodb:PartiQLUpdate`, or the engine or the client has no `BatchExecuteStatement`. Published at most once a `LockTable`.
   * Nothing is wrong: a process that holds many locks needs more requests.
   */
  readonly "dynamutex:one-by-one": { readonly cause: unknown };
  /**
   * A section has learned that another host waits for its lock: `lock.wanted` has become true. Published at most once a section;
   * `lock.wanted` may become false again.
   */
  readonly "dynamutex:wanted": {
    readonly name: string;
    readonly uuid: string;
    readonly owner: string;
    readonly call: number;
  };
  /** A section has lost its lock. It may still run: `released` says when it has ended. */
  readonly "dynamutex:lost": {
    readonly name: string;
    readonly uuid: string;
    readonly call: number;
    readonly reason: LossReason;
    readonly cause: unknown;
  };
  /**
   * A section has ended. The next section of this process goes on with its lease, or the lease was released, handed off or lost, or
   * its release got no answer, which `release-failed` has reported.
   */
  readonly "dynamutex:released": {
    readonly name: string;
    readonly uuid: string;
    readonly call: number;
    /**
     * How long the section ran until `unlock()` or `handOff()` was called, in ms. Time in which the host was suspended may be
     * missing.
     */
    readonly heldMs: number;
  };
  /**
   * A call has ended without the lock. `held`: a try (`tryLock()`, `tryRun()`, or `waitMs: 0`) found it held. `done`: its
   * tick was already granted, or has succeeded. `gave-up`, `superseded`: as `tryRun()` with `untilSuccess` returns them. `timeout`:
   * `waitMs` was over. `shared`: a `singleFlight()` has the result of another.
   */
  readonly "dynamutex:missed": {
    /** For a set, all of its names. */
    readonly name: string;
    readonly call: number;
    readonly reason: "held" | "done" | "gave-up" | "superseded" | "timeout" | "shared";
    /** Who is in the way, as last seen. */
    readonly holder: LockInfo | undefined;
    /** How long the call waited, in ms. */
    readonly waitedMs: number;
  };
  /**
   * A call has rejected without the lock, and not because others have it. `aborted`: its `signal` has. `closed`: its
   * `LockTable` was. `error`: the table cannot be used, or the token of `resume()` does not count any more.
   */
  readonly "dynamutex:failed": {
    /** For a set, all of its names. */
    readonly name: string;
    readonly call: number;
    readonly reason: "aborted" | "closed" | "error";
    /** What the call rejects with. */
    readonly cause: unknown;
    /** How long the call waited, in ms. */
    readonly waitedMs: number;
  };
  /**
   * A call has waited for 5 s, behind whomever. It goes on waiting. Published once a call, and not for a candidate of `elect()`, which
   * waits by design, or for a try.
   */
  readonly "dynamutex:blocked": {
    /** For a set, all of its names. */
    readonly name: string;
    readonly call: number;
    /** Who is in the way, as last seen: of a set, the holder of one of its locks. `expires` is the end of the lease. */
    readonly holder: LockInfo;
    /** How long the call has waited, in ms, since it first found the lock held. */
    readonly waitedMs: number;
  };
  /**
   * A call has waited for 5 s while one and the same section of its own process held the lock. If that section awaits the call,
   * neither ends: a mutex is not re-entrant. Published once a call; the first of a process is a process warning as well. The call
   * goes on waiting.
   */
  readonly "dynamutex:stuck": {
    readonly name: string;
    /** The call that waits. */
    readonly call: number;
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
  /** A release got no answer in time. It goes on in the background, and the lock may stay taken until its lease ends. */
  readonly "dynamutex:release-failed": { readonly name: string; readonly uuid: string; readonly cause: unknown };
  /**
   * A request of a lock to the table has ended. The requests of `create()` and `check()` are not reported. A retry is a request of its
   * own, and so is the read that a refusal without a row makes necessary.
   */
  readonly "dynamutex:request": {
    readonly operation: RequestOperation;
    /** Of the lock; of a set that is taken, or of leases that are renewed together, the first; undefined for a scan. */
    readonly name: string | undefined;
    /** How long it took, in ms. */
    readonly ms: number;
    /**
     * `refused`: by its condition. It costs units all the same, which the reply does not tell: as many as the same write that
     * is not refused. `unanswered`: it never left, the network failed, or its time was over.
     */
    readonly outcome: "ok" | "refused" | "throttled" | "unanswered" | "failed";
    /** What came of one that is neither ok nor refused: the SDK's own error. */
    readonly cause: unknown;
    /** How often the client sent it: more than once where it retries by itself. 0 if it never left, or is a test's double. */
    readonly attempts: number;
    /** Read capacity units, as the reply tells; undefined where it does not. */
    readonly readUnits: number | undefined;
    /** Write capacity units, as the reply tells; undefined where it does not. */
    readonly writeUnits: number | undefined;
  };
  /**
   * The value of a `singleFlight()` went to its own caller alone: `cause` says what of it cannot be stored, or why it was not. Others
   * run the function themselves.
   */
  readonly "dynamutex:not-shared": { readonly name: string; readonly uuid: string; readonly cause: unknown };
  /**
   * A run with `untilSuccess` has ended well, and the table has not confirmed that its success was recorded. The call rejects.
   */
  readonly "dynamutex:not-recorded": {
    readonly name: string;
    readonly uuid: string;
    readonly tick: number;
    readonly attempt: number;
    /** Whether the success is known not to be recorded: the next host that asks runs the tick again. If false, it may do so. */
    readonly isKnown: boolean;
    readonly cause: unknown;
  };
  /** A request of a waiting call failed. The call goes on waiting. */
  readonly "dynamutex:wait-failed": { readonly name: string; readonly cause: unknown };
  /**
   * A process has lost an entry in the queue of a fair mutex, because it expired or was deleted. The callers that shared it go
   * on waiting with the next entry of their process, or with a new one at the end of the queue.
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
     * In `stopped`, the error of `lead` or the `LockLostError`, if there was one: not how `lead` ends after `resign()`, `signal` or a close. In
     * `failed`, the error of the campaign. In `over`, what `done` rejects with, if it does.
     */
    readonly cause: unknown;
    /** How long until the next campaign, in ms. Undefined if there is none. */
    readonly pauseMs: number | undefined;
  };
  /**
   * `no-date`: replies have no usable `Date` header, and the host's clock is used. `contradicted`: a reply contradicted the known time, and
   * either may be right. `restarted`: replies of a minute agreed with the new time, which replaces what was known.
   */
  readonly "dynamutex:clock": { readonly event: "no-date" | "contradicted" | "restarted"; readonly detail: string };
}

/**
 * What a request to the table is for. `take`: a lock's row, a permit, a reader's row, or a queue entry. `take-all`: the
 * rows of a set. `renew`: a lease. `renew-all`: several leases, each with an outcome of its own, which is not reported here: the
 * request is `ok` if the table has answered it. `reissue`: a lease's new uuid between two sections. `transfer`: a hand-off, at either end.
 * `release`: also by force. `remove`: the expired row of a waiter or a reader. `mark`: sets the waiting flag
 * on a row that another host holds. `draw`: the number of a queue entry. `put-result`: the result of `singleFlight()`. `check`: a guard by itself. `transact`: the caller's `transactWrite()`.
 */
export type RequestOperation =
  | (
      | "take"
      | "take-all"
      | "renew"
      | "renew-all"
      | "reissue"
      | "transfer"
      | "release"
      | "record"
      | "remove"
      | "mark"
      | "draw"
      | "check"
      | "put-result"
    )
  | ("read" | "query" | "scan" | "transact");

const NAMES =
  "asked acquired renewed renewal-failed one-by-one wanted lost released missed failed blocked stuck forced release-failed request " +
  "not-shared not-recorded wait-failed ticket-lost permits-differ election clock";

/**
 * The channels. They are held here for as long as the library is loaded: Node forgets a channel that nobody holds, and one that
 * was collected a moment ago takes its successor with it, whose subscribers then hear nothing (nodejs/node#59910).
 */
export const CHANNELS = Object.fromEntries(
  NAMES.split(" ").map((name) => [`dynamutex:${name}`, channel(`dynamutex:${name}`)]),
) as { readonly [Name in keyof Diagnostics]: Channel };

export function publish<Name extends keyof Diagnostics>(name: Name, message: Diagnostics[Name]): void {
  CHANNELS[name].publish(message);
}
