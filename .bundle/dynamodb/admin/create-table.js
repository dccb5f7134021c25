import { CreateTableCommand, UpdateTimeToLiveCommand, } from "@aws-sdk/client-dynamodb";
import { LockStoreError } from "../../errors.js";
import { tableAdvice } from "../table-indexes.js";
import { isStrong } from "../table-keys.js";
import { isCausedBy, isNotImplemented } from "./admin-requests.js";
import { ControlPlane } from "./control-plane.js";
import { noTtl } from "./findings.js";
const DEFAULT_TIMEOUT_MS = 120_000;
export async function createTable(transport, layout, { signal, timeoutMs = DEFAULT_TIMEOUT_MS, tags }, requests) {
    const plane = new ControlPlane(transport, { tableName: layout.tableName, requests, signal, timeoutMs });
    const table = await activeTable(plane, layout, tags);
    const mismatch = tableAdvice(table, layout);
    if (mismatch !== undefined)
        throw new LockStoreError(mismatch);
    if (isStrong(table))
        return;
    await enableTtl(plane, layout).catch((error) => {
        if (!isNotImplemented(error))
            throw error;
        process.emitWarning(noTtl(layout.tableName), "DynamutexWarning");
    });
}
async function activeTable(plane, layout, tags) {
    for (let isCreated = false;;) {
        const table = await plane.describeTable().catch((error) => {
            if (isCausedBy(error, "ResourceNotFoundException"))
                return undefined;
            throw error;
        });
        const status = table?.TableStatus;
        if (table === undefined || status === undefined) {
            if (isCreated)
                await plane.pause("it does not show yet");
            await create(plane, layout, tags);
            isCreated = true;
        }
        else if (status === "ACTIVE" || status === "UPDATING")
            return table;
        else if (status === "CREATING" || status === "DELETING")
            await plane.pause(`it is ${status}`);
        else
            throw new LockStoreError(`Table ${layout.tableName} cannot be used: it is ${status}`);
    }
}
async function create(plane, layout, tags) {
    const names = [layout.partition, layout.sort].filter((name) => name !== undefined);
    const input = {
        TableName: layout.tableName,
        BillingMode: "PAY_PER_REQUEST",
        AttributeDefinitions: names.map((AttributeName) => ({ AttributeName, AttributeType: "S" })),
        KeySchema: names.map((AttributeName, index) => ({ AttributeName, KeyType: index === 0 ? "HASH" : "RANGE" })),
        ...(tags && { Tags: Object.entries(tags).map(([Key, Value]) => ({ Key, Value })) }),
    };
    const make = () => new CreateTableCommand(input);
    try {
        await plane.command("CreateTable", make);
    }
    catch (error) {
        if (!isCausedBy(error, "ResourceInUseException"))
            throw error;
    }
}
async function enableTtl(plane, layout) {
    const TimeToLiveSpecification = { AttributeName: layout.ttl, Enabled: true };
    const make = () => new UpdateTimeToLiveCommand({ TableName: layout.tableName, TimeToLiveSpecification });
    let refusal;
    while (!(await isTtlEnabled(plane, layout))) {
        if (refusal !== undefined)
            throw refusal;
        try {
            await plane.command("UpdateTimeToLive", make);
            return;
        }
        catch (error) {
            if (isCausedBy(error, "ValidationException"))
                refusal = error;
            else if (!isCausedBy(error, "ResourceInUseException"))
                throw error;
            await plane.pause("its TTL is not on");
        }
    }
}
async function isTtlEnabled(plane, { tableName, ttl }) {
    const { TimeToLiveStatus: status, AttributeName: attribute } = (await plane.describeTtl()) ?? {};
    if (status === "DISABLING") {
        throw new LockStoreError(`The TTL of table ${tableName} is being switched off, which takes up to an hour: try again when that is done`);
    }
    if (status !== "ENABLED" && status !== "ENABLING")
        return false;
    if (attribute === ttl)
        return true;
    throw new LockStoreError(`Table ${tableName} does not fit: its TTL attribute is ${attribute}, and the option keys.ttl says ${ttl}. ` +
        "It was left as it is: correct the option, or choose another table");
}
