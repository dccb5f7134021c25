import { LockStoreError } from "../../errors.js";
import type { CheckOptions } from "../../options/calls.js";
import type { TableLayout } from "../../options/table.js";
import type { Requests } from "../../session/requests.js";
import type { TableAction, TableReport } from "../../table-report.js";
import type { Transport } from "../transport.js";
import { ControlPlane } from "./control-plane.js";
import { actionProblem, factsOf, missingReport, tableProblems, ttlProblems } from "./findings.js";
import { type Probe, probe, probeBatches, probeItems } from "./probes.js";

const DEFAULT_TIMEOUT_MS = 30_000;

/**
 * Finds out whether locks work on a table, without changing anything:
 *
 * 1. Describes the table, which may be refused.
 * 2. If it exists: describes its TTL, and tries each action on items, and a batch, with a request whose condition never holds.
 * 3. Reports the problems, and what to do about each.
 *
 * @throws {@link LockStoreError} if the table cannot be reached, or DynamoDB does not know the credentials.
 */
export async function checkTable(
  transport: Transport,
  layout: TableLayout,
  { signal, timeoutMs = DEFAULT_TIMEOUT_MS }: CheckOptions,
  requests: Requests,
): Promise<TableReport> {
  const { tableName } = layout;
  const plane = new ControlPlane(transport, { tableName: layout.tableName, requests, signal, timeoutMs });
  const table = await probe(plane.describeTable());
  if (table.kind === "missing") return missingReport(layout);
  const [ttl, items, batches] = await Promise.all([
    probe(plane.describeTtl()),
    probeItems(plane, layout),
    probeBatches(plane, layout),
  ]);
  const answers: (readonly [TableAction, Probe])[] = [["DescribeTable", table], ["DescribeTimeToLive", ttl], ...items];
  if (answers.some(([, { kind }]) => kind === "missing")) return missingReport(layout);
  const description = table.found;
  if (table.kind === "allowed" && description === undefined) {
    const message = `The endpoint does not describe table ${tableName}: check that it is DynamoDB`;
    throw new LockStoreError(message, { answered: false });
  }
  const facts = description && factsOf(description);
  const problems = description === undefined ? [] : tableProblems(description, layout);
  // A key that does not fit explains every other refusal, and strong consistency explains that of a transaction.
  const isExplained = (action: TableAction): boolean =>
    problems.some(({ code }) => code === "keys") ||
    (facts?.consistency === "strong" && action === "ConditionCheckItem");
  for (const [action, answer] of answers) {
    if (answer.kind === "refused" || (answer.kind === "unknown" && !isExplained(action))) {
      problems.push(actionProblem(action, answer, layout));
    }
  }
  // A table with strong consistency cannot have a TTL: its replica problem says so.
  if (ttl.kind === "allowed" && facts?.consistency !== "strong") problems.push(...ttlProblems(ttl.found, layout));
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
