import { z } from "zod/v3";
import { check, duration, flag, lazily, lockData, signal } from "./check.js";

/** What `forceUnlock()` may add. */
export interface ForceUnlockOptions {
  /**
   * Whether the lock is free at once, while its holder may still believe that it holds it. Default false: nobody enters
   * before the holder's lease ends.
   */
  readonly now?: boolean | undefined;
}

/** Which locks `list()` gives. */
export interface ListOptions {
  /** What their names begin with, less the table's `keyPrefix`. Default: anything. */
  readonly prefix?: string | undefined;
  /** Whether to give the locks as well that are free, and whose rows stay for what they remember. Default false. */
  readonly kept?: boolean | undefined;
  /** Ends the listing: the iteration throws its reason. */
  readonly signal?: AbortSignal | undefined;
}

/** How long `check()` may take. */
export interface CheckOptions {
  /** Ends the check: it rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
  /** How long the table may take to answer, in ms. Default 30 000. */
  readonly timeoutMs?: number | undefined;
}

const A_UUID = "must be the uuid of the acquisition to end, as inspect() shows it";
const uuidSchema = lazily(() => z.string({ required_error: A_UUID, invalid_type_error: A_UUID }).min(1, A_UUID));
const forceUnlockSchema = lazily(() => z.object({ now: flag() }).strict());
const listSchema = lazily(() =>
  z
    .object({ prefix: z.string({ invalid_type_error: "must be a string" }).optional(), kept: flag(), signal: signal() })
    .strict(),
);
const checkSchema = lazily(() => z.object({ signal: signal(), timeoutMs: duration(1).optional() }).strict());

/** @throws {@link LockConfigError} */
export function forceUnlockOptions(uuid: string, options: ForceUnlockOptions): { readonly now: boolean } {
  check(uuidSchema, uuid, "uuid");
  check(forceUnlockSchema, options, "options");
  return { now: options.now ?? false };
}

/** @throws {@link LockConfigError} */
export function listOptions(options: ListOptions): ListOptions {
  check(listSchema, options, "options");
  return options;
}

/** @throws {@link LockConfigError} */
export function checkOptions(options: CheckOptions): CheckOptions {
  check(checkSchema, options, "options");
  return options;
}

/** What there is no data without. @throws {@link LockConfigError} */
export function checkData(data: unknown): void {
  check(lockData, data, "data");
}
