import { type Clock, LockTable, type LockTableOptions, tableClock } from "../index.js";
import { Failure } from "./failure.js";

/** Where the locks are, as the options of every command say. */
export interface TableArguments {
  readonly table?: string;
  readonly keyPrefix?: string;
  /** `PARTITION[,SORT[,TTL]]`; without SORT the table has no sort key. */
  readonly keys?: string;
  readonly region?: string;
  readonly profile?: string;
  readonly endpointUrl?: string;
}

export interface OpenTable {
  readonly locks: LockTable;
  readonly clock: Clock;
  readonly hasSortKey: boolean;
}

/** @throws {@link Failure} without a table's name; a `LockConfigError` for options that cannot work. */
export function openTable(given: TableArguments): OpenTable {
  useEnvironment(given);
  const options = layoutOf(given);
  const clock = tableClock();
  return { locks: new LockTable({ ...options, clock }), clock, hasSortKey: options.keys?.sort !== null };
}

/** The options that say where rows are. @throws {@link Failure} without a table's name. */
export function layoutOf({ table, keyPrefix, keys }: TableArguments): LockTableOptions {
  if (!table) throw new Failure("no table is named: give --table NAME, or set DYNAMUTEX_TABLE");
  return { tableName: table, keyPrefix, ...(keys && { keys: keysOf(keys) }) };
}

function keysOf(text: string): NonNullable<LockTableOptions["keys"]> {
  const [partition, sort, ttl, ...more] = text.split(",");
  if (!partition || more.length > 0) {
    throw new Failure(
      `--keys ${text}: must be PARTITION, PARTITION,SORT or PARTITION,SORT,TTL; leave SORT empty for a table without one`,
    );
  }
  return { partition, sort: sort || null, ttl: ttl || undefined };
}

/** The SDK reads the environment. What is run under a lock gets that of this command, and not this one. */
function useEnvironment({ region, profile, endpointUrl }: TableArguments): void {
  const { env } = process;
  const usedRegion = region ?? env.AWS_REGION ?? env.AWS_DEFAULT_REGION;
  if (usedRegion !== undefined) env.AWS_REGION = usedRegion;
  if (profile !== undefined) env.AWS_PROFILE = profile;
  if (endpointUrl !== undefined) env.AWS_ENDPOINT_URL_DYNAMODB = endpointUrl;
  // It concerns who installs Node, and cron would mail it with every run.
  env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= "true";
}
