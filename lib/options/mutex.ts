import { LockConfigError } from "../errors.js";
import { check, flag, lazily } from "./check.js";
import { mutexSchemaWith } from "./mutex-schema.js";

/** How a mutex behaves. Durations are whole milliseconds. */
export interface MutexOptions {
  /** A lease's length. Default 30 000, from 100 to 2 147 483 647. */
  readonly ttlMs?: number | undefined;
  /** How often a held lock is renewed. Default `ttlMs / 2`; less than the lease less its margin. */
  readonly renewEveryMs?: number | undefined;
  /**
   * How long before the end of a lease its holder gives up. Default `ttlMs / 10`, at least `ttlMs / 500`: it has to
   * cover what two hosts' clock rates may differ by.
   */
  readonly safetyMarginMs?: number | undefined;
  /**
   * Whether a held lock renews itself. Default true; `false` suits runtimes that freeze between requests, such as
   * Lambda: then the lock lasts one lease, and `extend()` is the way to more.
   */
  readonly autoRenew?: boolean | undefined;
  /** The longest that a lock is kept alive. Default Infinity. Then it is lost with the reason `max-hold`. */
  readonly maxHoldMs?: number | undefined;
  /** How long `lock()` and `run()` wait for the lock. Default Infinity; 0 does not wait. */
  readonly waitMs?: number | undefined;
  /** The pause between two looks at a held lock, which grows from one to the other. Default 50 to 400. */
  readonly poll?: { readonly minMs?: number | undefined; readonly maxMs?: number | undefined } | undefined;
  /**
   * How long one process may pass a lock among its own callers before it looks whether another host waits for it.
   * Default 500, or `ttlMs` if that is less.
   */
  readonly handOverMs?: number | undefined;
  /** How long a release is tried. Default 5 000, and never longer than the lease has left. */
  readonly releaseWithinMs?: number | undefined;
  /**
   * Whether the lock is given in the order of asking, to all sections of all hosts: default false. It costs more
   * requests and needs a table with a sort key; sections of one process then pass nothing on. All users of a name should
   * say the same: a mutex that is not fair still excludes the others, and overtakes them.
   */
  readonly fair?: boolean | undefined;
  /**
   * What proves that a holder is gone. `expired`, the default: its `expires` has passed on the table's clock, or its
   * row has not changed for its whole lease on our stopwatch. `unchanged`: the latter alone, which trusts no clock.
   */
  readonly takeover?: "expired" | "unchanged" | undefined;
  /**
   * Whether every lock carries a fencing token, a number that grows with each of them. Default false. The lock's row then
   * outlives its release. An option of a mutex alone, because the type of its locks depends on it.
   */
  readonly fencing?: boolean | undefined;
}

/** A mutex's options, complete and consistent. */
export interface MutexSettings {
  readonly ttlMs: number;
  readonly renewEveryMs: number;
  readonly safetyMarginMs: number;
  readonly autoRenew: boolean;
  readonly maxHoldMs: number;
  readonly waitMs: number;
  readonly poll: { readonly minMs: number; readonly maxMs: number };
  readonly handOverMs: number;
  readonly releaseWithinMs: number;
  readonly fair: boolean;
  readonly takeover: "expired" | "unchanged";
  readonly fencing: boolean;
}

const mutexSchema = lazily(() => mutexSchemaWith({ fencing: flag() }));

/** A mutex's options over its table's. @throws {@link LockConfigError} naming the option that cannot work. */
export function mutexSettings(options: MutexOptions, defaults: MutexOptions = {}): MutexSettings {
  check(mutexSchema, options, "options");
  const ttlMs = options.ttlMs ?? defaults.ttlMs ?? 30_000;
  // A margin or a period that the table gave for its own ttl does not fit a mutex with another.
  const inherited = options.ttlMs === undefined ? defaults : {};
  const settings: MutexSettings = {
    ttlMs,
    renewEveryMs: options.renewEveryMs ?? inherited.renewEveryMs ?? Math.floor(ttlMs / 2),
    safetyMarginMs: options.safetyMarginMs ?? inherited.safetyMarginMs ?? Math.ceil(ttlMs / 10),
    autoRenew: options.autoRenew ?? defaults.autoRenew ?? true,
    maxHoldMs: options.maxHoldMs ?? defaults.maxHoldMs ?? Number.POSITIVE_INFINITY,
    waitMs: options.waitMs ?? defaults.waitMs ?? Number.POSITIVE_INFINITY,
    poll: pollOf(options, defaults),
    handOverMs: options.handOverMs ?? defaults.handOverMs ?? Math.min(ttlMs, 500),
    releaseWithinMs: options.releaseWithinMs ?? defaults.releaseWithinMs ?? 5_000,
    fair: options.fair ?? defaults.fair ?? false,
    takeover: options.takeover ?? defaults.takeover ?? "expired",
    fencing: options.fencing ?? false,
  };
  checkLease(settings);
  return settings;
}

function pollOf(options: MutexOptions, defaults: MutexOptions): MutexSettings["poll"] {
  const minMs = options.poll?.minMs ?? defaults.poll?.minMs ?? Math.min(50, options.poll?.maxMs ?? 50);
  const maxMs = options.poll?.maxMs ?? defaults.poll?.maxMs ?? Math.max(400, minMs);
  if (minMs > maxMs) throw new LockConfigError("poll.minMs", minMs, `must be at most poll.maxMs, which is ${maxMs} ms`);
  return { minMs, maxMs };
}

/** The rules that tie a lease's durations together. */
function checkLease({ ttlMs, safetyMarginMs, renewEveryMs }: MutexSettings): void {
  const least = Math.ceil(ttlMs / 500);
  if (safetyMarginMs < least) {
    throw new LockConfigError(
      "safetyMarginMs",
      safetyMarginMs,
      `must be at least ${least} ms, a 500th of ttlMs, or clocks that run at different rates could let two in`,
    );
  }
  if (safetyMarginMs >= ttlMs) {
    throw new LockConfigError("safetyMarginMs", safetyMarginMs, `must be less than ttlMs, which is ${ttlMs} ms`);
  }
  if (renewEveryMs >= ttlMs - safetyMarginMs) {
    throw new LockConfigError(
      "renewEveryMs",
      renewEveryMs,
      `must be less than ttlMs - safetyMarginMs, which is ${ttlMs - safetyMarginMs} ms, or every lease would end first`,
    );
  }
}
