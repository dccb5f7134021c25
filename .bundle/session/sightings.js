import { earliestOf } from "../protocol/lease-time.js";
import { mayTake } from "../protocol/may-take.js";
import { memoryOf } from "../protocol/rules.js";
import { BoundedMap } from "./bounded-map.js";
const MOST_REMEMBERED = 10_000;
export class Sightings {
    #clock;
    #hints;
    #most;
    #seen;
    #abandoned;
    constructor(clock, { most = MOST_REMEMBERED, hints } = {}) {
        this.#clock = clock;
        this.#most = most;
        this.#hints = hints;
    }
    ofCall() {
        return new Sightings(this.#clock, { hints: this });
    }
    note(at, row) {
        this.#hints?.note(at, row);
        const key = addressKey(at);
        if (row === undefined)
            return void this.#seen?.delete(key);
        const { uuid, expires, ttlMs, attempt } = row;
        const due = row.due === row.tick ? row.due : undefined;
        const seen = { uuid, expires, ttlMs, due, attempt, memory: memoryOf(row), since: this.#clock.atLeast() };
        const before = this.#seen?.get(key);
        if (before !== undefined && isSame(before, seen))
            return;
        this.#seen ??= new BoundedMap(this.#most);
        const hint = this.#hint(at);
        this.#seen.set(key, hint !== undefined && isSame(hint, seen) ? hint : seen);
    }
    abandon(uuid, attempt = 0) {
        this.#hints?.abandon(uuid, attempt);
        this.#abandoned ??= new BoundedMap(this.#most);
        this.#abandoned.set(uuid, attempt);
    }
    isAbandoned({ uuid }) {
        return uuid !== undefined && this.#abandonedAttempt(uuid) !== undefined;
    }
    mayBeFree(at, takeover) {
        const seen = this.#find(at);
        return seen === undefined || mayTake(seen, this.knowledge(at, takeover));
    }
    nextAttempt(at, tick) {
        const { due, attempt: seenAttempt, uuid } = this.#find(at) ?? {};
        if (due !== tick || seenAttempt === undefined)
            return { attempt: 1 };
        const isOwn = uuid !== undefined && seenAttempt > 0 && this.#abandonedAttempt(uuid) === seenAttempt;
        return { attempt: isOwn ? seenAttempt : seenAttempt + 1, seenAttempt };
    }
    memory(at) {
        return this.#find(at)?.memory ?? "nothing";
    }
    knowledge(at, takeover) {
        const bounds = takeover === "expired" ? this.#clock.wall() : undefined;
        return { earliest: earliestOf(bounds), unchanged: this.unchanged(at) };
    }
    unchanged(at, asOf = this.#clock.atLeast()) {
        const seen = this.#find(at);
        if (seen === undefined || this.#untilUnchanged(seen, asOf) > 0)
            return undefined;
        return { uuid: seen.uuid, expires: seen.expires };
    }
    untilUnchanged(at, asOf = this.#clock.atLeast()) {
        const seen = this.#find(at);
        return seen === undefined ? Number.POSITIVE_INFINITY : this.#untilUnchanged(seen, asOf);
    }
    #untilUnchanged(seen, asOf) {
        return this.isAbandoned(seen) ? 0 : Math.max(0, seen.since + seen.ttlMs - asOf);
    }
    #find(at) {
        const hint = this.#hint(at);
        if (this.#seen === undefined || this.#seen.size === 0)
            return hint;
        const own = this.#seen.get(addressKey(at));
        if (own === undefined || hint === undefined)
            return own ?? hint;
        return hint.since > own.since && !isSame(hint, own) ? hint : own;
    }
    #hint(at) {
        return this.#hints === undefined ? undefined : this.#hints.#find(at);
    }
    #abandonedAttempt(uuid) {
        const own = this.#abandoned?.get(uuid);
        return own === undefined && this.#hints !== undefined ? this.#hints.#abandonedAttempt(uuid) : own;
    }
}
const SAME = ["uuid", "expires", "ttlMs", "memory", "due", "attempt"];
function isSame(one, other) {
    return SAME.every((attribute) => one[attribute] === other[attribute]);
}
export const addressKey = ({ name, sort }) => `${sort}/${name}`;
