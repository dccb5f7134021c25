const GROWTH = 1.5;
export const LONGEST_JITTER = 1.25;
export const jittered = ({ random }, ms) => ms * (0.75 + random() / 2);
export class Polling {
    #session;
    #poll;
    #nextMs;
    constructor(session, poll) {
        this.#session = session;
        this.#poll = poll;
        this.#nextMs = poll.minMs;
    }
    async pause(wait, dueInMs) {
        const longestMs = Math.min(this.#poll.maxMs, wait.longestPauseMs());
        const ms = jittered(this.#session, Math.min(longestMs, this.#nextMs));
        this.#nextMs = Math.min(longestMs, this.#nextMs * GROWTH);
        await wait.pause(Math.min(ms, Math.max(1, dueInMs)));
    }
    set(ms = this.#poll.minMs) {
        this.#nextMs = ms;
    }
}
