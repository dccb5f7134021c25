import { AdminRequests, FIRST_ANSWER_MS } from "../dynamodb/admin/admin-requests.js";
import { ACTIONS } from "../dynamodb/admin/findings.js";
export async function reached(store, requests, action, { signal, timeoutMs = FIRST_ANSWER_MS }) {
    const { tableName } = store.layout;
    await new AdminRequests({ tableName, requests, signal, timeoutMs }).ask(action, (ends) => store.reach(action, ends));
}
export function report({ tableName, partition, sort, ttl }) {
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
