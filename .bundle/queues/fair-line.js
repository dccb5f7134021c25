import { ticketOf } from "../protocol/addresses.js";
import { Call } from "../taking/call.js";
import { runFor } from "../taking/wait.js";
import { untilFree } from "../taking/watch.js";
import { fits } from "./fits.js";
import { Line, NOBODY_WAITS } from "./line.js";
import { OwnPlaces } from "./own-places.js";
import { takePlace } from "./place.js";
import { QueueView } from "./queue-view.js";
const KNOWN_LASTS_MS = 1_000;
const NEXT_TOGETHER = 4;
const APART_MS = 50;
const NOT_YET = { upTo: 0, othersWait: false };
export class FairLine extends Line {
    places = new OwnPlaces();
    pace;
    admission = NOT_YET;
    seen;
    lookedAt = Number.NEGATIVE_INFINITY;
    awaitsHolders = false;
    isDrawingForUnserved = false;
    #session;
    #queue;
    #view;
    #placeLost;
    #front;
    #fitting = { lease: undefined, upTo: 0 };
    #drawing;
    #nobodyWaits;
    constructor(session, turns, resource, { queue, pace }) {
        super(session, turns, resource);
        this.#session = session;
        this.#queue = queue;
        this.pace = pace;
        this.#placeLost = () => session.detach(Promise.resolve().then(() => this.changed()));
        this.#view = new QueueView(session, resource.settings.ttlMs);
    }
    acquire(agent) {
        return this.#queue.acquire(this, agent);
    }
    tryAcquire(agent) {
        return this.#queue.tryAcquire(this, agent);
    }
    mayPass(own) {
        return this.#queue.mayPass(this, own);
    }
    changed() {
        this.tidy();
        this.#queue.drawForUnserved(this);
    }
    async look(looker, resource, { isConsistent }) {
        let asked = 0;
        this.lookedAt = this.#session.clock.atMost();
        const isEnough = (gate, places) => {
            if (places.some(({ uuid }) => uuid === this.places.first?.uuid))
                return true;
            const ahead = this.#needs(places);
            return ahead > 0 && ahead >= resource.kind.queue.room(looker, resource, gate);
        };
        const look = await this.#view.look(looker, resource, isConsistent, isEnough, () => {
            asked = this.lastNumber;
        });
        const front = look.places[this.resource.kind.queue.together(this.resource, look.places) - 1];
        this.pace.saw(look.gate, front && ticketOf(front.sort), (from, to) => this.#groupsBetween(from, to));
        this.#front = front && ticketOf(front.sort);
        this.seen = { ...look, admission: this.#admissionOf(look, asked) };
        return this.seen;
    }
    get knownLook() {
        const { first, capacity, seen } = this;
        if (capacity === 1 || !seen?.isConsistent || !seen.isWhole || seen.admission.othersWait)
            return undefined;
        if (this.#session.clock.atMost() - seen.sentAt >= KNOWN_LASTS_MS)
            return undefined;
        return first !== undefined && first <= seen.admission.upTo ? seen : undefined;
    }
    reaches({ places, isWhole }, { ticket }) {
        const last = places.at(-1);
        return isWhole || (last !== undefined && !isBefore(last, ticket));
    }
    ahead({ places }, ticket) {
        return this.#needs(places.filter((place) => isBefore(place, ticket)));
    }
    pause(wait, { places }, ticket, ahead) {
        const { permits, settings, kind } = this.resource;
        const [{ side }, [first]] = [kind.queue, places];
        const groups = side === undefined ? ticket - (this.#front ?? ticket) : groupsBefore(places, ticket, side);
        let ms = this.pace.behind(groups, settings.poll);
        if (ahead < permits)
            ms = Math.min(ms, this.pace.next(settings.poll) * Math.max(1, (ahead + 1) / NEXT_TOGETHER));
        if (first === undefined)
            return ms;
        const apartMs = APART_MS * Number(ticket - (ticketOf(first.sort) ?? ticket) - 1n);
        return Math.min(ms, untilFree(this.#session, wait, { ...this.resource, at: first }, first) + apartMs);
    }
    draw() {
        if (this.#drawing !== undefined)
            return this.#drawing;
        const drawing = this.#draw().finally(() => {
            if (this.#drawing === drawing)
                this.#drawing = undefined;
        });
        this.#drawing = drawing;
        return drawing;
    }
    get admitsFirst() {
        return (this.first ?? Number.POSITIVE_INFINITY) <= this.admission.upTo;
    }
    get unserved() {
        const [lease] = this.leases;
        let goesOnTo = 0;
        if (this.hasAgent)
            goesOnTo = this.first ?? 0;
        else if (lease !== undefined)
            goesOnTo = this.#goesOnTo(lease);
        return this.firstAfter(Math.max(this.places.serve, goesOnTo));
    }
    #goesOnTo(lease) {
        const { admission } = this;
        const fitting = (one) => one !== undefined && fits(lease, one.request);
        let upTo = this.#fitting.lease === lease && fitting(this.waiters[0]) ? this.#fitting.upTo : 0;
        const next = () => this.firstAfter(upTo);
        for (let one = next(); fitting(one) && one.number <= admission.upTo; one = next())
            upTo = one.number;
        this.#fitting = { lease, upTo };
        return Math.min(upTo, admission.upTo);
    }
    tidy() {
        const { first, isEmpty } = this;
        this.places.leaveBefore(first);
        if (first === undefined && this.#drawing !== undefined) {
            this.#drawing = undefined;
            this.#nobodyWaits?.abort(NOBODY_WAITS);
        }
        return isEmpty;
    }
    async #draw() {
        this.#nobodyWaits = new AbortController();
        const { signal } = this.#nobodyWaits;
        const call = new Call(this.#session, this.resource.name, { isPatient: true, signal });
        await runFor(this.#session, call, async (wait) => {
            const place = await takePlace(this.#session, this.resource, wait, () => this.#sharing());
            if (!call.settle())
                return place.giveUp();
            place.onLost = this.#placeLost;
            this.places.add(place);
        });
        this.tidy();
    }
    #needs(places) {
        const { queue } = this.resource.kind;
        const others = places.filter(({ uuid }) => this.places.on(uuid) === undefined);
        return others.reduce((sum, place) => sum + queue.weight(place), 0);
    }
    #groupsBetween(from, to) {
        const { side } = this.resource.kind.queue;
        if (side === undefined)
            return Number(to - from);
        const passed = (this.seen?.places ?? []).filter((place) => !isBefore(place, from) && isBefore(place, to));
        return Math.max(1, groupsIn(passed));
    }
    #sharing() {
        const { serve } = this.places;
        return { sections: this.countAfter(serve), permits: this.weightAfter(serve), last: this.lastNumber };
    }
    #admissionOf({ places, isWhole }, asked) {
        let upTo = 0;
        for (const { uuid } of places) {
            const own = this.places.on(uuid);
            if (own === undefined)
                return { upTo, othersWait: true };
            upTo = own.last;
        }
        return { upTo: isWhole ? asked : upTo, othersWait: false };
    }
}
function isBefore({ sort }, ticket) {
    return (ticketOf(sort) ?? ticket) < ticket;
}
function groupsBefore(places, ticket, side) {
    const before = places.filter((place) => isBefore(place, ticket));
    const last = before.at(-1);
    if (last === undefined)
        return 0;
    const isHidden = before.length === places.length;
    const hidden = isHidden ? Number(ticket - (ticketOf(last.sort) ?? ticket)) - 1 : 0;
    if (hidden <= 0)
        return groupsIn(before, side);
    return (groupsIn(before) * (before.length + hidden)) / before.length;
}
function groupsIn(places, next) {
    const sides = [...places.map(({ data }) => data?.side), next];
    return places.filter((_, index) => sides[index] !== "shared" || sides[index + 1] !== "shared").length;
}
