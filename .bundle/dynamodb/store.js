import { LockStoreError } from "../errors.js";
import { countOf, drawnBy } from "../protocol/rules.js";
import { isStillHeldBy } from "../protocol/was-applied.js";
import { actionOf, itemKey } from "./compile.js";
import { isConflict, isRefusal, isRefusedItem, refusalsOf } from "./failures.js";
import { refusalOfGuard } from "./guards.js";
import { attributesOf, foreign, queryOf, rangePageOf, rowOf, scanOf, scanPageOf } from "./items.js";
import { eachOf, grants, RowStore } from "./row-store.js";
import { statedBy, statementOf } from "./statements.js";
export class DynamoDbStore extends RowStore {
    #transport;
    constructor(layout, transport) {
        super(layout, transport.sign);
        this.#transport = transport;
    }
    async writeAll(writes, signal) {
        const TransactItems = writes.map((write) => actionOf(this.layout, write));
        let reply;
        try {
            const purpose = { kind: "take-all", at: writes[0]?.at };
            reply = await this.#transport.ask(["TransactWriteItems", { TransactItems }], signal, purpose);
        }
        catch (error) {
            const reasons = isRefusal(error) ? writes.map(() => REFUSED) : refusalsOf(error);
            if (reasons === undefined)
                throw error;
            return await this.#allRefused(writes, reasons, signal);
        }
        if (!this.#transport.believes(reply))
            return await this.readBackAll(writes, signal);
        return { kind: "applied" };
    }
    async read(at, options, signal) {
        const item = await this.#get(at, options.consistent, signal);
        return item && rowOf(this.layout, at, item);
    }
    async query(query, signal) {
        const request = ["Query", queryOf(this.layout, query)];
        return rangePageOf(this.layout, await this.#transport.ask(request, signal, { kind: "query", at: query }));
    }
    async scan(prefix, after, signal) {
        const request = ["Scan", scanOf(this.layout, prefix, after)];
        return scanPageOf(this.layout, await this.#transport.ask(request, signal, { kind: "scan" }));
    }
    async transact({ items, guard, token, isMetered }, signal) {
        const TransactItems = [...items, this.guard(guard)];
        const metered = isMetered ? { ReturnConsumedCapacity: "TOTAL" } : undefined;
        const input = { TransactItems, ClientRequestToken: token, ...metered };
        try {
            await this.#transport.send(["TransactWriteItems", input], signal, { kind: "transact", at: guard.at });
            return { kind: "committed" };
        }
        catch (error) {
            const refusal = refusalOfGuard(error, items.length, this.layout.tableName);
            if (refusal === undefined) {
                return { kind: "refused", error: (await this.#transport.noTransactions(error, signal)) ?? error };
            }
            return { kind: "unguarded", row: await this.#refusing(guard.at, refusal.Item, signal) };
        }
    }
    close() {
        this.#transport.close();
    }
    async writeOne(write, signal) {
        let reply;
        try {
            reply = await this.#transport.ask(requestOf(this.layout, write), signal, write);
        }
        catch (error) {
            if (!isRefusal(error))
                throw error;
            const retried = (error.$metadata?.attempts ?? 1) > 1;
            return { kind: "refused", row: await this.#refusingOne(write, error.Item, signal), retried };
        }
        if (grants(write) && !this.#transport.believes(reply))
            return await this.readBack(write, signal);
        const before = reply?.Attributes;
        try {
            return { kind: "applied", replaced: this.#shown(write, before), drawn: this.#drawn(write, before) };
        }
        catch (error) {
            if (before !== undefined && isRowShown(write, false))
                await this.#putBack(write, before, signal);
            throw error;
        }
    }
    async renewAll(renewals, signal, signals) {
        const { tableName } = this.layout;
        const Statements = renewals.map((renewal) => statementOf(this.layout, renewal));
        const purpose = { kind: "renew-all", at: renewals[0]?.at };
        const reply = await this.#transport.ask(["BatchExecuteStatement", { Statements }], signal, purpose);
        const { Responses: responses, $metadata } = reply ?? {};
        if (responses === undefined)
            throw new LockStoreError(`The client of table ${tableName} answers no batches`);
        const retried = ($metadata?.attempts ?? 1) > 1;
        return renewals.map((renewal, index) => {
            const stated = statedBy(responses[index], tableName);
            if (stated.kind === "failed")
                return stated.error;
            if (stated.kind === "applied")
                return { kind: "applied", replaced: this.#shown(renewal, stated.item), drawn: undefined };
            const row = this.#refusingOne(renewal, stated.item, signals[index] ?? signal);
            return row.then((refusedBy) => ({ kind: "refused", row: refusedBy, retried }));
        });
    }
    async #refusingOne({ kind, at }, shown, signal) {
        const item = shown ?? (await this.#get(at, true, signal));
        if (item === undefined && (kind === "take" || kind === "draw")) {
            const message = `The row of lock ${at.name} was in the way and then was gone: try again`;
            throw new LockStoreError(message, { transient: true });
        }
        if (kind === "draw")
            throw foreign(this.layout, item ?? {}, NO_COUNTER);
        return item && rowOf(this.layout, at, item);
    }
    async #allRefused(writes, reasons, signal) {
        const rows = await eachOf(writes, signal, async ({ at }, index) => {
            const reason = reasons[index];
            return reason && isRefusedItem(reason) ? await this.#refusing(at, reason.Item, signal) : undefined;
        });
        const isAnothers = writes.some(({ kind, uuid }, index) => {
            const [row, reason] = [rows[index], reasons[index]];
            return row === undefined ? kind === "transfer" && reason && isRefusedItem(reason) : !isStillHeldBy(uuid, row);
        });
        if (isAnothers || (rows.every((row) => row !== undefined) && !reasons.some(isConflict))) {
            return { kind: "refused", rows };
        }
        const message = `The ${writes.length} rows changed while they were taken: try again`;
        throw new LockStoreError(message, { transient: true });
    }
    async #refusing(at, shown, signal) {
        const item = shown ?? (await this.#get(at, true, signal));
        return item && rowOf(this.layout, at, item);
    }
    async #get(at, consistent, signal) {
        const { tableName: TableName } = this.layout;
        const input = { TableName, Key: itemKey(this.layout, at), ConsistentRead: consistent };
        return (await this.#transport.ask(["GetItem", input], signal, { kind: "read", at }))?.Item;
    }
    #shown(write, item) {
        if (item === undefined || !isRowShown(write, item.wanted !== undefined))
            return undefined;
        try {
            return rowOf(this.layout, write.at, item);
        }
        catch (error) {
            if (write.kind === "take" || (write.kind === "transfer" && write.fenced))
                throw error;
            return undefined;
        }
    }
    async #putBack(write, Item, signal) {
        const uuid = "uuid" in write ? write.uuid : "";
        const condition = {
            ConditionExpression: "#uuid = :uuid",
            ExpressionAttributeNames: { "#uuid": "uuid" },
            ExpressionAttributeValues: { ":uuid": { S: uuid } },
        };
        const request = ["PutItem", { TableName: this.layout.tableName, Item, ...condition }];
        await this.#transport.ask(request, signal, write).catch(() => undefined);
    }
    #drawn(write, before) {
        if (countOf(write) === undefined)
            return undefined;
        const drawn = drawnBy(write, before && attributesOf(this.layout, before));
        if (drawn !== undefined)
            return drawn;
        throw foreign(this.layout, before ?? {}, write.kind === "draw" ? NO_COUNTER : "its fence must be a whole number");
    }
}
export function requestOf(layout, write) {
    const { Put, Update, Delete, ConditionCheck } = actionOf(layout, write);
    const ReturnValues = returnedBy(write);
    if (Put !== undefined)
        return ["PutItem", { ...Put, ReturnValues }];
    if (Delete !== undefined)
        return ["DeleteItem", { ...Delete, ReturnValues }];
    if (Update !== undefined)
        return ["UpdateItem", { ...Update, ReturnValues }];
    return ["UpdateItem", { TableName: layout.tableName, Key: itemKey(layout, write.at), ...ConditionCheck }];
}
function returnedBy(write) {
    if (isRowShown(write, true))
        return "ALL_OLD";
    return countOf(write) === undefined ? undefined : "UPDATED_OLD";
}
function isRowShown({ kind }, isMarked) {
    return kind === "take" || kind === "transfer" || ((kind === "vacate" || kind === "renew") && isMarked);
}
const REFUSED = { Code: "ConditionalCheckFailed" };
const NO_COUNTER = "it does not count tickets";
