import { LockStoreError } from "../errors.js";
import { onAbort } from "./abort-listening.js";
export class Backlog {
    #clock;
    #underWay;
    waiting = [];
    constructor(clock, underWay) {
        this.#clock = clock;
        this.#underWay = underWay;
    }
    add(request, send) {
        const { kind, until, deadline = until(), endSignal } = request;
        const queuedAt = this.#clock.atLeast();
        return new Promise((resolve, reject) => {
            let cancelCheck;
            const end = (answer) => {
                this.waiting.splice(this.waiting.indexOf(waiting), 1);
                cancelCheck?.();
                stopListening?.();
                answer();
            };
            const check = () => {
                const leftMs = until() - this.#clock.atMost();
                const why = `${this.#underWay()} requests of this process were under way, and others went first`;
                if (leftMs <= 0)
                    end(() => reject(notSent(this.#clock.atLeast() - queuedAt, why)));
                else if (leftMs < Number.POSITIVE_INFINITY)
                    cancelCheck = this.#clock.alarm(leftMs, check);
            };
            const stopListening = endSignal && onAbort(endSignal, () => end(() => reject(endSignal.reason)));
            const waiting = { kind, deadline, send: () => end(() => resolve(send())) };
            this.waiting.splice(this.#placeOf(waiting), 0, waiting);
            check();
        });
    }
    #placeOf(waiting) {
        let [low, high] = [0, this.waiting.length];
        while (low < high) {
            const middle = (low + high) >>> 1;
            if (isBefore(waiting, this.waiting[middle]))
                high = middle;
            else
                low = middle + 1;
        }
        return low;
    }
}
const RANKS = { renewal: 0, release: 1, take: 2, read: 2 };
function isBefore(one, other) {
    const [rank, otherRank] = [RANKS[one.kind], RANKS[other.kind]];
    return rank === otherRank ? one.deadline < other.deadline : rank < otherRank;
}
export class NotSent extends LockStoreError {
}
export function notSent(waitedMs, why = "too little time was left for an answer") {
    return new NotSent(`Not sent within ${Math.round(waitedMs)} ms: ${why}`, { transient: true, answered: false });
}
