import {
  type Clock,
  LockStoreError,
  LockTable,
  type LockTableOptions,
  type TableProblem,
  type TableReport,
  tableClock,
} from "../index.js";
import { EXIT, Failure } from "./failure.js";

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

/** The names of a table and of its attributes, as the options say or by default. */
export interface TableNames {
  readonly tableName: string;
  readonly partition: string;
  readonly sort: string | undefined;
  readonly ttl: string;
}

export interface OpenTable {
  readonly locks: LockTable;
  readonly clock: Clock;
  readonly names: TableNames;
}

/** Does something with a table, and closes it. @throws as {@link openTable} and {@link explained} do. */
export async function onTable<Result>(
  given: TableArguments,
  act: (table: OpenTable) => Promise<Result>,
): Promise<Result> {
  const table = openTable(given);
  await using _ = table.locks;
  try {
    return await act(table);
  } catch (error) {
    throw await explained(error, table);
  }
}

/** @throws {@link Failure} without a table's name; a `LockConfigError` for options that cannot work. */
export function openTable({ table: tableName, keyPrefix, keys: given, ...others }: TableArguments): OpenTable {
  useEnvironment(others);
  if (!tableName) throw new Failure("no table is named: give --table NAME, or set DYNAMUTEX_TABLE");
  const keys = given ? keysOf(given) : undefined;
  const clock = tableClock();
  const locks = new LockTable({ tableName, keyPrefix, ...(keys && { keys }), clock });
  const { partition = "name", sort = "sort", ttl = "purge" } = keys ?? {};
  return { locks, clock, names: { tableName, partition, sort: sort ?? undefined, ttl } };
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

/** The same error, or what it comes from: if the table refused a request for good, `check()` tells what is wrong with it. */
export async function explained(error: unknown, { locks, names }: OpenTable): Promise<unknown> {
  if (!(error instanceof LockStoreError) || error.transient) return error;
  const cause = error.cause instanceof Error ? error.cause.name : "";
  if (!/^(ResourceNotFoundException|ValidationException|)$/.test(cause)) return error;
  const report = await locks.check().catch(() => undefined);
  const problem = report?.problems.find(({ code }) => code === "missing" || code === "keys");
  return report && problem ? new Failure(wordsOf(problem, report, names), EXIT.failed, { cause: error }) : error;
}

/** What is wrong with a table and what to do: of some problems, the library says it to a program and not to a prompt. */
export function wordsOf({ code, message }: TableProblem, { table }: TableReport, names: TableNames): string {
  const { tableName } = names;
  if (code === "missing") {
    return `table ${tableName} does not exist: \`dynamutex create-table\` creates it, or correct --table or --region`;
  }
  if (code !== "keys" || table?.partition === undefined) return message;
  const { partition, sort } = table;
  if (partition === names.partition && sort === names.sort) return message; // a type is wrong
  const differs =
    partition === names.partition
      ? `${sort === undefined ? "no sort key" : `sort key ${sort}`}, and --keys says ${names.sort ?? "none"}`
      : `partition key ${partition}, and --keys says ${names.partition}`;
  const keys = [partition, sort ?? "", names.ttl === "purge" ? "" : names.ttl].join(",").replace(/,+$/, "");
  return `table ${tableName} does not fit: it has ${differs}; give --keys ${keys}`;
}
