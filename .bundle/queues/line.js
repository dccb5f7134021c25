import { tryClaim } from "../taking/claim.js";
import { Wait } from "../taking/wait.js";
import { blockedFromNow } from "../taking/watch.js";
import { fits } from "./fits.js";
export const NOBODY_WAITS = new Error("Nobody waits any more");
export class Line {
    resource;
    blocked;
    capacity = 0;
    waiters = [];
    leases = new Set();
    #claiming = new Set();
    #session;
    #turns;
    #watcher;
    #agents = 0;
    #lastNumber = 0;
    #sightings;
    #asking;
    #curious = [];
    constructor(session, turns, resource) {
        this.#session = session;
        this.#turns = turns;
        this.resource = resource;
    }
    get lastNumber() {
        return this.#lastNumber;
    }
    get first() {
        return this.waiters[0]?.number;
    }
    get hasAgent() {
        return this.#agents > 0;
    }
    get isFull() {
        return this.leases.size + this.#claiming.size >= this.capacity;
    }
    get isEmpty() {
        return this.leases.size + this.waiters.length + this.#claiming.size === 0;
    }
    get isCrowded() {
        return this.#watcher !== undefined || this.waiters.length > this.#agents;
    }
    get isAheadOfTries() {
        if (this.isCrowded)
            return true;
        if (!this.isFull)
            return false;
        const needed = [...this.#claiming].filter(({ endSignal }) => !endSignal.aborted);
        return this.leases.size + needed.length >= this.capacity;
    }
    needsAgent(together) {
        const without = this.waiters.length - this.#agents;
        if (without === 0 || this.isFull)
            return false;
        return this.#agents === 0 || (together && without === 1 && this.#watcher === undefined);
    }
    get isOthersTurn() {
        return this.#session.contention?.othersTurnOf(this.resource.at) !== undefined;
    }
    get holder() {
        const own = [...this.leases].at(-1);
        if (own !== undefined)
            return own.lease.info;
        return this.#watcher?.seen ?? this.#asking?.agent.seen;
    }
    get asking() {
        return this.#asking?.agent;
    }
    answered() {
        return new Promise((resolve) => {
            this.#curious.push(resolve);
            const asked = this.#asking?.asked ?? Promise.resolve();
            asked.then(this.#onAnswered, this.#onAnswered);
        });
    }
    #onAnswered = () => {
        for (const tell of this.#curious.splice(0))
            tell();
    };
    add({ request, call, settle }) {
        this.#lastNumber += 1;
        const standing = { request, call, settle, number: this.#lastNumber, agent: undefined };
        this.waiters.push(standing);
        return standing;
    }
    leave(waiter, failure) {
        const index = this.#indexAfter(waiter.number - 1);
        if (this.waiters[index] !== waiter)
            return;
        this.waiters.splice(index, 1);
        const { agent } = waiter;
        if (agent === undefined)
            return;
        waiter.agent = undefined;
        this.#agents -= 1;
        const isServed = failure === undefined && agent === this.#watcher;
        const next = isServed ? undefined : this.#firstWithoutAgent;
        if (next !== undefined) {
            this.#assign(agent, next);
            return;
        }
        if (this.#watcher === agent)
            this.#watcher = undefined;
        agent.end(failure === undefined ? NOBODY_WAITS : failure.reason);
        if (failure === undefined)
            this.dismiss(agent);
    }
    newAgent(together) {
        const waiter = this.#firstWithoutAgent;
        const agent = new Wait(this.#session, waiter);
        agent.longestPauseMs = () => this.#longestPauseMs;
        agent.newSightings = () => {
            this.#sightings ??= this.#session.sightings.ofCall();
            return this.#sightings;
        };
        this.#assign(agent, waiter);
        if (!together)
            this.#watcher = agent;
        this.#claiming.add(agent);
        return agent;
    }
    enter(agent) {
        this.#claiming.add(agent);
    }
    dismiss(agent) {
        this.#claiming.delete(agent);
        if (this.#watcher === agent)
            this.#watcher = undefined;
        const waiter = agent.asker;
        if (waiter.agent !== agent)
            return;
        waiter.agent = undefined;
        this.#agents -= 1;
    }
    keep(own) {
        this.leases.add(own);
        this.blocked = undefined;
    }
    async acquire(agent) {
        for (let seen;;) {
            if (this.isOthersTurn)
                await this.#turns.standBack(agent.asker.request.resource, agent);
            const result = await this.asks(agent, this.claim(agent, { seen, onTaken: this.#onAnswered }));
            if (result.kind === "granted")
                return result.granted;
            agent.endSignal.throwIfAborted();
            this.#watcher ??= agent;
            if (this.#watcher !== agent)
                return undefined;
            this.blocked ??= blockedFromNow(this.#session);
            const { resource } = agent.asker.request;
            seen = await resource.kind.watch(resource, result.inTheWay, agent, this.blocked);
        }
    }
    tryAcquire(agent) {
        return tryClaim(agent, () => this.claim(agent));
    }
    mayPass(own) {
        return this.#turns.mayPass(own);
    }
    get admitsFirst() {
        return true;
    }
    changed() {
    }
    tidy() {
        if (!this.isEmpty)
            return false;
        this.blocked = undefined;
        this.capacity = 0;
        this.#sightings = undefined;
        this.#asking = undefined;
        return true;
    }
    claim(agent, how) {
        const { request, call } = agent.asker;
        const open = () => [...this.leases].findLast((own) => fits(own, request));
        return call.inContext(() => request.resource.kind.claim({ ...how, request, wait: agent, open }));
    }
    asks(agent, asked) {
        this.#asking = { agent, asked };
        return asked;
    }
    firstAfter(number) {
        return this.waiters[this.#indexAfter(number)];
    }
    countAfter(number) {
        return this.waiters.length - this.#indexAfter(number);
    }
    weightAfter(number) {
        const after = this.waiters.slice(this.#indexAfter(number));
        return after.reduce((sum, { request }) => sum + request.resource.weight, 0);
    }
    get #firstWithoutAgent() {
        return this.waiters.find(({ agent }) => agent === undefined);
    }
    get #longestPauseMs() {
        let leastMs = Number.POSITIVE_INFINITY;
        for (const { request } of this.waiters)
            leastMs = Math.min(leastMs, request.resource.settings.poll.maxMs);
        return leastMs;
    }
    #assign(agent, waiter) {
        agent.asker = waiter;
        waiter.agent = agent;
        this.#agents += 1;
    }
    #indexAfter(number) {
        let [low, high] = [0, this.waiters.length];
        while (low < high) {
            const middle = (low + high) >>> 1;
            if (this.waiters[middle].number > number)
                high = middle;
            else
                low = middle + 1;
        }
        return low;
    }
}
