import { sleepUntilRung } from "../time/clock.js";
const TOGETHER = 8;
const CHECK_EVERY_MS = 1_000;
const NEARLY_MS = 5;
export class Agenda {
    #clock;
    #leases;
    #from;
    #rounds = new Map();
    constructor(clock, leases, from = TOGETHER) {
        this.#clock = clock;
        this.#leases = leases;
        this.#from = from;
    }
    alarm(ms, ring, gridMs = Number.POSITIVE_INFINITY) {
        const now = this.#clock.atMost();
        if (this.#leases.size < this.#from)
            return this.#ringAt(now + ms, ring);
        const moment = roundedDown(now, ms, gridMs);
        const round = this.#rounds.get(moment) ?? this.#open(moment);
        const own = () => ring();
        round.rings.add(own);
        return () => {
            if (!round.rings.delete(own) || round.rings.size > 0 || this.#rounds.get(moment) !== round)
                return;
            this.#rounds.delete(moment);
            round.cancel();
        };
    }
    sleep = async (ms, signal) => {
        if (this.#leases.size < this.#from)
            return await this.#clock.sleep(ms, signal);
        const mayExit = this.#clock.stay?.();
        await sleepUntilRung((wake) => this.alarm(ms, wake), signal).finally(mayExit);
    };
    #open(moment) {
        const rings = new Set();
        const cancel = this.#ringAt(moment, () => {
            this.#rounds.delete(moment);
            for (const ring of rings)
                ring();
        });
        const round = { rings, cancel };
        this.#rounds.set(moment, round);
        return round;
    }
    #ringAt(moment, ring) {
        let cancel;
        const wait = (leftMs) => {
            cancel = this.#clock.alarm(Math.min(leftMs, CHECK_EVERY_MS), check);
        };
        const check = () => {
            const leftMs = moment - this.#clock.atMost();
            if (leftMs < NEARLY_MS)
                ring();
            else
                wait(leftMs);
        };
        wait(moment - this.#clock.atMost());
        return () => cancel();
    }
}
function roundedDown(now, ms, gridMs) {
    const stepMs = Math.min(gridMs, 2 ** Math.floor(Math.log2(ms / 2)));
    if (stepMs < 1)
        return now + ms;
    const nearlyMs = gridMs === Number.POSITIVE_INFINITY ? 0 : Math.min(NEARLY_MS, stepMs / 4);
    return Math.max(now, Math.floor((now + ms + nearlyMs) / stepMs) * stepMs);
}
