import { rowsIn } from "../operations/inspect.js";
import { RESULT_AND_LOCK } from "../protocol/addresses.js";
import { countingResult, overBy } from "../protocol/flight-result.js";
import { boundsOf } from "../time/clock.js";
export async function lookForResult(session, at, isConsistent, onFailure) {
    const { rows } = await rowsIn(session, at.name, RESULT_AND_LOCK, { consistent: isConsistent, onFailure });
    const row = rows.find(({ sort }) => sort === at.sort);
    const value = rows.find(({ sort }) => sort === RESULT_AND_LOCK.first);
    const result = countingResult(row, value);
    const found = result && { ...result, data: value?.data ?? {} };
    const ids = overBy(row, value);
    return { row, found, ids, isConsistent: isConsistent && session.store.isKnown };
}
export class Wish {
    freshMs;
    #session;
    #latest;
    #over;
    #overBy = 0;
    constructor(session, freshMs) {
        this.#session = session;
        this.freshMs = freshMs;
        this.#latest = session.clock.wall()?.latest;
    }
    takes({ found, ids, isConsistent, number, lastNumber }) {
        if (this.freshMs > 0)
            return found !== undefined && this.#isFresh(found.made);
        if (!isConsistent)
            return false;
        if (this.#over === undefined)
            [this.#over, this.#overBy] = [ids, lastNumber];
        return number > this.#overBy && found !== undefined && !this.#over.has(found.id);
    }
    joins(made) {
        return this.freshMs === 0 || this.#isFresh(made);
    }
    #isFresh(made) {
        const { latest } = boundsOf(this.#session.clock);
        this.#latest ??= latest;
        return made <= latest && made >= this.#latest - this.freshMs;
    }
}
