import { looksFree } from "../taking/claim.js";
import { Polling } from "../taking/polling.js";
import { ANSWERS, blockedFromNow, watch } from "../taking/watch.js";
const GROWTH = 4;
export class SetWatch {
    #session;
    #wait;
    #refusers = new Map();
    #blocked;
    #polling;
    constructor(session, wait, { settings }) {
        this.#session = session;
        this.#wait = wait;
        this.#polling = new Polling(session, settings.poll);
        this.#blocked = blockedFromNow(session);
    }
    restart() {
        this.#blocked = blockedFromNow(this.#session);
    }
    async untilFree(refusers) {
        for (const inTheWay of refusers)
            this.#refusers.set(inTheWay.target.at.name, inTheWay);
        let held = refusers.find((inTheWay) => this.#isHeld(inTheWay));
        if (held === undefined)
            return await this.#wait.again();
        const answers = ANSWERS + Math.ceil(Math.log2(1 + this.#refusers.size) / Math.log2(GROWTH));
        while (held !== undefined) {
            await watch(this.#session, held, this.#wait, { ...this.#blocked, polling: this.#polling, answers });
            held = await this.#nextHeld(held);
        }
    }
    async #nextHeld({ target }) {
        const all = [...this.#refusers.values()];
        const from = all.findIndex((one) => one.target === target);
        const others = [...all.slice(from + 1), ...all.slice(0, from)];
        for (let [next, size] = [0, 1]; next < others.length; next += size, size *= GROWTH) {
            const read = await Promise.all(others.slice(next, next + size).map((one) => this.#readAfresh(one)));
            const held = read.find((one) => one !== undefined);
            if (held !== undefined)
                return held;
        }
        return undefined;
    }
    async #readAfresh({ target }) {
        const { at } = target;
        const row = await this.#wait.ask((signal) => this.#session.store.read(at, { consistent: false }, signal));
        this.#wait.sightings.note(at, row);
        if (row === undefined)
            return undefined;
        const inTheWay = { target, row };
        this.#refusers.set(at.name, inTheWay);
        return this.#isHeld(inTheWay) ? inTheWay : undefined;
    }
    #isHeld({ target, row }) {
        return !looksFree(this.#wait, target, row);
    }
}
