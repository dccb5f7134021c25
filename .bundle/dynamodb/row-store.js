import { isStillHeldBy, vacateKept } from "../protocol/was-applied.js";
import { listenWithoutBound } from "../session/abort-listening.js";
import { actionOf } from "./compile.js";
import { bytesOf, checkResult, marshalledData } from "./data.js";
import { admitItems, documentGuard } from "./guards.js";
import { RenewalBatches } from "./renewal-batches.js";
import { notShown, stillInDoubt } from "./table-sign.js";
export class RowStore {
    layout;
    sign;
    #renewals;
    constructor(layout, sign) {
        this.layout = layout;
        this.sign = sign;
        this.#renewals = new RenewalBatches({
            one: (renewal, signal) => this.writeOne(renewal, signal),
            all: (renewals, signal, signals) => this.renewAll(renewals, signal, signals),
        });
    }
    get isKnown() {
        return this.sign.isKnown;
    }
    async write(write, signal) {
        if (write.kind === "renew" && write.data === undefined)
            return await this.#renewals.write(write, signal);
        if (write.kind === "vacate")
            this.#renewals.note(write.at, 0);
        const data = write.kind !== "put-result" && "data" in write ? write.data : undefined;
        if (data !== undefined)
            this.#renewals.note(write.at, bytesOf(data));
        const outcome = await this.writeOne(write, signal);
        if (outcome.kind === "refused" && grants(write))
            this.#learn(write, outcome.row);
        const again = outcome.kind === "refused" ? vacateKept(write, outcome.row) : undefined;
        return again === undefined ? outcome : await this.writeOne(again, signal);
    }
    async readBack(write, signal) {
        return { kind: "refused", row: await this.#rowAfter(write, signal), retried: true };
    }
    async readBackAll(writes, signal) {
        return { kind: "refused", rows: await eachOf(writes, signal, (write) => this.#rowAfter(write, signal)) };
    }
    async #rowAfter({ at, uuid }, signal) {
        const row = await this.read(at, { consistent: true }, signal).catch((error) => {
            throw stillInDoubt(error);
        });
        if (row === undefined)
            throw notShown(this.layout.tableName, this.sign.isKnown);
        this.#learn({ uuid }, row);
        return row;
    }
    #learn({ uuid }, row) {
        if (isStillHeldBy(uuid, row))
            this.sign.prove();
    }
    admit(data) {
        if (data !== undefined)
            marshalledData(data);
    }
    admitResult(data) {
        checkResult(data);
    }
    guard(guard) {
        return actionOf(this.layout, guard);
    }
    documentGuard(guard) {
        return documentGuard(this.layout, guard);
    }
    admitItems(at, items) {
        admitItems(this.layout, at, items);
    }
}
export function eachOf(all, signal, ask) {
    listenWithoutBound(signal);
    return Promise.all(all.map(ask));
}
export function grants(write) {
    return write.kind === "take" || write.kind === "reissue" || write.kind === "transfer";
}
