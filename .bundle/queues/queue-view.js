import { placesOf } from "../protocol/addresses.js";
import { isDead, pagesOf } from "../taking/rows.js";
import { Sweeper } from "./sweeper.js";
export class QueueView {
    #session;
    #sweeper;
    constructor(session, ttlMs) {
        this.#session = session;
        this.#sweeper = new Sweeper(session, ttlMs);
    }
    async look(looker, resource, isConsistent, isEnough, onSent) {
        const { name, at, kind, settings } = resource;
        const placeRange = placesOf(kind.queue.keys);
        const range = { first: at.sort, last: placeRange.last, limit: kind.queue.lookLimit(resource) };
        const query = { name, ...range, consistent: isConsistent, takeover: settings.takeover };
        const isGate = ({ sort }) => sort < placeRange.first;
        const gate = [];
        const places = [];
        let sentAt = 0;
        for await (const { page, isLast } of pagesOf(this.#session, looker, query, onSent)) {
            sentAt ||= page.sentAt;
            gate.push(...kind.queue.gateRows(resource, page.rows.filter(isGate)));
            const queued = page.rows.filter((row) => !isGate(row));
            const dead = new Set(queued.filter((place) => isDead(looker, place, page)));
            this.#sweeper.add(dead);
            places.push(...queued.filter((place) => !dead.has(place)));
            if (gate.length === 0)
                looker.sightings.note(at, undefined);
            if (isLast)
                break;
            if (isEnough(gate, places))
                return this.#asSeen({ gate, places, isWhole: false, isConsistent, sentAt });
        }
        return this.#asSeen({ gate, places, isWhole: true, isConsistent, sentAt });
    }
    #asSeen(look) {
        return look.isConsistent && !this.#session.store.isKnown ? { ...look, isConsistent: false } : look;
    }
}
