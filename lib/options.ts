import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { z } from "zod/v3";
import type { Clock } from "./clock.js";
import { MAX_TIMER_MS } from "./clock.js";
import { LockConfigError } from "./errors.js";
import type { LockData } from "./lock-info.js";

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

/** The names of the key attributes, so that locks can live in an application's own table. */
export interface KeyOptions {
  /** The partition key, a string. Default `name`. */
  readonly partition?: string | undefined;
  /** The sort key, a string. Default `sort`; `null` for a table without one. */
  readonly sort?: string | null | undefined;
  /** The attribute that DynamoDB's TTL feature reads, in epoch seconds. Default `purge`. */
  readonly ttl?: string | undefined;
}

/** Where the locks live, and how its mutexes behave unless they say otherwise. */
export interface LockTableOptions extends Omit<MutexOptions, "fencing"> {
  readonly tableName: string;
  /**
   * The client to use. Default: one made from the environment, with bounded connection and request times, which
   * `close()` destroys; a client of your own stays open.
   */
  readonly client?: DynamoDBClient | undefined;
  readonly keys?: KeyOptions | undefined;
  /** Put before every lock's name in the partition key. Default: none. */
  readonly keyPrefix?: string | undefined;
  /** Who holds, for people. Default: host name and process id. */
  readonly owner?: string | undefined;
  /** The source of time. Default: `tableClock()`, the table's own. All hosts of a table use one kind. */
  readonly clock?: Clock | undefined;
}

/** What one `lock()` or `run()` may add. */
export interface LockOptions {
  /** Ends the waiting: the call rejects with its reason. Given to `run()`, it aborts `lock.signal` as well. */
  readonly signal?: AbortSignal | undefined;
  /** How long to wait for the lock, in ms. Default: the mutex's `waitMs`. */
  readonly waitMs?: number | undefined;
  /** Your own attributes on the row while you hold it: whatever DynamoDB can store in a map. */
  readonly data?: LockData | undefined;
  /**
   * For how long the lock stays taken at least, in ms from its hand-out, also when the section ends sooner or throws:
   * so that a fast job does not run again on a host that is late. Default 0; up to 2 147 483 647. `unlock()` does not
   * wait for it. It survives no crash: the lock of a holder that dies is free when its lease ends.
   */
  readonly holdAtLeastMs?: number | undefined;
}

/** What one `tryLock()` or `tryRun()` may add. */
export interface TryLockOptions {
  /** Your own attributes on the row while you hold it: whatever DynamoDB can store in a map. */
  readonly data?: LockData | undefined;
  /** As for `lock()`: for how long the lock stays taken at least, in ms from its hand-out. Default 0. */
  readonly holdAtLeastMs?: number | undefined;
  /**
   * A tick: a date, or a whole number in whatever unit you count. The lock is given at most once for each tick, ever,
   * and never for one that is not later than the last. A holder that dies has had its tick: it is not run again.
   */
  readonly once?: Date | number | undefined;
  /**
   * The same with the table's own clock in the place of yours: at most one run in each period of so many ms, counted
   * from 1970-01-01T00:00Z. At least 1 000. Near the beginning of a period the call takes longer, until the clock is
   * certain of it: about a second in a process that has just started, and then about a round trip.
   */
  readonly everyMs?: number | undefined;
}

/** How one `guard()` is made. */
export interface GuardOptions {
  /** The form that a DocumentClient takes. Default false. */
  readonly document?: boolean | undefined;
}

/** How one `transactWrite()` is sent. */
export interface TransactWriteOptions {
  /**
   * How long an answer is asked for, in ms, as long as the lock is held. Default 10 000; at most 540 000, because
   * DynamoDB knows a transaction that it has applied for ten minutes.
   */
  readonly withinMs?: number | undefined;
}

/** How a table is created. */
export interface CreateOptions {
  /** Ends the waiting for the table. */
  readonly signal?: AbortSignal | undefined;
  /** How long to wait until the table is active, in ms. Default 120 000. */
  readonly timeoutMs?: number | undefined;
  /** Tags for a table that is created. */
  readonly tags?: Readonly<Record<string, string>> | undefined;
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

/** Where a table's rows are, complete and consistent. */
export interface TableLayout {
  readonly tableName: string;
  readonly keyPrefix: string;
  readonly partition: string;
  readonly sort: string | undefined;
  readonly ttl: string;
}

/** The row's own attributes: no key may have one of these names. */
const ROW_ATTRIBUTES: readonly string[] = [
  "format",
  "uuid",
  "expires",
  "ttlMs",
  "owner",
  "acquired",
  "data",
  "wanted",
  "fence",
  "tick",
  "n",
];

const MAX_NAME_BYTES = 2_048;

/** What a call without options has: nothing in it to check. */
export const NONE: Readonly<Record<string, never>> = Object.freeze({});

const duration = (least: number): z.ZodNumber =>
  z
    .number({ invalid_type_error: "must be a number of milliseconds" })
    .int("must be a whole number of milliseconds")
    .min(least, `must be at least ${least} ms`)
    .max(MAX_TIMER_MS, `must be at most ${MAX_TIMER_MS} ms, the longest that a timer can run`);

const durationOrForever = (least: number) =>
  z.union([z.literal(Number.POSITIVE_INFINITY), duration(least)], {
    errorMap: () => ({
      message: `must be Infinity or a whole number of milliseconds from ${least} to ${MAX_TIMER_MS}`,
    }),
  });

const mutexShape = {
  ttlMs: duration(100).optional(),
  renewEveryMs: duration(1).optional(),
  safetyMarginMs: duration(1).optional(),
  autoRenew: z.boolean({ invalid_type_error: "must be true or false" }).optional(),
  maxHoldMs: durationOrForever(1).optional(),
  waitMs: durationOrForever(0).optional(),
  poll: z
    .object({ minMs: duration(1).optional(), maxMs: duration(1).optional() })
    .strict()
    .optional(),
  handOverMs: duration(1).optional(),
  releaseWithinMs: duration(1).optional(),
  fair: z.boolean({ invalid_type_error: "must be true or false" }).optional(),
  takeover: z
    .enum(["expired", "unchanged"], { errorMap: () => ({ message: 'must be "expired" or "unchanged"' }) })
    .optional(),
};

const attributeName = z
  .string({ invalid_type_error: "must be the name of an attribute" })
  .min(1, "must not be empty")
  .max(255, "must be at most 255 characters, DynamoDB's limit for a key's name");

const anObject = (what: string, methods: readonly string[]) =>
  z.custom<object>(
    (value) =>
      typeof value === "object" &&
      value !== null &&
      methods.every((method) => typeof (value as Record<string, unknown>)[method] === "function"),
    `must be ${what}`,
  );

const mutexSchema = z
  .object({ ...mutexShape, fencing: z.boolean({ invalid_type_error: "must be true or false" }).optional() })
  .strict();

const tableSchema = z
  .object({
    ...mutexShape,
    fencing: z
      .undefined({ invalid_type_error: "is an option of each mutex: locks.mutex(name, { fencing: true })" })
      .optional(),
    tableName: z
      .string({ required_error: "is required", invalid_type_error: "must be the table's name or ARN" })
      .regex(
        /^([a-zA-Z0-9_.-]{3,255}|arn:.{1,1020})$/,
        "must be a table's ARN, or its name: 3 to 255 of a-z, A-Z, 0-9, '_', '-' and '.'",
      ),
    client: anObject("a DynamoDBClient of @aws-sdk/client-dynamodb", ["send", "destroy"]).optional(),
    keys: z
      .object({
        partition: attributeName.optional(),
        sort: attributeName.nullable().optional(),
        ttl: attributeName.optional(),
      })
      .strict()
      .optional(),
    keyPrefix: z.string({ invalid_type_error: "must be a string" }).optional(),
    owner: z
      .string({ invalid_type_error: "must be a string" })
      .min(1, "must not be empty")
      .max(1_024, "must be at most 1 024 characters: it is written with every lock")
      .optional(),
    clock: anObject("a Clock", ["wall", "guess", "atLeast", "atMost", "sleep", "alarm"]).optional(),
  })
  .strict();

const signal: z.ZodOptional<z.ZodType<object>> = anObject("an AbortSignal", [
  "addEventListener",
  "throwIfAborted",
]).optional();
const lockData: z.ZodType<LockData> = z.custom<LockData>(
  (value) => typeof value === "object" && value !== null && !Array.isArray(value),
  "must be an object whose properties DynamoDB can store",
);

/** What other checks of options are made of, less the types: zod does not show in what this package declares. */
export const parts: {
  readonly duration: (least: number) => object;
  readonly signal: object;
  readonly lockData: object;
} = { duration, signal, lockData };
const data = lockData.optional();
const holdAtLeastMs = duration(0).optional();
const once = z
  .union([z.date(), z.number().int().safe()], {
    errorMap: () => ({ message: "must be a valid Date or a whole number up to 2^53 - 1 either way" }),
  })
  .optional();
const everyMs = z
  .number({ invalid_type_error: "must be a number of milliseconds" })
  .int("must be a whole number of milliseconds")
  .min(1_000, "must be at least 1000 ms: clocks do not agree on less")
  .safe("must be at most 2^53 - 1 ms")
  .optional();
const lockSchema = z.object({ signal, waitMs: durationOrForever(0).optional(), data, holdAtLeastMs }).strict();
const createSchema = z
  .object({ signal, timeoutMs: duration(1).optional(), tags: z.record(z.string()).optional() })
  .strict();
const guardSchema = z
  .object({ document: z.boolean({ invalid_type_error: "must be true or false" }).optional() })
  .strict();
const transactWriteSchema = z
  .object({
    withinMs: duration(1)
      .max(540_000, "must be at most 540 000 ms: DynamoDB forgets a transaction after ten minutes")
      .optional(),
  })
  .strict();
const tryLockSchema = z.object({ data, holdAtLeastMs, once, everyMs }).strict();

/** A table's options, checked. @throws {@link LockConfigError} */
export function tableOptions(options: LockTableOptions): LockTableOptions {
  check(tableSchema, options, "options");
  return options;
}

/** Where the rows are. @throws {@link LockConfigError} if two attributes would have one name. */
export function tableLayout(options: LockTableOptions): TableLayout {
  const keys = options.keys ?? {};
  const layout: TableLayout = {
    tableName: options.tableName,
    keyPrefix: options.keyPrefix ?? "",
    partition: keys.partition ?? "name",
    sort: keys.sort === null ? undefined : (keys.sort ?? "sort"),
    ttl: keys.ttl ?? "purge",
  };
  const taken = new Set(ROW_ATTRIBUTES);
  for (const part of ["partition", "sort", "ttl"] as const) {
    const attribute = layout[part];
    if (attribute === undefined) continue;
    if (taken.has(attribute)) {
      throw new LockConfigError(`keys.${part}`, attribute, "is already the name of another attribute of a lock's row");
    }
    taken.add(attribute);
  }
  return layout;
}

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

/** Whether such mutexes can live in such a table. @throws {@link LockConfigError} */
export function checkFits({ fair }: MutexSettings, { sort }: TableLayout): void {
  if (!fair || sort !== undefined) return;
  throw new LockConfigError(
    "fair",
    fair,
    "needs a table with a sort key, because every waiter has a row of its own beside the lock's, and keys.sort is null: " +
      "use a table that has one, or leave `fair` out",
  );
}

/** The key of a lock's row. @throws {@link LockConfigError} */
export function checkName(name: string, keyPrefix: string): void {
  if (typeof name !== "string" || name === "") throw new LockConfigError("name", name, "must be a non-empty string");
  const bytes = Buffer.byteLength(keyPrefix + name);
  if (bytes > MAX_NAME_BYTES) {
    throw new LockConfigError(
      "name",
      name,
      `must be at most ${MAX_NAME_BYTES} bytes with the key prefix, DynamoDB's limit for a key; it is ${bytes}`,
    );
  }
}

/** @throws {@link LockConfigError} */
export function lockOptions(options: LockOptions): LockOptions {
  check(lockSchema, options, "options");
  return options;
}

/** @throws {@link LockConfigError} */
export function tryLockOptions(options: TryLockOptions): TryLockOptions {
  check(tryLockSchema, options, "options");
  if (options.once !== undefined && options.everyMs !== undefined) {
    throw new LockConfigError(
      "everyMs",
      options.everyMs,
      "must not be given together with `once`: one tick, or the other",
    );
  }
  return options;
}

/** @throws {@link LockConfigError} */
export function guardOptions(options: GuardOptions): GuardOptions {
  check(guardSchema, options, "options");
  return options;
}

/** @throws {@link LockConfigError} */
export function transactWriteOptions(options: TransactWriteOptions): TransactWriteOptions {
  check(transactWriteSchema, options, "options");
  return options;
}

/** @throws {@link LockConfigError} */
export function createOptions(options: CreateOptions): CreateOptions {
  check(createSchema, options, "options");
  return options;
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

/** @throws {@link LockConfigError} naming what does not fit the schema, `what` if that is the value itself. */
export function check(schema: object, value: unknown, what: string): void {
  if (value === NONE) return;
  const result = (schema as z.ZodTypeAny).safeParse(value);
  if (result.success) return;
  const issue = result.error.issues[0];
  if (issue === undefined) return;
  const path = [...issue.path];
  if (issue.code === "unrecognized_keys") {
    path.push(issue.keys[0] ?? "");
    throw new LockConfigError(path.join("."), at(value, path), "is not an option: check its spelling");
  }
  throw new LockConfigError(path.join(".") || what, at(value, path), issue.message);
}

function at(value: unknown, path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>((inner, key) => (inner as Record<string | number, unknown> | undefined)?.[key], value);
}
