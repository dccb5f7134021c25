import { kindOf } from "../protocol/addresses.js";
import { markInNumber, NEED_STEP_MS, numberOfMark } from "../protocol/mark.js";
import { BoundedMap } from "./bounded-map.js";
import { addressKey } from "./sightings.js";
export const WANTED_FOR_MS = 60_000;
const STAND_BACK_POLLS = 2;
const ALL_LOOKED_POLLS = 1.25;
const MOST_ROWS = 10_000;
export class Contention {
    #clock;
    #has;
    #contended = new BoundedMap(MOST_ROWS);
    #othersTurns = new BoundedMap(MOST_ROWS);
    constructor(clock, has) {
        this.#clock = clock;
        this.#has = has;
    }
    sees(row) {
        if (row?.wanted === undefined || !isContended(row))
            return;
        const bounds = this.#clock.wall();
        const { until, needMs } = markInNumber(row.wanted);
        const wanted = bounds === undefined ? until : Math.min(until, Math.ceil(bounds.latest) + WANTED_FOR_MS);
        const runsMs = bounds === undefined ? WANTED_FOR_MS : wanted - bounds.earliest;
        if (runsMs <= 0)
            return;
        const believedUntil = this.#clock.atLeast() + Math.min(WANTED_FOR_MS, runsMs);
        const known = this.#of(row) ?? { wanted, needMs, believedUntil, turnSince: undefined };
        known.wanted = Math.max(known.wanted, wanted);
        if (needMs !== undefined)
            known.needMs = Math.max(known.needMs ?? 0, needMs);
        known.believedUntil = Math.max(known.believedUntil, believedUntil);
        this.#contended.set(addressKey(row), known);
    }
    waitsFor(row) {
        this.sees(row);
        const known = row.uuid === undefined ? undefined : this.#of(row);
        if (known?.turnSince !== undefined && !this.#has(row))
            known.turnSince = undefined;
    }
    begins(at, takenAt) {
        const known = this.#of(at);
        if (known !== undefined)
            known.turnSince ??= takenAt;
    }
    markOf(at) {
        const known = this.#of(at);
        return known && numberOfMark({ until: known.wanted, needMs: known.needMs });
    }
    isTurnOver(at, handOverMs) {
        return this.turnLeftMs(at, handOverMs) <= 0;
    }
    turnLeftMs(at, handOverMs) {
        const known = this.#of(at);
        if (known === undefined)
            return Number.POSITIVE_INFINITY;
        return known.turnSince === undefined ? 0 : Math.max(0, known.turnSince + handOverMs - this.#clock.atLeast());
    }
    giveTurn(at, longestPollMs) {
        const now = this.#clock.atLeast();
        const known = this.#of(at);
        const needMs = known?.needMs;
        const lookAt = now + (needMs === undefined ? ALL_LOOKED_POLLS * longestPollMs : needMs - NEED_STEP_MS);
        const until = now + (needMs ?? STAND_BACK_POLLS * longestPollMs);
        if (until >= (this.othersTurnOf(at)?.until ?? 0))
            this.#othersTurns.set(lockOf(at), { at, lookAt, until });
        if (known !== undefined)
            known.turnSince = undefined;
    }
    othersTurnOf(at) {
        if (this.#othersTurns.size === 0)
            return undefined;
        const othersTurn = this.#othersTurns.get(lockOf(at));
        if (othersTurn === undefined || this.#clock.atLeast() < othersTurn.until)
            return othersTurn;
        this.#othersTurns.delete(lockOf(at));
        return undefined;
    }
    nobodyCame(at) {
        this.#contended.delete(addressKey(at));
    }
    #of(at) {
        if (this.#contended.size === 0)
            return undefined;
        const key = addressKey(at);
        const known = this.#contended.get(key);
        if (known === undefined || this.#clock.atLeast() < known.believedUntil)
            return known;
        this.#contended.delete(key);
        return undefined;
    }
}
const lockOf = ({ name, sort }) => `${kindOf(sort)}/${name}`;
function isContended({ sort }) {
    const kind = kindOf(sort);
    return kind === "lock" || kind === "permit" || kind === "writer";
}
