import { BatchExecuteStatementCommand, DeleteItemCommand, DescribeTableCommand, GetItemCommand, PutItemCommand, QueryCommand, ScanCommand, TransactWriteItemsCommand, UpdateItemCommand, } from "@aws-sdk/client-dynamodb";
import { CHANNELS } from "../diagnostics.js";
import { isOwn, sendThrough } from "./attempts.js";
import { isAboutTheKey, isAnswer, isInvalid, isRefusal, refusalsOf, storeFailure } from "./failures.js";
import { tell } from "./request-events.js";
import { tableAdvice } from "./table-indexes.js";
import { isStrong } from "./table-keys.js";
import { notTheTables, TableSign } from "./table-sign.js";
const COMMANDS = {
    GetItem: GetItemCommand,
    PutItem: PutItemCommand,
    UpdateItem: UpdateItemCommand,
    DeleteItem: DeleteItemCommand,
    Query: QueryCommand,
    Scan: ScanCommand,
    TransactWriteItems: TransactWriteItemsCommand,
    BatchExecuteStatement: BatchExecuteStatementCommand,
};
export function commandOf([operation, input]) {
    return new COMMANDS[operation](input);
}
const PERMISSIONS = {
    TransactWriteItems: "PutItem",
    BatchExecuteStatement: "PartiQLUpdate",
};
export class Transport {
    sign = new TableSign();
    #client;
    #layout;
    #clock;
    #isSeen;
    #proofs = new WeakSet();
    constructor(client, layout, clock) {
        this.#client = client;
        this.#layout = layout;
        this.#clock = clock;
        this.#isSeen = isOwn(client);
    }
    async send(request, signal, purpose) {
        const context = this.#contextFor(signal, this.#clock);
        const command = commandOf(request);
        const isMetered = purpose !== undefined && CHANNELS["dynamutex:request"].hasSubscribers;
        let reply;
        try {
            reply = await (isMetered ? this.#sendHeard(command, context, purpose) : this.#sendAs(command, context));
        }
        catch (error) {
            if (this.#isPlain(error, context))
                throw error;
            throw await this.#failure(error, request, signal, this.#progressOf(context));
        }
        this.#judgeAgain(context);
        if (reply !== undefined && context.isSigned)
            this.#proofs.add(reply);
        if (!context.isTold && this.believes(reply))
            (context.heard ?? context.listen())?.(undefined);
        return reply;
    }
    async sendCommand(command, action, signal) {
        const context = this.#contextFor(signal, undefined);
        try {
            const reply = await sendThrough(this.#client, command, context);
            this.#judgeAgain(context);
            return reply;
        }
        catch (error) {
            if (this.#isPlain(error, context))
                throw error;
            throw storeFailure(error, { action, tableName: this.#layout.tableName, ...this.#progressOf(context) });
        }
    }
    believes(reply) {
        if (this.#isSeen)
            return reply !== undefined && this.#proofs.has(reply);
        const { httpStatusCode, requestId } = reply?.$metadata ?? {};
        return httpStatusCode === undefined || requestId !== undefined;
    }
    close() {
        if (isOwn(this.#client))
            this.#client.destroy();
    }
    ask(request, signal, purpose) {
        return this.send(request, signal, purpose).catch(async (error) => {
            throw isRefusal(error) || refusalsOf(error) !== undefined ? error : await this.#failure(error, request, signal);
        });
    }
    async noTransactions(error, signal) {
        const table = isInvalid(error) ? await this.#describe(signal) : undefined;
        if (table === undefined || !isStrong(table))
            return undefined;
        const { tableName } = this.#layout;
        return storeFailure(error, { action: "TransactWriteItems", tableName, mismatch: noTransactionsOn(tableName) });
    }
    async #sendHeard(command, context, purpose) {
        const { input } = command;
        if (!("ClientRequestToken" in input))
            input.ReturnConsumedCapacity = "TOTAL";
        const leftAt = this.#clock.atLeast();
        const sent = () => ({ ms: this.#clock.atLeast() - leftAt, attempts: context.attempts });
        const reply = await this.#sendAs(command, context).catch((error) => {
            tell(purpose, { ...sent(), error });
            throw error;
        });
        tell(purpose, { ...sent(), consumed: reply?.ConsumedCapacity });
        return reply;
    }
    async #sendAs(command, context) {
        return (await sendThrough(this.#client, command, context));
    }
    #contextFor(signal, clock) {
        const listen = () => clock?.listen?.();
        const judge = (hasSign, status) => {
            this.#isSeen = true;
            context.isSigned = hasSign;
            return this.sign.admits(hasSign) ? undefined : notTheTables(this.#layout.tableName, status);
        };
        const context = { signal, listen, judge, isTold: false, attempts: 0 };
        return context;
    }
    #judgeAgain({ isSigned }) {
        if (isSigned === false && !this.sign.admits(false))
            throw notTheTables(this.#layout.tableName, undefined);
    }
    #isPlain(error, { attempts }) {
        return attempts > 0 ? isAnswer(error) : !this.#isSeen || !isAnswer(error);
    }
    #progressOf({ attempts }) {
        return { hasLeft: attempts > 0, isKnown: this.sign.isKnown };
    }
    async #failure(error, [operation], signal, progress) {
        const { tableName } = this.#layout;
        const asked = { action: PERMISSIONS[operation] ?? operation, tableName, ...progress };
        const noTransactions = operation === "TransactWriteItems" && (await this.noTransactions(error, signal));
        if (noTransactions)
            return noTransactions;
        if (isAboutTheKey(error)) {
            const table = await this.#describe(signal);
            return storeFailure(error, { ...asked, mismatch: table && tableAdvice(table, this.#layout) });
        }
        const region = await this.#client.config?.region?.().catch(() => undefined);
        return storeFailure(error, { ...asked, region });
    }
    async #describe(signal) {
        const command = new DescribeTableCommand({ TableName: this.#layout.tableName });
        const reply = await this.sendCommand(command, "DescribeTable", signal).catch(() => undefined);
        return reply?.Table;
    }
}
function noTransactionsOn(tableName) {
    return (`table ${tableName} is a global table with strong consistency, which has no transactions: take locks one by one in place of ` +
        "lockAll(), and in place of a guard compare the fencing token in a condition on the item itself (docs/regions.md in the package)");
}
