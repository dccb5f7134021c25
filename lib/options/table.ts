import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import * as z from "zod/mini";
import { LockConfigError } from "../errors.js";
import type { Clock } from "../time/clock.js";
import {
  duration,
  exactly,
  isWellFormed,
  NOT_WELL_FORMED,
  objectOf,
  ofNoValue,
  optionsCheck,
  partOfName,
  signal,
  strings,
  text,
  withMethods,
} from "./check.js";
import { type MutexOptions, type MutexSettings, mutexShape } from "./mutex.js";
import type { OptionsCheck } from "./options-check.js";

/** The names of the key attributes, so that locks can share an application's table. */
export interface KeyOptions {
  /** The partition key, a string. Default `name`. */
  readonly partition?: string | undefined;
  /** The sort key, a string. Default `sort`; `null` for a table without one. */
  readonly sort?: string | null | undefined;
  /** The attribute that DynamoDB's TTL feature reads, in epoch seconds. Default `purge`. */
  readonly ttl?: string | undefined;
}

/** Options of a table, and defaults for its mutexes. */
export interface LockTableOptions extends Omit<MutexOptions, "fencing"> {
  /** The table's name, or its ARN. */
  readonly tableName: string;
  /**
   * The client to use. Default: one made from the environment, with connection and request timeouts, which `close()`
   * destroys. A client of your own is neither changed nor closed; its middleware and its retries apply to the requests
   * of locks. With the default client a lock costs less CPU time, because the SDK sorts its middleware once.
   */
  readonly client?: DynamoDBClient | undefined;
  /** The names of the key attributes. Default: those of a table that `create()` makes. */
  readonly keys?: KeyOptions | undefined;
  /**
   * Put before every lock's name in the partition key. Default: none. With several in one table, none may begin with
   * another: prefix `a` with name `bc`, and `ab` with `c`, are one lock.
   */
  readonly keyPrefix?: string | undefined;
  /** Names the holder to people who inspect a lock. Default: host name and process id. */
  readonly owner?: string | undefined;
  /** The source of time. Default: `tableClock()`, the table's own. All hosts of a table use the same kind. */
  readonly clock?: Clock | undefined;
}

/** Options of `create()`. */
export interface CreateOptions {
  /** Ends the waiting for the table. */
  readonly signal?: AbortSignal | undefined;
  /** How long to wait until the table is active, in ms. Default 120 000. */
  readonly timeoutMs?: number | undefined;
  /** Tags for the table, if it is created. */
  readonly tags?: Readonly<Record<string, string>> | undefined;
  /**
   * Whether to enable the TTL of a table that exists as well. DynamoDB then deletes each item of the table, those of other
   * applications included, whose attribute `keys.ttl` is a number of epoch seconds in the past. Default false.
   */
  readonly enableTtl?: boolean | undefined;
}

/** Where a table's rows are, with every default filled in. */
export interface TableLayout {
  readonly tableName: string;
  readonly keyPrefix: string;
  readonly partition: string;
  readonly sort: string | undefined;
  readonly ttl: string;
}

/** The attributes of a lock's row: no key may have one of these names. */
const ROW_ATTRIBUTES =
  "format uuid expires ttlMs owner acquired data wanted fence tick due attempt ran permits handOff result n".split(" ");

/** DynamoDB's limit for a partition key. */
const MAX_NAME_BYTES = 2_048;

/** What DynamoDB takes for a table's name, or an ARN. */
const TABLE = /^([a-zA-Z0-9_.-]{3,255}|arn:.{1,1020})$/;

/** @param why there may be no more characters than `most`. */
const shortText = (most: number, why: string) =>
  text().check(z.refine(({ length }) => length >= 1 && length <= most, `must have 1 to ${most} characters${why}`));

const attributeName = () => shortText(255, ", DynamoDB's limit for a key's name");

/** Checks the options, except whether they fit one another. */
export const tableOptions: OptionsCheck<LockTableOptions> = optionsCheck(
  ["new LockTable()"],
  () => ({
    ...mutexShape(),
    tableName: z.custom<string>(
      (value) => typeof value === "string" && TABLE.test(value),
      "must be a table's ARN, or its name: 3 to 255 of a-z, A-Z, 0-9, '_', '-' and '.'",
    ),
    client: z.optional(
      withMethods<DynamoDBClient>("a DynamoDBClient of @aws-sdk/client-dynamodb", ["send", "destroy"]),
    ),
    keys: z.optional(
      objectOf(
        exactly<KeyOptions>()({
          partition: z.optional(attributeName()),
          sort: z.optional(z.nullable(attributeName())),
          ttl: z.optional(attributeName()),
        }),
      ),
    ),
    keyPrefix: z.optional(partOfName()),
    owner: z.optional(shortText(1_024, ": it is written with every lock")),
    clock: z.optional(withMethods<Clock>("a Clock", ["wall", "atLeast", "atMost", "sleep", "alarm"])),
  }),
  { fencing: "is an option of each mutex: locks.mutex(name, { fencing: true })" },
);

export const createOptions: OptionsCheck<CreateOptions> = optionsCheck(["create()"], () => ({
  signal: signal(),
  timeoutMs: z.optional(duration(1)),
  tags: z.optional(strings()),
  enableTtl: z.optional(z.boolean()),
}));

/** Where a table's rows are. @throws {@link LockConfigError} if two attributes would have one name. */
export function tableLayout(options: LockTableOptions): TableLayout {
  const keys = options.keys ?? {};
  const layout: TableLayout = {
    tableName: options.tableName,
    keyPrefix: options.keyPrefix ?? "",
    partition: keys.partition ?? "name",
    sort: keys.sort === null ? undefined : (keys.sort ?? "sort"),
    ttl: keys.ttl ?? "purge",
  };
  const used = new Set(ROW_ATTRIBUTES);
  for (const part of ["partition", "sort", "ttl"] as const) {
    const attribute = layout[part];
    if (attribute === undefined) continue;
    if (used.has(attribute)) {
      throw new LockConfigError(`keys.${part}`, attribute, "is already the name of another attribute of a lock's row");
    }
    used.add(attribute);
  }
  return layout;
}

/** @throws {@link LockConfigError} if a table without a sort key has fair mutexes. */
export function checkFits({ fair }: MutexSettings, { sort }: TableLayout): void {
  if (!fair || sort !== undefined) return;
  throw new LockConfigError(
    "fair",
    fair,
    "needs a table with a sort key, because every waiter has a row of its own beside the lock's, and keys.sort is null: " +
      "use a table that has one, or leave `fair` out",
  );
}

/** @throws {@link LockConfigError} if a lock cannot have this name: DynamoDB could not store it, or would change it. */
export function checkName(name: string, keyPrefix: string, option = "name"): void {
  if (typeof name !== "string" || name === "") throw new LockConfigError(option, name, "must be a non-empty string");
  if (!isWellFormed(name)) throw new LockConfigError(option, name, NOT_WELL_FORMED);
  const noValue = ofNoValue(name);
  if (noValue !== undefined) throw new LockConfigError(option, name, noValue);
  const bytes = Buffer.byteLength(keyPrefix + name);
  if (bytes > MAX_NAME_BYTES) {
    const remedy = `must be at most ${MAX_NAME_BYTES} bytes with the key prefix, DynamoDB's limit for a key; it is ${bytes}`;
    throw new LockConfigError(option, name, remedy);
  }
}

/** @throws {@link LockConfigError} if a table without a sort key is to hold locks of this kind. */
export function checkHasSort(what: string, { sort }: Pick<TableLayout, "sort">): void {
  if (sort !== undefined) return;
  throw new LockConfigError(
    "keys.sort",
    null,
    `must be the name of a sort key for ${what}, which has several rows under its name: use a table that has one`,
  );
}
