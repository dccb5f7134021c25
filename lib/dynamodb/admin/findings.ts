import type { TableDescription, TimeToLiveDescription } from "@aws-sdk/client-dynamodb";
import type { TableLayout } from "../../options/table.js";
import type { TableAction, TableFacts, TableProblem, TableReport } from "../../table-report.js";
import { refusedKey } from "../permissions.js";
import { indexConflicts } from "../table-indexes.js";
import { isStrong, keyAdvice, keyIn } from "../table-keys.js";
import { isNotImplemented } from "./admin-requests.js";
import type { Probe } from "./probes.js";

/** What does not work without an action. It is an error if locks do not work at all then. */
const NEEDED: Readonly<Record<TableAction, readonly [severity: TableProblem["severity"], without: string]>> = {
  DescribeTable: ["warning", "its key, its billing and its replicas could not be checked"],
  DescribeTimeToLive: ["warning", "its TTL could not be checked"],
  GetItem: ["error", "nobody can wait for a lock"],
  PutItem: ["error", "no lock can be taken"],
  UpdateItem: ["error", "no lock can be renewed"],
  DeleteItem: ["error", "no lock can be released: each one would stay until its lease ends"],
  Query: ["warning", "fair mutexes, semaphores and shared mutexes do not work"],
  Scan: ["warning", "list() does not work"],
  ConditionCheckItem: ["warning", "guard() and transactWrite() do not work"],
};

export const ACTIONS = Object.keys(NEEDED) as readonly TableAction[];

/** What the replicas of a global table mean for locks. */
const CONSISTENCY = {
  eventual:
    "each region decides by its own copy of a row, so there is no exclusion across regions; let all hosts that share a " +
    "lock use one region, or use a table with strong consistency",
  strong:
    "mutexes, semaphores, shared mutexes, fair queues, fencing and ticks exclude across its regions, if every host sets " +
    "`clock: tableClock({ regionSkewMs })`; such a table has no transactions, so lockAll() and guards do not work (compare the " +
    "fencing token in a condition on the item itself), and no TTL, so rows of dead holders stay until their locks are taken again",
};

/** Why a table with this status cannot be used. */
const STATUS: Readonly<Record<string, string>> = {
  CREATING: "is being created: `await locks.create()` waits until it can be used",
  DELETING: "is being deleted: choose another, or create it anew when it is gone",
};

export function factsOf(table: TableDescription): TableFacts {
  const replicas = (table.Replicas ?? []).flatMap(({ RegionName }) => RegionName ?? []);
  return {
    status: table.TableStatus ?? "unknown",
    partition: keyIn(table, "partition")?.name,
    sort: keyIn(table, "sort")?.name,
    // DynamoDB leaves the summary out on a table that was provisioned from the start.
    billing: table.BillingModeSummary?.BillingMode === "PAY_PER_REQUEST" ? "on-demand" : "provisioned",
    replicas,
    consistency: isStrong(table) ? "strong" : replicas.length === 0 ? undefined : "eventual",
  };
}

/** What is said of a table that does not exist. */
export function missingReport({ tableName }: TableLayout): TableReport {
  const remedy = "`await locks.create()` creates it; if it exists, check the region and the account of the credentials";
  const problems = [error("missing", `Table ${tableName} does not exist: ${remedy}`)];
  const unknown = { table: undefined, ttl: undefined, batches: undefined, permissions: {} };
  return { tableName, usable: false, problems, ...unknown };
}

/** The problems that a table's description shows. */
export function tableProblems(table: TableDescription, layout: TableLayout): TableProblem[] {
  const { tableName } = layout;
  const { status, billing, replicas, consistency } = factsOf(table);
  const problems: TableProblem[] = [];
  if (status !== "ACTIVE" && status !== "UPDATING") {
    const why = STATUS[status] ?? `cannot be used: it is ${status}; see why in the DynamoDB console`;
    problems.push(error("status", `Table ${tableName} ${why}`));
  }
  const mismatch = keyAdvice(table, layout);
  if (mismatch !== undefined) problems.push(error("keys", mismatch.replace(/^t/, "T")));
  for (const { isFatal, message } of indexConflicts(table, layout)) {
    problems.push({ code: "index", severity: isFatal ? "error" : "warning", message: message.replace(/^t/, "T") });
  }
  if (billing === "provisioned") {
    const { ReadCapacityUnits: read, WriteCapacityUnits: write } = table.ProvisionedThroughput ?? {};
    const message =
      `Table ${tableName} has a provisioned capacity of ${read} read and ${write} write units a second: beyond it, renewals ` +
      "are throttled, and a lock that is not renewed in time is lost; switch it to on-demand, or see that it scales";
    problems.push(warning("billing", message));
  }
  if (consistency !== undefined) {
    const where = replicas.length === 0 ? "" : `, with replicas in ${replicas.join(", ")}`;
    const what = `Table ${tableName} is a global table with ${consistency} consistency${where}`;
    problems.push(warning("replicas", `${what}: ${CONSISTENCY[consistency]}`));
  }
  return problems;
}

const ROWS_STAY = "rows of dead holders stay until their locks are taken again, and rows that are kept stay for ever";

/** What is said of an engine that has no TTL. */
export const noTtl = (tableName: string): string =>
  `The endpoint of table ${tableName} has no TTL, so nothing removes old rows: ${ROWS_STAY}; delete them yourself`;

export function ttlProblems(
  { TimeToLiveStatus: status = "DISABLED", AttributeName: attribute }: TimeToLiveDescription = {},
  { tableName, ttl }: TableLayout,
): TableProblem[] {
  const problem = (what: string, remedy: string) => [
    warning("ttl", `The TTL of table ${tableName} is ${what}: ${ROWS_STAY}; ${remedy}`),
  ];
  const on =
    `\`await locks.create({ enableTtl: true })\` switches it on, and so does \`dynamutex create-table --enable-ttl\`: DynamoDB then ` +
    `deletes each item of the table, those of other applications included, whose attribute ${ttl} is a time in the past, in epoch seconds`;
  if (status === "DISABLED") return problem("off", on);
  if (status === "DISABLING") return problem("being switched off, which takes up to an hour", `after that, ${on}`);
  if (attribute === ttl) return [];
  return problem(
    `on the attribute ${attribute}, and the option keys.ttl says ${ttl}`,
    `set keys: { ttl: ${JSON.stringify(attribute)} } on every host, if that attribute is one of epoch seconds and none of a lock's ` +
      `own, or switch the TTL to ${ttl}`,
  );
}

/** The problem of an action that was not allowed: its permission is missing, or its request was refused otherwise. */
export function actionProblem(
  action: TableAction,
  { kind, cause }: Extract<Probe, { readonly cause: Error }>,
  { tableName }: TableLayout,
): TableProblem {
  const [severity, without] = NEEDED[action];
  if (isNotImplemented(cause)) {
    if (action === "DescribeTimeToLive") return warning("ttl", noTtl(tableName));
    const message = `The endpoint of table ${tableName} does not have ${action}: ${without}`;
    return { code: "request", severity, message };
  }
  // What DynamoDB itself has said.
  const { message: reason } = cause.cause as Error;
  const key = kind === "refused" ? refusedKey(reason, tableName) : undefined;
  if (key !== undefined) {
    return { code: "permission", severity, message: `${key.replace(/^t/, "T")}; until then, ${without} (${reason})` };
  }
  const message =
    kind === "refused"
      ? `These credentials lack the permission dynamodb:${action} on table ${tableName}: ${without}; add it to their IAM policy`
      : `Table ${tableName} refuses ${action}: ${without}; compare its key with the options keys.partition and keys.sort`;
  return { code: kind === "refused" ? "permission" : "request", severity, message: `${message} (${reason})` };
}

const error = (code: TableProblem["code"], message: string): TableProblem => ({ code, severity: "error", message });
const warning = (code: TableProblem["code"], message: string): TableProblem => ({ code, severity: "warning", message });
