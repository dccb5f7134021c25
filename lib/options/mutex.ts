import * as z from "zod/mini";
import { LockConfigError } from "../errors.js";
import {
  duration,
  durationOrForever,
  exactly,
  flag,
  notInSeconds,
  objectOf,
  optionsCheck,
  type Shape,
} from "./check.js";
import type { OptionsCheck } from "./options-check.js";

/** Options of a mutex. Durations are whole milliseconds. */
export interface MutexOptions {
  /** The length of a lease. Default 30 000, from 100 to 2 147 483 647. */
  readonly ttlMs?: number | undefined;
  /** How often a held lock is renewed. Default `ttlMs / 2`; less than `ttlMs - safetyMarginMs`. */
  readonly renewEveryMs?: number | undefined;
  /**
   * How long before the end of its lease a holder counts the lock as lost. Default `ttlMs / 10`, at least `ttlMs / 500`:
   * it has to cover the difference between the clock rates of two hosts.
   */
  readonly safetyMarginMs?: number | undefined;
  /**
   * Whether a held lock renews itself. Default true. With `false` it lasts one lease, unless `extend()` renews it: for
   * sections that are shorter than a lease. docs/guides/lambda.md says when that fits in Lambda.
   */
  readonly autoRenew?: boolean | undefined;
  /** The longest time that a lock is renewed for. Default Infinity, at least 1 000. The lock is then lost with the reason `max-hold`. */
  readonly maxHoldMs?: number | undefined;
  /** How long `lock()` and `run()` wait for the lock. Default Infinity; 0 does not wait. */
  readonly waitMs?: number | undefined;
  /** The pause between two reads of a lock that is held. It grows from `minMs` to `maxMs`. Default 50 to 400. */
  readonly poll?: { readonly minMs?: number | undefined; readonly maxMs?: number | undefined } | undefined;
  /**
   * How long one process may keep a lock for its own callers, one after the other, while another host waits for it; and
   * after how long a waiter says so. No section is cut short. Default 500, or `ttlMs` if that is less.
   */
  readonly handOverMs?: number | undefined;
  /**
   * When `unlock()` and `handOff()` are answered at the latest, counted from the call. Default 5 000. A release that has got no answer
   * by then goes on in the background until the lease ends.
   */
  readonly releaseWithinMs?: number | undefined;
  /**
   * Whether all sections of all hosts get the lock in the order in which they asked. Default false. It costs more
   * requests, and needs a table with a sort key. Set it on all users of a name: a mutex that is not fair still excludes the
   * others, but overtakes them in the queue.
   */
  readonly fair?: boolean | undefined;
  /**
   * When a lock may be taken over from a holder that does not release it. `expired`, the default: its `expires` has
   * passed on the table's clock, or its row has not changed for the whole lease on this host's stopwatch. `unchanged`:
   * only the latter, which relies on no clock.
   */
  readonly takeover?: "expired" | "unchanged" | undefined;
  /**
   * Whether every lock carries a fencing token, a number that grows with each lock. Default false. The lock's row then
   * stays after the release. It can be set on a mutex only, not on a table, because the type of the locks depends on it.
   */
  readonly fencing?: boolean | undefined;
}

/** Options with nothing left out. */
type Complete<Value> = Value extends object
  ? { readonly [Name in keyof Value]-?: Complete<Exclude<Value[Name], undefined>> }
  : Value;

/** A mutex's options with every default filled in, and checked against one another. */
export type MutexSettings = Complete<MutexOptions> & {
  /** Of a semaphore with a rate: for how long a permit is not handed out again. 0 for any other lock. */
  readonly perMs: number;
};

/** @internal */
export const mutexShape = (): Shape<Omit<MutexOptions, "fencing">> =>
  exactly<Omit<MutexOptions, "fencing">>()({
    ttlMs: z.optional(duration(100)),
    renewEveryMs: z.optional(duration(1)),
    safetyMarginMs: z.optional(duration(1)),
    autoRenew: flag(),
    maxHoldMs: z.optional(durationOrForever(1_000).check(notInSeconds())),
    waitMs: z.optional(durationOrForever(0)),
    poll: z.optional(
      objectOf(
        exactly<NonNullable<MutexOptions["poll"]>>()({
          minMs: z.optional(duration(1)),
          maxMs: z.optional(duration(1)),
        }),
      ),
    ),
    handOverMs: z.optional(duration(1)),
    releaseWithinMs: z.optional(duration(1)),
    fair: flag(),
    takeover: z.optional(z.literal(["expired", "unchanged"], 'must be "expired" or "unchanged"')),
  });

const checkMutex: OptionsCheck<MutexOptions> = optionsCheck(["locks.mutex()"], () => ({
  ...mutexShape(),
  fencing: flag(),
}));

/**
 * A mutex's options, completed by its table's, which have been checked, and the defaults.
 * @throws {@link LockConfigError}
 */
export function mutexSettings(options: MutexOptions, defaults: MutexOptions = {}): MutexSettings {
  checkMutex(options);
  const all = over(defaults, options);
  const ttlMs = all.ttlMs ?? 30_000;
  const settings: MutexSettings = {
    ttlMs,
    renewEveryMs: all.renewEveryMs ?? Math.floor(ttlMs / 2),
    safetyMarginMs: all.safetyMarginMs ?? Math.ceil(ttlMs / 10),
    autoRenew: all.autoRenew ?? true,
    maxHoldMs: all.maxHoldMs ?? Number.POSITIVE_INFINITY,
    waitMs: all.waitMs ?? Number.POSITIVE_INFINITY,
    poll: pollOf(all),
    handOverMs: all.handOverMs ?? Math.min(ttlMs, 500),
    releaseWithinMs: all.releaseWithinMs ?? 5_000,
    fair: all.fair ?? false,
    takeover: all.takeover ?? "expired",
    fencing: all.fencing ?? false,
    perMs: 0,
  };
  checkLease(settings);
  return settings;
}

/** Options over defaults, both checked: one that is undefined is not given. */
export function over<Defaults extends MutexOptions>(defaults: Defaults, options: MutexOptions): Defaults {
  // A margin and a period fit the ttlMs that they were given with, and need not fit another.
  const own = options.ttlMs === undefined ? {} : { renewEveryMs: undefined, safetyMarginMs: undefined };
  const poll = { ...defaults.poll, ...given(options.poll) };
  return { ...defaults, ...own, ...given(options), poll };
}

function given<T extends object>(options: T | undefined): Partial<T> {
  return Object.fromEntries(Object.entries(options ?? {}).filter(([, value]) => value !== undefined)) as Partial<T>;
}

function pollOf({ poll }: MutexOptions): MutexSettings["poll"] {
  const minMs = poll?.minMs ?? Math.min(50, poll?.maxMs ?? 50);
  const maxMs = poll?.maxMs ?? Math.max(400, minMs);
  if (minMs > maxMs) throw new LockConfigError("poll.minMs", minMs, `must be at most poll.maxMs, which is ${maxMs} ms`);
  return { minMs, maxMs };
}

/** @throws {@link LockConfigError} if the durations of a lease do not fit one another. */
function checkLease({ ttlMs, safetyMarginMs, renewEveryMs }: MutexSettings): void {
  const leastMs = Math.ceil(ttlMs / 500);
  const mostMs = ttlMs - safetyMarginMs;
  if (safetyMarginMs < leastMs) {
    const remedy = `must be at least ${leastMs} ms, a 500th of ttlMs, or clocks that run at different rates could let two in`;
    throw new LockConfigError("safetyMarginMs", safetyMarginMs, remedy);
  }
  if (safetyMarginMs >= ttlMs) {
    throw new LockConfigError("safetyMarginMs", safetyMarginMs, `must be less than ttlMs, which is ${ttlMs} ms`);
  }
  if (renewEveryMs >= mostMs) {
    const remedy = `must be less than ttlMs - safetyMarginMs, which is ${mostMs} ms, or every lease would end first`;
    throw new LockConfigError("renewEveryMs", renewEveryMs, remedy);
  }
}
