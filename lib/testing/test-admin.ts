import { AdminRequests, FIRST_ANSWER_MS } from "../dynamodb/admin/admin-requests.js";
import { ACTIONS } from "../dynamodb/admin/findings.js";
import type { CreateOptions, TableLayout } from "../options/table.js";
import type { Requests } from "../session/requests.js";
import type { TableReport } from "../table-report.js";
import type { TestStore } from "./test-store.js";

/**
 * Asks whether the table answers, as `create()` and `check()` do, within the same bounds.
 * @throws {@link LockStoreError} if it does not; the reason of the caller's signal.
 */
export async function reached(
  store: TestStore,
  requests: Requests,
  action: string,
  { signal, timeoutMs = FIRST_ANSWER_MS }: CreateOptions,
): Promise<void> {
  const { tableName } = store.layout;
  await new AdminRequests({ tableName, requests, signal, timeoutMs }).ask(action, (ends) => store.reach(action, ends));
}

/** What `check()` finds: a table without a problem. */
export function report({ tableName, partition, sort, ttl }: TableLayout): TableReport {
  const actions = ACTIONS.filter((action) => action !== "Query" || sort !== undefined);
  return {
    tableName,
    usable: true,
    problems: [],
    table: { status: "ACTIVE", partition, sort, billing: "on-demand", replicas: [], consistency: undefined },
    ttl: { status: "ENABLED", attribute: ttl },
    batches: { usable: true, advice: undefined },
    permissions: Object.fromEntries(actions.map((action) => [action, "allowed"])),
  };
}
