import { LockStoreError } from "../../errors.js";
import { lockAt } from "../../protocol/addresses.js";
import { itemKey } from "../compile.js";
import { statedBy, statementOf } from "../statements.js";
import { commandOf } from "../transport.js";
import { isCausedBy, isNotImplemented } from "./admin-requests.js";
const PROBED_NAME = "dynamutex#check";
const NEVER = "attribute_exists(#name) AND attribute_not_exists(#name)";
export async function probeItems(plane, layout) {
    const { partition, sort, tableName: TableName } = layout;
    const Key = itemKey(layout, lockAt(PROBED_NAME));
    const ExpressionAttributeNames = { "#name": partition };
    const never = { TableName, ConditionExpression: NEVER, ExpressionAttributeNames };
    const query = {
        TableName,
        KeyConditionExpression: "#name = :name",
        ExpressionAttributeNames,
        ExpressionAttributeValues: { ":name": Key[partition] },
        Limit: 1,
    };
    const check = { ConditionCheck: { ...never, Key } };
    const requests = [
        ["GetItem", ["GetItem", { TableName, Key }]],
        ["PutItem", ["PutItem", { ...never, Item: Key }]],
        ["UpdateItem", ["UpdateItem", { ...never, Key }]],
        ["DeleteItem", ["DeleteItem", { ...never, Key }]],
        ...(sort === undefined ? [] : [["Query", ["Query", query]]]),
        ["Scan", ["Scan", { TableName, Limit: 1 }]],
        ["ConditionCheckItem", ["TransactWriteItems", { TransactItems: [check] }]],
    ];
    return await Promise.all(requests.map(async ([action, request]) => [action, await probe(sent(plane, action, request))]));
}
function sent(plane, action, request) {
    return plane.command(action, () => commandOf(request));
}
export async function probeBatches(plane, layout) {
    const uuid = PROBED_NAME;
    const renewal = { kind: "renew", at: lockAt(PROBED_NAME), uuid, expires: 1, remembers: "nothing" };
    const request = ["BatchExecuteStatement", { Statements: [statementOf(layout, renewal)] }];
    let stated;
    try {
        const reply = await sent(plane, "PartiQLUpdate", request);
        stated = statedBy(reply?.Responses?.[0], layout.tableName);
    }
    catch (error) {
        if (!(error instanceof LockStoreError))
            throw error;
        stated = { kind: "failed", error };
    }
    if (stated.kind !== "failed")
        return { usable: true, advice: undefined };
    const advice = `Locks of table ${layout.tableName} are renewed one by one: with the permission dynamodb:PartiQLUpdate, a process that ` +
        `holds eight or more renews up to 25 in a request, at the same price (${stated.error.message})`;
    return { usable: false, advice };
}
export async function probe(request) {
    try {
        return { kind: "allowed", found: await request };
    }
    catch (error) {
        const cause = error;
        if (isCausedBy(error, "ConditionalCheckFailedException", "TransactionCanceledException")) {
            return { kind: "allowed", found: undefined };
        }
        if (isCausedBy(error, "AccessDeniedException", "AccessDenied"))
            return { kind: "refused", cause };
        if (isCausedBy(error, "ResourceNotFoundException"))
            return { kind: "missing", cause };
        if (isNotImplemented(error))
            return { kind: "unknown", cause };
        if (isCausedBy(error, "ValidationException"))
            return { kind: "unknown", cause };
        throw error;
    }
}
