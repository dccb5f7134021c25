import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { LockStoreError, LockTable, tableClock } from "../index.js";
import { EXIT, Failure } from "./failure.js";
import { giveToSdk, sourceOf } from "./given.js";
export async function onTable(options, act) {
    const { table: tableName, keyPrefix, keys: names } = options;
    useEnvironment(options);
    if (!tableName)
        throw new Failure("no table is named: give --table NAME, or set DYNAMUTEX_TABLE");
    const keys = keysOf(names || "name,sort");
    const clock = tableClock();
    const locks = new LockTable({ tableName, keyPrefix, keys: { ...keys, sort: keys.sort ?? null }, clock });
    try {
        return await act({ locks, clock, keys, options });
    }
    catch (error) {
        throw await explained(error, { locks, keys, options });
    }
    finally {
        await locks.close().catch(() => undefined);
    }
}
function keysOf(text) {
    const [partition, sort, ttl, ...more] = text.split(",");
    if (!partition || more.length > 0) {
        throw new Failure(`--keys ${text}: must be PARTITION, PARTITION,SORT or PARTITION,SORT,TTL; leave SORT empty for a table without one`);
    }
    return { partition, sort: sort || undefined, ttl: ttl || "purge" };
}
function useEnvironment({ region, profile, endpointUrl }) {
    const { env } = process;
    if (env.AWS_REGION === undefined)
        giveToSdk("AWS_REGION", "AWS_DEFAULT_REGION", env.AWS_DEFAULT_REGION);
    giveToSdk("AWS_REGION", "--region", region);
    giveToSdk("AWS_PROFILE", "--profile", profile);
    giveToSdk("AWS_ENDPOINT_URL_DYNAMODB", "--endpoint-url", endpointUrl);
    env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= "true";
}
const UNKNOWN = [
    [/region is missing/i, "no region is known: give --region, or set AWS_REGION, or a region in ~/.aws/config"],
    [
        /could not load credentials/i,
        "no credentials are known: give a --profile that has some, or set AWS_PROFILE or AWS_ACCESS_KEY_ID",
    ],
];
async function explained(error, table) {
    if (!(error instanceof LockStoreError) || error.transient)
        return error;
    const unknown = error.cause instanceof Error && UNKNOWN.find(([told]) => told.test(error.cause.message));
    if (unknown)
        return new Failure((await noSuchProfile()) ?? unknown[1], EXIT.failed, { cause: error });
    if (error.cause instanceof Error && !/^(ResourceNotFound|Validation)Exception$/.test(error.cause.name))
        return error;
    const report = await table.locks.check().catch(() => undefined);
    const problem = report?.problems.find(({ code }) => code === "missing" || code === "keys");
    return report && problem ? new Failure(wordsOf(problem, report, table), EXIT.failed, { cause: error }) : error;
}
async function noSuchProfile() {
    const { AWS_PROFILE: profile, AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE } = process.env;
    if (profile === undefined)
        return undefined;
    const folder = join(homedir(), ".aws");
    const files = [AWS_CONFIG_FILE ?? join(folder, "config"), AWS_SHARED_CREDENTIALS_FILE ?? join(folder, "credentials")];
    const texts = await Promise.all(files.map((file) => readFile(file, "utf8").catch(() => "")));
    const headings = texts.flatMap((text) => [...text.matchAll(/^\s*\[\s*(?:profile\s+)?["']?(.+?)["']?\s*\]/gm)]);
    if (headings.some(([, name]) => name === profile))
        return undefined;
    return `there is no profile ${profile} in ${files.join(" or ")}: correct ${sourceOf("AWS_PROFILE")}`;
}
export function wordsOf({ code, message }, { tableName, table }, { keys, options }) {
    if (code === "missing") {
        const region = process.env.AWS_REGION === undefined ? "" : ` in region ${process.env.AWS_REGION}`;
        const create = `\`dynamutex create-table${flagsOf(options)}\` creates it`;
        return `table ${tableName} does not exist${region} for these credentials: ${create}, or correct --table or --region`;
    }
    if (code !== "keys" || table?.partition === undefined)
        return message;
    const { partition, sort } = table;
    if (partition === keys.partition && sort === keys.sort)
        return message;
    const differs = partition === keys.partition
        ? `${sort === undefined ? "no sort key" : `sort key ${sort}`}, and --keys says ${keys.sort ?? "none"}`
        : `partition key ${partition}, and --keys says ${keys.partition}`;
    const names = [partition, sort ?? "", keys.ttl === "purge" ? "" : keys.ttl].join(",").replace(/,+$/, "");
    return `table ${tableName} does not fit: it has ${differs}; give --keys ${names}`;
}
function flagsOf({ table, keys, region, profile, endpointUrl }) {
    const flags = { table, keys, region, profile, "endpoint-url": endpointUrl };
    const given = Object.entries(flags).filter(([, value]) => value !== undefined && value !== "");
    return given.map(([flag, value = ""]) => ` --${flag} ${inShell(value)}`).join("");
}
const inShell = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
