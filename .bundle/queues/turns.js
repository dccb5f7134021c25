import { firstTimeoutMs, sendOnce } from "../session/requests.js";
import { rowsOf } from "../session/session.js";
export class Turns {
    #session;
    constructor(session) {
        this.#session = session;
    }
    async standBack(resource, wait) {
        const { clock, owner } = this.#session;
        const othersTurn = this.#session.contention?.othersTurnOf(resource.at);
        if (othersTurn === undefined)
            return;
        const { at, lookAt, until } = othersTurn;
        const contention = this.#session.contended();
        const { endSignal } = wait;
        const lookInMs = lookAt - clock.atLeast();
        if (lookInMs > 0) {
            await clock.sleep(lookInMs, endSignal);
            const look = await wait.call.inContext(() => this.#look(at, resource.settings, endSignal));
            const row = look?.row;
            if (row !== undefined && (row.uuid !== undefined || row.owner !== owner))
                contention.waitsFor(row);
            else if (look !== undefined)
                contention.nobodyCame(at);
        }
        const restMs = until - clock.atLeast();
        if (restMs > 0)
            await clock.sleep(restMs, endSignal);
    }
    async mayPass(own) {
        const { row, settings } = own.lease;
        const now = this.#session.clock.atLeast();
        if (now - own.lookedAt >= settings.handOverMs && !this.isOver(own)) {
            if (row.others !== undefined)
                return false;
            own.lookedAt = now;
            const seen = (await this.#look(row.at, settings))?.row;
            if (seen?.wanted !== undefined)
                this.#session.contended().sees(seen);
            if (seen !== undefined && seen.uuid === undefined)
                own.admitsNobody = true;
        }
        return !this.isOver(own);
    }
    isOver({ lease, resource, admitsNobody }) {
        if (lease.settings.fair || resource.kind.sectionsShareLease)
            return false;
        return admitsNobody || lease.turnLeftMs <= 0;
    }
    end(own) {
        const { row, settings } = own.lease;
        if (!this.isOver(own))
            return;
        const contention = this.#session.contended();
        const over = rowsOf(row).filter(({ at }) => contention.isTurnOver(at, settings.handOverMs));
        for (const { at } of over.length > 0 ? over : [row])
            contention.giveTurn(at, settings.poll.maxMs);
    }
    async #look(at, { ttlMs }, endSignal) {
        const { store } = this.#session;
        const request = { kind: "read", firstTimeoutMs: firstTimeoutMs(ttlMs), endSignal };
        const look = sendOnce(this.#session, request, (signal) => store.read(at, { consistent: false }, signal));
        return await look.then((row) => ({ row }), () => undefined);
    }
}
