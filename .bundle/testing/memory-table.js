import { inspect } from "node:util";
import { storedData } from "../dynamodb/data.js";
import { LockStoreError } from "../errors.js";
import { kindOf } from "../protocol/addresses.js";
import { apply } from "../protocol/apply.js";
import { parseRow } from "../protocol/row.js";
import { drawnBy } from "../protocol/rules.js";
import { BadRow, sorted, } from "../store.js";
export function isHolder({ sort }) {
    const kind = kindOf(sort);
    return kind !== undefined && kind !== "place" && kind !== "result";
}
const PAGE_ITEMS = 3;
export class MemoryTable {
    #partitions = new Map();
    #transacted = new Map();
    #pageItems;
    constructor({ pageItems = PAGE_ITEMS } = {}) {
        this.#pageItems = pageItems;
    }
    get names() {
        return [...this.#partitions].filter(([, items]) => items.size > 0).map(([name]) => name);
    }
    get rows() {
        return this.#items.flatMap(([at, item]) => rowIn(at, item) ?? []);
    }
    get committed() {
        return [...this.#transacted.values()].flatMap(({ writes, outcome }) => outcome.kind === "committed" ? writes : []);
    }
    partition(name) {
        return this.#partitions.get(name) ?? new Map();
    }
    item({ name, sort }) {
        return this.partition(name).get(sort);
    }
    row(at) {
        return rowIn(at, this.item(at));
    }
    plant({ name, sort }, item) {
        const changed = new Map(this.partition(name));
        if (item === undefined)
            changed.delete(sort);
        else
            changed.set(sort, item);
        this.#partitions.set(name, changed);
    }
    apply(write) {
        const applied = apply(this.item(write.at), detached(write));
        if (applied.kind === "applied" && applied.after !== applied.before)
            this.plant(write.at, applied.after);
        return applied;
    }
    applyAll(writes) {
        const wouldBe = writes.map((write) => apply(this.item(write.at), detached(write)));
        return wouldBe.some(({ kind }) => kind === "refused") ? wouldBe : writes.map((write) => this.apply(write));
    }
    write(write) {
        return outcomeOf(write, this.apply(write));
    }
    renewAll(renewals) {
        const keys = new Set(renewals.map(({ at }) => `${at.sort}/${at.name}`));
        if (keys.size < renewals.length)
            throw new LockStoreError("a batch has a row twice");
        return renewals.map((renewal) => this.#renewed(renewal));
    }
    writeAll(writes) {
        const applied = this.applyAll(writes);
        if (applied.every(({ kind }) => kind === "applied"))
            return { kind: "applied" };
        const rows = writes.map(({ at }, index) => {
            const one = applied[index];
            return one?.kind === "refused" ? parsed(at, one.by) : undefined;
        });
        return { kind: "refused", rows };
    }
    transact(writes, applyItems = () => undefined) {
        const { guard, items, token } = writes;
        const before = this.#transacted.get(token);
        if (before !== undefined)
            return before.outcome;
        const checked = this.apply(guard);
        if (checked.kind === "refused")
            return { kind: "unguarded", row: parsed(guard.at, checked.by) };
        const outcome = applied(items, applyItems);
        this.#transacted.set(token, { writes, outcome });
        return outcome;
    }
    read(at) {
        return parsed(at, this.item(at));
    }
    query({ name, first, last, after = "", limit }) {
        const inOrder = [...this.partition(name)]
            .filter(([sort]) => sort >= first && sort <= last && sort > after)
            .sort(([one], [other]) => (one < other ? -1 : 1));
        const most = Math.min(limit, this.#pageItems);
        const page = inOrder.slice(0, most);
        const ours = page.filter(([sort]) => kindOf(sort) !== undefined);
        const next = page.length === most ? page.at(-1)?.[0] : undefined;
        return { ...sorted(ours, ([sort, item]) => parsed({ name, sort }, item)), next };
    }
    scan(prefix, after) {
        const keys = this.#items.map(([at, item]) => ({ at, item, key: `${at.name}\0${at.sort}` }));
        const rest = keys
            .sort((one, other) => (one.key < other.key ? -1 : 1))
            .filter(({ key }) => after === undefined || key > after.key);
        const page = rest.slice(0, this.#pageItems);
        const locks = page.filter(({ at }) => isHolder(at) && at.name.startsWith(prefix));
        const { rows, bad } = sorted(locks, ({ at, item }) => parsed(at, item));
        const damaged = bad.filter(({ isDamaged }) => isDamaged);
        return { rows, bad: damaged, next: rest.length > this.#pageItems ? { key: page.at(-1)?.key } : undefined };
    }
    #renewed(renewal) {
        try {
            return this.write(renewal);
        }
        catch (error) {
            if (error instanceof LockStoreError)
                return error;
            throw error;
        }
    }
    get #items() {
        return [...this.#partitions].flatMap(([name, items]) => [...items].map(([sort, item]) => [{ name, sort }, item]));
    }
}
function outcomeOf(write, applied) {
    if (applied.kind === "refused")
        return { kind: "refused", row: parsed(write.at, applied.by), retried: false };
    const isMarked = applied.before?.wanted !== undefined;
    const isTaken = write.kind === "take" || write.kind === "transfer";
    const isOfHolder = write.kind === "vacate" || write.kind === "renew";
    const replaced = isTaken || (isOfHolder && isMarked) ? parsed(write.at, applied.before) : undefined;
    return { kind: "applied", replaced, drawn: drawnBy(write, applied.before) };
}
function applied(items, applyItems) {
    try {
        applyItems(items);
        return { kind: "committed" };
    }
    catch (error) {
        return { kind: "refused", error };
    }
}
function parsed(at, item) {
    if (item === undefined)
        return undefined;
    const result = parseRow(at, item);
    if ("row" in result)
        return result.row;
    const owner = typeof item.owner === "string" ? item.owner : undefined;
    throw new BadRow(`not a lock: ${result.problem}: ${inspect(item)}`, at, { isDamaged: result.isDamaged, owner });
}
function rowIn(at, item) {
    const result = item && parseRow(at, item);
    return result && "row" in result ? result.row : undefined;
}
function detached(write) {
    return "data" in write && write.data !== undefined ? { ...write, data: storedData(write.data) } : write;
}
