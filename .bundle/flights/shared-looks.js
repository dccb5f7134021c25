import { answeredWithin } from "../session/overdue.js";
import { LONGEST_ATTEMPT_MS } from "../session/retry.js";
export class SharedLooks {
    #session;
    #look;
    #lastNumber = 0;
    #next;
    #underWay = [];
    constructor(session, look) {
        this.#session = session;
        this.#look = look;
    }
    ask() {
        if (this.#next === undefined) {
            this.#next = newShared();
            void this.#send(this.#next);
        }
        return this.#next.answered;
    }
    async latest() {
        const last = this.#underWay.at(-1);
        if (this.#next === undefined && last === undefined)
            return;
        if (this.#next === undefined && last !== undefined) {
            await this.#whileDue(last);
            if (!this.#underWay.includes(last))
                return;
        }
        await this.ask().catch(() => undefined);
    }
    async #send(own) {
        const before = this.#underWay.at(-1);
        await (before === undefined ? undefined : this.#whileDue(before));
        this.#next = undefined;
        const { clock, scheduler } = this.#session;
        own.sentAt = clock.atLeast();
        const last = this.#underWay.at(-1);
        own.patienceMs = last === undefined ? scheduler.overdueMs : Math.min(LONGEST_ATTEMPT_MS, 2 * last.patienceMs);
        this.#underWay.push(own);
        try {
            const number = ++this.#lastNumber;
            const isLatest = () => this.#underWay.includes(own);
            await this.#look({ number, isLatest, lastNumber: () => this.#lastNumber });
            for (const each of this.#underWay.splice(0, this.#underWay.indexOf(own) + 1))
                each.settle();
        }
        catch (error) {
            const index = this.#underWay.indexOf(own);
            if (index >= 0)
                this.#underWay.splice(index, 1);
            own.settle(error);
        }
    }
    async #whileDue({ answered, sentAt, patienceMs }) {
        const { clock } = this.#session;
        await answeredWithin(clock, sentAt + patienceMs - clock.atLeast(), answered).catch(() => undefined);
    }
}
function newShared() {
    let settle = () => undefined;
    const answered = new Promise((resolve, reject) => {
        settle = (error) => (error === undefined ? resolve() : reject(error));
    });
    answered.catch(() => undefined);
    return { answered, settle, sentAt: 0, patienceMs: 0 };
}
