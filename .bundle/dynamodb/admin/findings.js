import { indexConflicts } from "../table-indexes.js";
import { isStrong, keyAdvice, keyIn } from "../table-keys.js";
import { isNotImplemented } from "./admin-requests.js";
const NEEDED = {
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
export const ACTIONS = Object.keys(NEEDED);
const CONSISTENCY = {
    eventual: "each region decides by its own copy of a row, so there is no exclusion across regions; let all hosts that share a " +
        "lock use one region, or use a table with strong consistency",
    strong: "mutexes, semaphores, shared mutexes, fair queues, fencing and ticks exclude across its regions, if every host sets " +
        "`clock: tableClock({ regionSkewMs })`; such a table has no transactions, so lockAll() and guards do not work (compare the " +
        "fencing token in a condition on the item itself), and no TTL, so rows of dead holders stay until their locks are taken again",
};
const STATUS = {
    CREATING: "is being created: `await locks.create()` waits until it can be used",
    DELETING: "is being deleted: choose another, or create it anew when it is gone",
};
export function factsOf(table) {
    const replicas = (table.Replicas ?? []).flatMap(({ RegionName }) => RegionName ?? []);
    return {
        status: table.TableStatus ?? "unknown",
        partition: keyIn(table, "partition")?.name,
        sort: keyIn(table, "sort")?.name,
        billing: table.BillingModeSummary?.BillingMode === "PAY_PER_REQUEST" ? "on-demand" : "provisioned",
        replicas,
        consistency: isStrong(table) ? "strong" : replicas.length === 0 ? undefined : "eventual",
    };
}
export function missingReport({ tableName }) {
    const remedy = "`await locks.create()` creates it; if it exists, check the region and the account of the credentials";
    const problems = [error("missing", `Table ${tableName} does not exist: ${remedy}`)];
    const unknown = { table: undefined, ttl: undefined, batches: undefined, permissions: {} };
    return { tableName, usable: false, problems, ...unknown };
}
export function tableProblems(table, layout) {
    const { tableName } = layout;
    const { status, billing, replicas, consistency } = factsOf(table);
    const problems = [];
    if (status !== "ACTIVE" && status !== "UPDATING") {
        const why = STATUS[status] ?? `cannot be used: it is ${status}; see why in the DynamoDB console`;
        problems.push(error("status", `Table ${tableName} ${why}`));
    }
    const mismatch = keyAdvice(table, layout);
    if (mismatch !== undefined)
        problems.push(error("keys", mismatch.replace(/^t/, "T")));
    for (const { isFatal, message } of indexConflicts(table, layout)) {
        problems.push({ code: "index", severity: isFatal ? "error" : "warning", message: message.replace(/^t/, "T") });
    }
    if (billing === "provisioned") {
        const { ReadCapacityUnits: read, WriteCapacityUnits: write } = table.ProvisionedThroughput ?? {};
        const message = `Table ${tableName} has a provisioned capacity of ${read} read and ${write} write units a second: beyond it, renewals ` +
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
export const noTtl = (tableName) => `The endpoint of table ${tableName} has no TTL, so nothing removes old rows: ${ROWS_STAY}; delete them yourself`;
export function ttlProblems({ TimeToLiveStatus: status = "DISABLED", AttributeName: attribute } = {}, { tableName, ttl }) {
    const problem = (what, remedy) => [
        warning("ttl", `The TTL of table ${tableName} is ${what}: ${ROWS_STAY}; ${remedy}`),
    ];
    const on = `switch it on for the attribute ${ttl}, as \`await locks.create()\` does`;
    if (status === "DISABLED")
        return problem("off", on);
    if (status === "DISABLING")
        return problem("being switched off", `${on}, when it is off, which takes up to an hour`);
    if (attribute === ttl)
        return [];
    return problem(`on the attribute ${attribute}, and the option keys.ttl says ${ttl}`, `set keys: { ttl: ${JSON.stringify(attribute)} } on every host, if that attribute is one of epoch seconds and none of a lock's ` +
        `own, or switch the TTL to ${ttl}`);
}
export function actionProblem(action, { kind, cause }, { tableName }) {
    const [severity, without] = NEEDED[action];
    if (isNotImplemented(cause)) {
        if (action === "DescribeTimeToLive")
            return warning("ttl", noTtl(tableName));
        const message = `The endpoint of table ${tableName} does not have ${action}: ${without}`;
        return { code: "request", severity, message };
    }
    const { message: reason } = cause.cause;
    const message = kind === "refused"
        ? `These credentials lack the permission dynamodb:${action} on table ${tableName}: ${without}; add it to their IAM policy`
        : `Table ${tableName} refuses ${action}: ${without}; compare its key with the options keys.partition and keys.sort`;
    return { code: kind === "refused" ? "permission" : "request", severity, message: `${message} (${reason})` };
}
const error = (code, message) => ({ code, severity: "error", message });
const warning = (code, message) => ({ code, severity: "warning", message });
