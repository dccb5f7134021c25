import { storeFailure } from "../dynamodb/failures.js";
import { RowStore } from "../dynamodb/row-store.js";
import { TableSign } from "../dynamodb/table-sign.js";
import { LockStoreError } from "../errors.js";
import { leftBy } from "../protocol/rules.js";
import { onAbort } from "../session/abort-listening.js";
export class TestStore extends RowStore {
    condition;
    #options;
    constructor(options) {
        super(options.layout, new TableSign());
        this.sign.prove();
        this.#options = options;
        this.condition = options.condition;
    }
    async reach(action, signal) {
        if (signal.aborted)
            throw aborted(signal);
        const { condition } = this;
        if (condition === "answers")
            return this.#options.table;
        if (condition !== "silent")
            throw storeFailure(condition.error, { action, tableName: this.layout.tableName });
        const leave = this.#options.clock.stay?.();
        return await new Promise((_, reject) => {
            onAbort(signal, () => reject(aborted(signal)));
        }).finally(leave);
    }
    async writeOne(write, signal) {
        const { kind } = leftBy(write);
        const action = kind === "put" ? "PutItem" : kind === "delete" ? "DeleteItem" : "UpdateItem";
        return (await this.reach(action, signal)).write(write);
    }
    async renewAll(renewals, signal) {
        return (await this.reach("PartiQLUpdate", signal)).renewAll(renewals);
    }
    async writeAll(writes, signal) {
        return (await this.reach("PutItem", signal)).writeAll(writes);
    }
    async read(at, _options, signal) {
        return (await this.reach("GetItem", signal)).read(at);
    }
    async query(query, signal) {
        return (await this.reach("Query", signal)).query(query);
    }
    async scan(prefix, after, signal) {
        return (await this.reach("Scan", signal)).scan(prefix, after);
    }
    async transact(writes, signal) {
        return (await this.reach("TransactWriteItems", signal)).transact(writes, this.#options.applyWrites);
    }
    guard(check) {
        return this.#noted(super.guard(check), check);
    }
    documentGuard(check) {
        return this.#noted(super.documentGuard(check), check);
    }
    close() { }
    #noted(guard, check) {
        this.#options.onGuard(guard, check);
        return guard;
    }
}
function aborted(signal) {
    return new LockStoreError("aborted", { transient: true, answered: false, cause: signal.reason });
}
