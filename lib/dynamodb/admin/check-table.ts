import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { LockStoreError } from "../../errors.js";
import type { CheckOptions } from "../../options/operations.js";
import type { TableLayout } from "../../options/table.js";
import type { TableAction, TableProblem, TableReport } from "../../table-report.js";
import type { Clock } from "../../time/clock.js";
import { ControlPlane } from "./control-plane.js";
import { factsOf, missingProblem, refusedProblem, tableProblems, ttlProblems, unknownProblem } from "./findings.js";
import { type Probe, Probes } from "./probes.js";

const DEFAULT_TIMEOUT_MS = 30_000;

/**
 * Finds out whether locks work on a table, and changes nothing about it:
 *
 * 1. Reads its description, which may be refused.
 * 2. Unless there is no table: reads the state of its TTL, and tries each action on items by a request whose condition
 *    never holds.
 * 3. Says what is the matter, and what to do about it.
 *
 * @throws {@link LockStoreError} if the table cannot be reached, or the credentials are nobody's.
 */
export async function checkTable(
  client: DynamoDBClient,
  layout: TableLayout,
  { signal, timeoutMs = DEFAULT_TIMEOUT_MS }: CheckOptions,
  clock: Clock,
): Promise<TableReport> {
  const { tableName } = layout;
  const probes = new Probes(new ControlPlane({ client, tableName, clock, signal, timeoutMs }), layout);
  const table = await probes.table();
  if (table.kind === "missing") return reportOf(layout, [missingProblem(layout)], { table });
  const [ttl, items] = await Promise.all([probes.ttl(), probes.items()]);
  const answers = new Map<TableAction, Probe>([["DescribeTable", table], ["DescribeTimeToLive", ttl], ...items]);
  if ([...answers.values()].some(({ kind }) => kind === "missing")) {
    return reportOf(layout, [missingProblem(layout)], { table });
  }
  if (table.kind === "allowed" && table.found === undefined) {
    throw new LockStoreError(`The endpoint does not describe table ${tableName}: check that it is DynamoDB`, {
      answered: false,
    });
  }
  const description = foundBy(table);
  const facts = description && factsOf(description);
  const problems = description === undefined ? [] : tableProblems(description, layout);
  // A key that does not fit explains what else is refused; that a table has no transactions explains that it refuses one.
  const isExplained = (action: TableAction): boolean =>
    problems.some(({ code }) => code === "keys") ||
    (facts?.consistency === "strong" && action === "ConditionCheckItem");
  for (const [action, answer] of answers) {
    if (answer.kind === "refused") problems.push(refusedProblem(action, answer.cause, layout));
    if (answer.kind === "unknown" && !isExplained(action)) problems.push(unknownProblem(action, answer.cause, layout));
  }
  if (ttl.kind === "allowed") problems.push(...ttlProblems(ttl.found, layout, facts));
  return reportOf(layout, problems, { table, ttl, answers });
}

function reportOf(
  { tableName }: TableLayout,
  problems: readonly TableProblem[],
  probed: {
    readonly table: Awaited<ReturnType<Probes["table"]>>;
    readonly ttl?: Awaited<ReturnType<Probes["ttl"]>>;
    readonly answers?: ReadonlyMap<TableAction, Probe>;
  },
): TableReport {
  const errors = problems.filter(({ severity }) => severity === "error");
  const warnings = problems.filter(({ severity }) => severity === "warning");
  const description = foundBy(probed.table);
  const { ttl } = probed;
  const permissions: Partial<Record<TableAction, "allowed" | "refused" | "unknown">> = {};
  for (const [action, { kind }] of probed.answers ?? []) permissions[action] = kind === "missing" ? "unknown" : kind;
  return {
    tableName,
    usable: errors.length === 0,
    problems: [...errors, ...warnings],
    table: description && factsOf(description),
    ttl:
      ttl?.kind === "allowed"
        ? { status: ttl.found?.TimeToLiveStatus ?? "DISABLED", attribute: ttl.found?.AttributeName }
        : undefined,
    permissions,
  };
}

function foundBy<Found>(probe: Probe<Found>): Found | undefined {
  return probe.kind === "allowed" ? probe.found : undefined;
}
