import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { z } from "zod/v3";
import { LockConfigError } from "../errors.js";
import type { Clock } from "../time/clock.js";
import { anObject, check, duration, lazily, signal } from "./check.js";
import type { MutexOptions, MutexSettings } from "./mutex.js";
import { mutexSchemaWith } from "./mutex-schema.js";

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
   * `close()` destroys; a client of your own stays open and as it is. Requests of locks go through its middleware and its
   * retries. With the default client a lock costs less CPU time, because the SDK sorts its middleware once.
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

/** How a table is created. */
export interface CreateOptions {
  /** Ends the waiting for the table. */
  readonly signal?: AbortSignal | undefined;
  /** How long to wait until the table is active, in ms. Default 120 000. */
  readonly timeoutMs?: number | undefined;
  /** Tags for a table that is created. */
  readonly tags?: Readonly<Record<string, string>> | undefined;
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

const attributeName = () =>
  z
    .string({ invalid_type_error: "must be the name of an attribute" })
    .min(1, "must not be empty")
    .max(255, "must be at most 255 characters, DynamoDB's limit for a key's name");

const tableSchema = lazily(() =>
  mutexSchemaWith({
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
        partition: attributeName().optional(),
        sort: attributeName().nullable().optional(),
        ttl: attributeName().optional(),
      })
      .strict()
      .optional(),
    keyPrefix: z.string({ invalid_type_error: "must be a string" }).optional(),
    owner: z
      .string({ invalid_type_error: "must be a string" })
      .min(1, "must not be empty")
      .max(1_024, "must be at most 1 024 characters: it is written with every lock")
      .optional(),
    clock: anObject("a Clock", ["wall", "atLeast", "atMost", "sleep", "alarm"]).optional(),
  }),
);

const createSchema = lazily(() =>
  z
    .object({
      signal: signal(),
      timeoutMs: duration(1).optional(),
      tags: z.record(z.string({ invalid_type_error: "must be a string" })).optional(),
    })
    .strict(),
);

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
export function createOptions(options: CreateOptions): CreateOptions {
  check(createSchema, options, "options");
  return options;
}
