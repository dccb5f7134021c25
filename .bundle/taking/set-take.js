import { removeWhenTheyArrive } from "./abandoned-claims.js";
import { RowTake } from "./row-take.js";
export class SetTake {
    #session;
    #takes;
    constructor(session, { sightings }, targets, data) {
        this.#session = session;
        this.#takes = targets.map((target) => new RowTake(session, sightings, target, { data }));
    }
    get uuids() {
        return this.#takes.flatMap(({ uuids }) => uuids);
    }
    get sentAt() {
        return Math.min(...this.#takes.map(({ sentAt }) => sentAt));
    }
    send(signal) {
        const writes = this.#takes.map(({ write }) => write);
        return this.#session.store.writeAll(writes, signal);
    }
    granted(outcome) {
        if (outcome.kind === "applied")
            return this.#takes.map((take) => take.taken(undefined, {}));
        const { rows } = outcome;
        if (!this.#takes.every((take, index) => take.isOwn(rows[index])))
            return undefined;
        return this.#takes.map((take, index) => take.taken(rows[index], { fence: rows[index]?.fence }));
    }
    refused(outcome) {
        const rows = outcome.kind === "refused" ? outcome.rows : [];
        return this.#takes.flatMap((take, index) => take.refusedBy(rows[index]));
    }
    abandon() {
        if (this.sentAt === Number.POSITIVE_INFINITY)
            return;
        for (const take of this.#takes)
            take.giveUp();
        const leases = this.#takes.map((take) => take.lease());
        removeWhenTheyArrive(this.#session, leases);
    }
}
