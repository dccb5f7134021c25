import { PERMITS, permitAt, permitOf, SEMAPHORE_QUEUE } from "../protocol/addresses.js";
import { BoundedMap } from "../session/bounded-map.js";
import { rowsOf } from "../session/session.js";
import { claimBy, looksFree } from "../taking/claim.js";
import { Polling } from "../taking/polling.js";
import { asOne } from "../taking/row-lease.js";
import { pagesOf } from "../taking/rows.js";
import { SetTake } from "../taking/set-take.js";
import { isMarked, isMarkedFor, mark, untilFree } from "../taking/watch.js";
import { Kind, OwnLease, takeRow } from "./kind.js";
import { freePermits, heldOf, newestOf, numbersTo, ownRows, permitTarget } from "./permits.js";
const MOST_TRIES = 3;
const FIRST_CROWDED_PAUSES = 8;
const MORE_ROWS = 3;
const MOST_GUESSES = 1_000;
export class SemaphoreKind extends Kind {
    id = "semaphore";
    queue = {
        keys: SEMAPHORE_QUEUE,
        lookLimit: ({ permits }) => permits + MORE_ROWS,
        gateRows: (resource, rows) => ownRows(this.session, resource, rows),
        room: (seeing, resource, rows) => freePermits(seeing, resource, rows).length,
        weight: weightOf,
        together: ({ permits }, places) => {
            let needed = 0;
            const first = places.findIndex((place) => {
                needed += weightOf(place);
                return needed > permits;
            });
            return Math.max(1, first === -1 ? places.length : first);
        },
    };
    #inUse = new Map();
    #guesses = new BoundedMap(MOST_GUESSES);
    async claim(claimed) {
        const { session } = this;
        const { request, wait, seen, ahead } = claimed;
        const { resource } = request;
        if (resource.weight > 1)
            return await this.#claimSeveral(claimed);
        const send = (permit) => this.#take(claimed, permit);
        const guessed = seen === undefined ? this.#guess(resource, wait) : undefined;
        if (guessed !== undefined) {
            const result = await send(guessed);
            if (result.kind === "granted")
                return result;
            wait.endSignal.throwIfAborted();
            const [{ row }] = result.inTheWay;
            if (wait.isPatient && outlastsPause(resource, wait) && isMarked(row, session.clock.wall()))
                return result;
        }
        for (let rows = seen;; rows = undefined) {
            rows ??= await this.#look(resource, wait, { consistent: true });
            const free = freePermits(wait, resource, rows).filter((permit) => !this.#isInUse(resource, permit));
            const inOrder = ahead === undefined ? fromAnywhere(free, session.random) : free.slice(ahead);
            let inTheWay = newestOf(resource, rows);
            for (const permit of inOrder.slice(0, MOST_TRIES)) {
                const result = await send(permit);
                if (result.kind === "granted")
                    return result;
                [inTheWay] = result.inTheWay;
                wait.endSignal.throwIfAborted();
            }
            if (inTheWay !== undefined) {
                wait.saw(inTheWay.row);
                return { kind: "held", inTheWay: [inTheWay] };
            }
            await wait.again();
        }
    }
    async #claimSeveral(claimed) {
        const { request, wait, ahead } = claimed;
        const { resource } = request;
        const { weight } = resource;
        for (let [tries, rows] = [1, claimed.seen];; rows = undefined) {
            rows ??= await this.#look(resource, wait, { consistent: true });
            wait.endSignal.throwIfAborted();
            const free = freePermits(wait, resource, rows).filter((permit) => !this.#isInUse(resource, permit));
            const inOrder = ahead === undefined ? fromAnywhere(free, this.session.random) : free.slice(ahead);
            const inTheWay = heldOf(wait, resource, rows);
            if (inOrder.length >= weight) {
                const result = await this.#takeAll(claimed, inOrder.slice(0, weight));
                if (result.kind === "granted" || tries === MOST_TRIES)
                    return result;
                wait.endSignal.throwIfAborted();
                tries += 1;
            }
            else if (isNotEmpty(inTheWay)) {
                wait.saw(inTheWay[0].row);
                return { kind: "held", inTheWay };
            }
            else {
                await wait.again();
            }
        }
    }
    async watch(resource, inTheWay, wait, blocked) {
        const { session } = this;
        const { settings, weight } = resource;
        const [first] = inTheWay;
        const { minMs, maxMs } = settings.poll;
        if (looksFree(wait, first.target, first.row)) {
            await wait.again();
            return undefined;
        }
        blocked.polling ??= new Polling(session, settings.poll);
        wait.saw(first.row);
        await this.#contend(resource, [first.row], wait, blocked);
        const refused = weight > 1 ? inTheWay.map(({ row }) => row) : [first.row];
        for (let rows = refused, hasLooked = false;; hasLooked = true) {
            const isCrowded = outlastsPause(resource, wait) && rows.some((row) => isMarked(row, session.clock.wall()));
            if (isCrowded)
                blocked.polling.set(hasLooked ? maxMs : Math.min(maxMs, FIRST_CROWDED_PAUSES * minMs));
            await blocked.polling.pause(wait, this.#freeIn(resource, rows, wait));
            rows = await this.#look(resource, wait, { consistent: false });
            wait.endSignal.throwIfAborted();
            const newest = newestOf(resource, rows);
            if (newest === undefined || freePermits(wait, resource, rows).length >= weight)
                return weight > 1 ? undefined : rows;
            wait.saw(newest.row);
            await this.#contend(resource, rows, wait, blocked);
        }
    }
    ended(own, isFree) {
        for (const { at } of rowsOf(own.lease.row)) {
            const permit = permitOf(at.sort) ?? 0;
            const use = useOf(own.resource, permit);
            if (this.#inUse.get(use) !== own)
                continue;
            this.#inUse.delete(use);
            if (isFree)
                this.#guesses.set(own.resource.name, permit);
        }
    }
    #take(claimed, permit) {
        const target = permitTarget(claimed.request.resource, permit);
        return this.#using(claimed, [permit], () => takeRow(this.session, claimed, target));
    }
    #takeAll(claimed, permits) {
        const { session } = this;
        const { request, wait, until } = claimed;
        const { resource, data } = request;
        const targets = permits.toSorted((one, other) => one - other).map((permit) => permitTarget(resource, permit));
        return this.#using(claimed, permits, async () => {
            const take = () => new SetTake(session, wait, targets, data);
            const result = await claimBy(session, targets[0], wait, { until }, take);
            if (result.kind !== "granted")
                return result;
            const row = asOne(result.granted);
            return { kind: "granted", granted: new OwnLease(session, request, row) };
        });
    }
    async #using({ request: { resource } }, permits, take) {
        const uses = permits.map((permit) => useOf(resource, permit));
        for (const use of uses)
            this.#inUse.set(use, undefined);
        try {
            const result = await take();
            if (result.kind === "granted")
                for (const use of uses)
                    this.#inUse.set(use, result.granted);
            return result;
        }
        finally {
            for (const use of uses)
                if (this.#inUse.get(use) === undefined)
                    this.#inUse.delete(use);
        }
    }
    #freeIn({ settings, permits, weight }, rows, wait) {
        const each = rows.map((row) => untilFree(this.session, wait, { at: row, settings }, row));
        const missing = weight === 1 ? 0 : permits - rows.length;
        return each.toSorted((one, other) => one - other)[weight - 1 - missing] ?? Number.POSITIVE_INFINITY;
    }
    #guess(resource, { sightings }) {
        const { name, permits } = resource;
        const mayBeFree = (permit) => {
            const { at, settings } = permitTarget(resource, permit);
            return !this.#isInUse(resource, permit) && sightings.mayBeFree(at, settings.takeover);
        };
        const last = this.#guesses.get(name);
        if (last !== undefined && last < permits && mayBeFree(last))
            return last;
        return fromAnywhere(numbersTo(permits), this.session.random).find(mayBeFree);
    }
    async #contend(resource, rows, wait, blocked) {
        const { session } = this;
        for (const row of rows)
            session.contended().waitsFor(row);
        const unmarked = rows.filter((held) => held.uuid !== undefined && !isMarkedFor(session, resource.settings, held));
        const [row] = fromAnywhere(unmarked, session.random);
        if (row !== undefined)
            await mark(session, { ...resource, at: row }, { row, blocked, wait });
    }
    async #look(resource, wait, { consistent }) {
        const { session } = this;
        const { name, settings, permits } = resource;
        const range = { name, ...PERMITS, limit: permits + MORE_ROWS, consistent, takeover: settings.takeover };
        const rows = [];
        for await (const { page } of pagesOf(session, wait, range))
            rows.push(...page.rows);
        const own = ownRows(session, resource, rows);
        const there = new Set(own.map(({ sort }) => permitOf(sort)));
        for (const permit of numbersTo(permits))
            if (!there.has(permit))
                wait.sightings.note(permitAt(name, permit), undefined);
        return own;
    }
    #isInUse(resource, permit) {
        return this.#inUse.has(useOf(resource, permit));
    }
}
const useOf = ({ name }, permit) => `${permit}/${name}`;
function weightOf({ data }) {
    return typeof data?.sections === "number" ? Math.max(1, data.sections) : 1;
}
function outlastsPause({ settings }, { remainingMs }) {
    return remainingMs > 2 * settings.poll.maxMs;
}
const isNotEmpty = (inTheWay) => inTheWay.length > 0;
function fromAnywhere(values, random) {
    const start = Math.floor(random() * values.length);
    return [...values.slice(start), ...values.slice(0, start)];
}
