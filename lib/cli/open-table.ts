import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { type Clock, LockStoreError, LockTable, type TableProblem, type TableReport, tableClock } from "../index.js";
import { EXIT, Failure } from "./failure.js";
import { giveToSdk, sourceOf } from "./given.js";

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

/** The names of a table's attributes, as the options say or by default. */
export interface TableKeys {
  readonly partition: string;
  readonly sort: string | undefined;
  readonly ttl: string;
}

export interface OpenTable {
  readonly locks: LockTable;
  readonly clock: Clock;
  readonly keys: TableKeys;
  /** As they were given. */
  readonly options: TableArguments;
}

/**
 * Does something with a table, and closes it.
 * @throws {@link Failure} without a table's name; a `LockConfigError` for options that cannot work; what `act` throws, or, where that
 * comes from the table, what is wrong with it.
 */
export async function onTable<Result>(
  options: TableArguments,
  act: (table: OpenTable) => Promise<Result>,
): Promise<Result> {
  const { table: tableName, keyPrefix, keys: names } = options;
  useEnvironment(options);
  if (!tableName) throw new Failure("no table is named: give --table NAME, or set DYNAMUTEX_TABLE");
  const keys = keysOf(names || "name,sort");
  const clock = tableClock();
  const locks = new LockTable({ tableName, keyPrefix, keys: { ...keys, sort: keys.sort ?? null }, clock });
  try {
    return await act({ locks, clock, keys, options });
  } catch (error) {
    throw await explained(error, { locks, keys, options });
  } finally {
    await locks.close().catch(() => undefined);
  }
}

function keysOf(text: string): TableKeys {
  const [partition, sort, ttl, ...more] = text.split(",");
  if (!partition || more.length > 0) {
    throw new Failure(
      `--keys ${text}: must be PARTITION, PARTITION,SORT or PARTITION,SORT,TTL; leave SORT empty for a table without one`,
    );
  }
  return { partition, sort: sort || undefined, ttl: ttl || "purge" };
}

function useEnvironment({ region, profile, endpointUrl }: TableArguments): void {
  const { env } = process;
  if (env.AWS_REGION === undefined) giveToSdk("AWS_REGION", "AWS_DEFAULT_REGION", env.AWS_DEFAULT_REGION);
  giveToSdk("AWS_REGION", "--region", region);
  giveToSdk("AWS_PROFILE", "--profile", profile);
  giveToSdk("AWS_ENDPOINT_URL_DYNAMODB", "--endpoint-url", endpointUrl);
  // It concerns who installs Node, and cron would mail it with every run.
  env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= "true";
}

/** What the SDK has not found, and what to type: the library speaks of the options of a program. */
const UNKNOWN = [
  [/region is missing/i, "no region is known: give --region, or set AWS_REGION, or a region in ~/.aws/config"],
  [
    /could not load credentials/i,
    "no credentials are known: give a --profile that has some, or set AWS_PROFILE or AWS_ACCESS_KEY_ID",
  ],
] as const;

/** The same error, or what it comes from: if the table refused a request for good, `check()` tells what is wrong with it. */
async function explained(error: unknown, table: Pick<OpenTable, "locks" | "keys" | "options">): Promise<unknown> {
  if (!(error instanceof LockStoreError)) return error;
  if (error.transient) return error.answered ? error : withProxy(error);
  const unknown = error.cause instanceof Error && UNKNOWN.find(([told]) => told.test((error.cause as Error).message));
  if (unknown) return new Failure((await noSuchProfile()) ?? unknown[1], EXIT.failed, { cause: error });
  if (error.cause instanceof Error && !/^(ResourceNotFound|Validation)Exception$/.test(error.cause.name)) return error;
  const report = await table.locks.check().catch(() => undefined);
  const problem = report?.problems.find(({ code }) => code === "missing" || code === "keys");
  return report && problem ? new Failure(wordsOf(problem, report, table), EXIT.failed, { cause: error }) : error;
}

/** What the AWS CLI reads to get through a proxy, and the SDK does not. */
const PROXIES = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "AWS_CA_BUNDLE"];

/** The same error, or what may be the reason where this host reaches nothing without a proxy. */
function withProxy(error: LockStoreError): Error {
  const given = PROXIES.find((name) => process.env[name]);
  // On one's own machine, a proxy was not what was missing. Elsewhere, a firewall may refuse the connection.
  if (given === undefined || /nothing listens at (127\.|localhost\b|\[?::1)/.test(error.message)) return error;
  const message = `${error.message}. ${given} has no effect: the AWS SDK for JavaScript does not read it (docs/guides/cli.md in the package)`;
  return new Failure(message, EXIT.failed, { cause: error });
}

/** Said of a profile that is in none of the files which the SDK reads. */
async function noSuchProfile(): Promise<string | undefined> {
  const { AWS_PROFILE: profile, AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE } = process.env;
  if (profile === undefined) return undefined;
  const folder = join(homedir(), ".aws");
  const files = [AWS_CONFIG_FILE ?? join(folder, "config"), AWS_SHARED_CREDENTIALS_FILE ?? join(folder, "credentials")];
  const texts = await Promise.all(files.map((file) => readFile(file, "utf8").catch(() => "")));
  const headings = texts.flatMap((text) => [...text.matchAll(/^\s*\[\s*(?:profile\s+)?["']?(.+?)["']?\s*\]/gm)]);
  if (headings.some(([, name]) => name === profile)) return undefined;
  return `there is no profile ${profile} in ${files.join(" or ")}: correct ${sourceOf("AWS_PROFILE")}`;
}

/** What is wrong with a table and what to do: of some problems, the library says it to a program and not to a prompt. */
export function wordsOf(
  { code, message }: TableProblem,
  { tableName, table }: TableReport,
  { keys, options }: Pick<OpenTable, "keys" | "options">,
): string {
  if (code === "missing") {
    const region = process.env.AWS_REGION === undefined ? "" : ` in region ${process.env.AWS_REGION}`;
    const create = `\`dynamutex create-table${flagsOf(options)}\` creates it`;
    return `table ${tableName} does not exist${region} for these credentials: ${create}, or correct --table or --region`;
  }
  if (code !== "keys" || table?.partition === undefined) return message;
  const { partition, sort } = table;
  if (partition === keys.partition && sort === keys.sort) return message; // a type is wrong
  const differs =
    partition === keys.partition
      ? `${sort === undefined ? "no sort key" : `sort key ${sort}`}, and --keys says ${keys.sort ?? "none"}`
      : `partition key ${partition}, and --keys says ${keys.partition}`;
  const names = [partition, sort ?? "", keys.ttl === "purge" ? "" : keys.ttl].join(",").replace(/,+$/, "");
  return `table ${tableName} does not fit: it has ${differs}; give --keys ${names}`;
}

/** The options of this command that say which table it is, for another command. */
function flagsOf({ table, keys, region, profile, endpointUrl }: TableArguments): string {
  const flags = { table, keys, region, profile, "endpoint-url": endpointUrl };
  const given = Object.entries(flags).filter(([, value]) => value !== undefined && value !== "");
  return given.map(([flag, value = ""]) => ` --${flag} ${inShell(value)}`).join("");
}

const inShell = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
