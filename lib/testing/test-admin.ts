import type { TableLayout } from "../options/table.js";
import { follow } from "../session/abort-listening.js";
import { persist, type Requests } from "../session/requests.js";
import type { TableAction, TableReport } from "../table-report.js";
import type { TestStore } from "./test-store.js";

/** The bounds of DynamoDB's requests about a table as a whole. */
const ATTEMPT_MS = 5_000;
const FIRST_ANSWER_MS = 10_000;

const ACTIONS: readonly TableAction[] = [
  "DescribeTable",
  "DescribeTimeToLive",
  "GetItem",
  "PutItem",
  "UpdateItem",
  "DeleteItem",
  "Query",
  "Scan",
  "ConditionCheckItem",
];

/** What `create()` and `check()` are about. */
export interface AdminCall {
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
}

/**
 * Asks whether the table answers, as `create()` and `check()` do, within the same bounds.
 * @throws {@link LockStoreError} if it does not; the reason of the caller's signal.
 */
export async function reached(
  store: TestStore,
  requests: Requests,
  action: string,
  { signal, timeoutMs = FIRST_ANSWER_MS }: AdminCall,
): Promise<void> {
  signal?.throwIfAborted();
  const end = requests.clock.atMost() + Math.min(timeoutMs, FIRST_ANSWER_MS);
  const persistence = { kind: "read", until: () => end, attemptMs: ATTEMPT_MS, enough: signal } as const;
  try {
    await persist(requests, persistence, async (ends) => {
      const either = new AbortController();
      const stopFollowing = follow([ends, signal], (reason) => either.abort(reason));
      await store.reach(action, either.signal).finally(stopFollowing);
    });
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
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
