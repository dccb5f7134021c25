import { LockStoreError } from "../../errors.js";
import { ControlPlane } from "./control-plane.js";
import { actionProblem, factsOf, missingReport, tableProblems, ttlProblems } from "./findings.js";
import { probe, probeBatches, probeItems } from "./probes.js";
const DEFAULT_TIMEOUT_MS = 30_000;
export async function checkTable(transport, layout, { signal, timeoutMs = DEFAULT_TIMEOUT_MS }, requests) {
    const { tableName } = layout;
    const plane = new ControlPlane(transport, { tableName: layout.tableName, requests, signal, timeoutMs });
    const table = await probe(plane.describeTable());
    if (table.kind === "missing")
        return missingReport(layout);
    const [ttl, items, batches] = await Promise.all([
        probe(plane.describeTtl()),
        probeItems(plane, layout),
        probeBatches(plane, layout),
    ]);
    const answers = [["DescribeTable", table], ["DescribeTimeToLive", ttl], ...items];
    if (answers.some(([, { kind }]) => kind === "missing"))
        return missingReport(layout);
    const description = table.found;
    if (table.kind === "allowed" && description === undefined) {
        const message = `The endpoint does not describe table ${tableName}: check that it is DynamoDB`;
        throw new LockStoreError(message, { answered: false });
    }
    const facts = description && factsOf(description);
    const problems = description === undefined ? [] : tableProblems(description, layout);
    const isExplained = (action) => problems.some(({ code }) => code === "keys") ||
        (facts?.consistency === "strong" && action === "ConditionCheckItem");
    for (const [action, answer] of answers) {
        if (answer.kind === "refused" || (answer.kind === "unknown" && !isExplained(action))) {
            problems.push(actionProblem(action, answer, layout));
        }
    }
    if (ttl.kind === "allowed" && facts?.consistency !== "strong")
        problems.push(...ttlProblems(ttl.found, layout));
    const usable = problems.every(({ severity }) => severity === "warning");
    const { TimeToLiveStatus: status = "DISABLED", AttributeName: attribute } = ttl.found ?? {};
    return {
        tableName,
        usable,
        problems: problems.sort((one, other) => one.severity.localeCompare(other.severity)),
        table: facts,
        ttl: ttl.kind === "allowed" ? { status, attribute } : undefined,
        batches,
        permissions: Object.fromEntries(answers.map(([action, { kind }]) => [action, kind])),
    };
}
