const NEXT_MS = 90;
const SHARE_OF_HOLD = 0.02;
const BEHIND_MS = 50;
const POLLS_A_GROUP = 2.5;
const LONGEST_MS = 5_000;
export class Pace {
    #clock;
    #random;
    #first;
    #msPerGroup;
    #holders;
    constructor({ clock, random }) {
        this.#clock = clock;
        this.#random = random;
    }
    saw(gate, first, groupsBetween) {
        const now = this.#clock.atLeast();
        const uuids = gate.map(({ uuid }) => uuid).join();
        if (this.#holders?.uuids !== uuids)
            this.#holders = { uuids, since: now };
        if (first === undefined || first === this.#first?.ticket)
            return;
        if (this.#first !== undefined && first > this.#first.ticket) {
            const ms = (now - this.#first.since) / groupsBetween(this.#first.ticket, first);
            this.#msPerGroup = ms < (this.#msPerGroup ?? Number.POSITIVE_INFINITY) ? ms : ((this.#msPerGroup ?? ms) + ms) / 2;
        }
        this.#first = { ticket: first, since: now };
    }
    next({ maxMs }) {
        const heldMs = this.#holders === undefined ? 0 : this.#clock.atLeast() - this.#holders.since;
        return this.#jittered(Math.min(maxMs, Math.max(NEXT_MS, heldMs * SHARE_OF_HOLD)));
    }
    behind(groups, { maxMs }) {
        if (this.#first === undefined)
            return this.#jittered(Math.min(maxMs, BEHIND_MS));
        const distance = Math.max(1, Number(groups));
        const stoodMs = this.#clock.atLeast() - this.#first.since;
        const untilFrontMs = distance * Math.max(this.#msPerGroup ?? 0, stoodMs);
        const longestMs = Math.min(LONGEST_MS, distance * POLLS_A_GROUP * maxMs);
        return this.#jittered(Math.min(longestMs, Math.max(BEHIND_MS, untilFrontMs / 2)));
    }
    #jittered(ms) {
        return ms * (0.89 + 0.22 * this.#random());
    }
}
