import { publish } from "../diagnostics.js";
import { LockStoreError } from "../errors.js";
import { copyOf } from "../lock-info.js";
import { checkHasSort } from "../options/table.js";
import { resultAt } from "../protocol/addresses.js";
import { earliestOf } from "../protocol/lease-time.js";
import { retraced } from "../retraced.js";
import { runUnder } from "../section-calls.js";
import { answeredWithin } from "../session/overdue.js";
import { persist } from "../session/requests.js";
import { isTransient, LONGEST_ATTEMPT_MS, noAnswer } from "../session/retry.js";
import { Call } from "../taking/call.js";
import { askFor } from "../taking/wait.js";
import { lookForResult, Wish } from "./look.js";
import { SharedLooks } from "./shared-looks.js";
export class Flights {
    #sections;
    #layout;
    #each = new Map();
    constructor(sections, layout = { sort: "sort" }) {
        this.#sections = sections;
        this.#layout = layout;
    }
    async call(resource, fn, options) {
        checkHasSort("singleFlight()", this.#layout);
        const key = `${resource.name}/${JSON.stringify(resource.settings)}`;
        const forget = () => {
            if (flights.isIdle && this.#each.get(key) === flights)
                this.#each.delete(key);
        };
        const flights = this.#each.get(key) ?? new LockFlights(this.#sections, resource, forget);
        this.#each.set(key, flights);
        return await flights.call(fn, options).finally(forget);
    }
    get size() {
        return this.#each.size;
    }
}
class LockFlights {
    lastId;
    #sections;
    #session;
    #resource;
    #onIdle;
    #seekers = new Set();
    #candidates = new Set();
    #leader;
    #isHinted = false;
    #looks;
    #flight;
    #row;
    constructor(sections, resource, onIdle) {
        this.#sections = sections;
        this.#session = sections.session;
        this.#resource = resource;
        this.#onIdle = onIdle;
        this.#looks = new SharedLooks(this.#session, (look) => this.#lookForAll(look));
    }
    get isIdle() {
        return this.#seekers.size === 0;
    }
    async call(fn, options) {
        const { freshMs, signal, waitMs } = options;
        const isPatient = waitMs > 0;
        const bounds = { signal, waitMs: isPatient ? waitMs : Number.POSITIVE_INFINITY, isPatient, asksFor: 1 };
        const call = new Call(this.#session, this.#resource.name, bounds);
        const seeker = { call, wish: new Wish(this.#session, freshMs) };
        const start = () => this.#session.detach(this.#seek(seeker).catch((error) => call.fail(error)));
        const served = await call.begin(start).catch((error) => {
            throw retraced(error);
        });
        if (served.kind === "result")
            return served.data.value;
        return await this.#fly(served, fn, { freshMs, signal });
    }
    async looked() {
        await this.#looks.latest();
        const row = this.#row;
        this.#row = undefined;
        return row;
    }
    async #seek(seeker) {
        const { call, wish } = seeker;
        this.#seekers.add(seeker);
        call.holderNow = () => this.#own ?? (this.#leader === seeker ? undefined : this.#leader?.call.holder);
        call.atEnd(() => this.#flight?.leader !== seeker && this.#leave(seeker));
        call.isBlocked();
        const flight = this.#flight;
        if (flight?.isOpen && call.isPatient && wish.joins(flight.made))
            seeker.joined = flight;
        else
            await this.#ask(call);
        if (call.isSettled)
            return;
        if (!call.isPatient && this.#candidates.size > 0)
            return refuse(call);
        this.#candidates.add(seeker);
        this.#lead();
        if (this.#leader !== seeker)
            call.stay();
    }
    async #ask(call) {
        const { clock } = this.#session;
        for (;;) {
            const ms = call.isPatient ? Number.POSITIVE_INFINITY : call.until() - clock.atMost();
            const looked = this.#looks.ask().then(() => true);
            try {
                if (await answeredWithin(clock, ms, looked))
                    return;
                throw noAnswer(call.waitedMs, { sent: 1, failure: call.failure });
            }
            catch (error) {
                if (!call.isPatient || call.isSettled || !isTransient(error) || clock.atMost() >= call.until())
                    throw error;
            }
        }
    }
    #leave(seeker) {
        this.#seekers.delete(seeker);
        this.#candidates.delete(seeker);
        if (this.#leader === seeker)
            this.#leader = undefined;
        this.#lead();
        if (this.isIdle)
            this.#onIdle();
    }
    get #own() {
        return this.#session.leasesOn(this.#resource.at).find(({ inUseSince }) => inUseSince !== undefined)?.info;
    }
    async #lookForAll({ number, isLatest, lastNumber }) {
        const seekers = [...this.#seekers].filter(({ call }) => !call.isSettled);
        if (seekers.length === 0)
            return;
        const isConsistent = this.#isHinted || seekers.some(({ wish }) => wish.freshMs === 0);
        this.#isHinted = false;
        const found = await lookForResult(this.#session, this.#resource.at, isConsistent, (cause) => {
            for (const { call } of this.#seekers)
                call.failure = cause;
        });
        const look = { ...found, number, lastNumber: lastNumber() };
        if (isLatest()) {
            this.lastId = look.row?.result?.id;
            this.#row = look.row?.uuid !== undefined && this.#own?.uuid === look.row.uuid ? undefined : look.row;
            this.#session.sightings.note(this.#resource.at, look.row);
        }
        for (const seeker of seekers)
            if (seeker.wish.takes(look))
                share(seeker, look.found?.data ?? {});
    }
    #lead() {
        const [seeker] = this.#candidates;
        if (this.#leader !== undefined || seeker === undefined)
            return;
        this.#leader = seeker;
        const { call } = seeker;
        const request = { resource: this.#resource, data: undefined, holdAtLeastMs: 0, flight: this };
        const waiter = { request, call, settle: (lock) => this.#begin(seeker, lock) };
        call.onSeen = (row) => this.#saw(row);
        if (call.isPatient)
            this.#sections.add(waiter);
        else
            askFor(this.#session, waiter, async (agent) => (await this.#sections.try(agent)) && refuse(call));
    }
    #saw(row) {
        if (row.result?.id === this.lastId)
            return;
        this.#isHinted = true;
        void this.#looks.ask().catch(() => undefined);
    }
    #begin(leader, lock) {
        const flight = { leader, made: earliestOf(this.#session.clock.wall()), isOpen: true };
        this.#flight = flight;
        leader.call.settle({ kind: "lock", lock, flight });
        lock.onLost = () => this.#end(flight);
        for (const seeker of this.#seekers)
            if (seeker.call.isPatient)
                seeker.joined = flight;
    }
    async #fly({ lock, flight }, fn, { freshMs, signal }) {
        let data;
        const section = async (held) => {
            const value = await fn(held);
            flight.isOpen = false;
            data = await this.#put(lock, value, { made: flight.made, freshUntil: flight.made + freshMs });
            return value;
        };
        try {
            const value = await runUnder(lock, section, signal);
            for (const seeker of this.#seekers)
                if (data !== undefined && seeker.joined === flight)
                    share(seeker, data);
            return value;
        }
        finally {
            this.#end(flight);
        }
    }
    #end(flight) {
        flight.isOpen = false;
        if (this.#flight === flight)
            this.#flight = undefined;
        this.#leave(flight.leader);
    }
    async #put(lock, value, dates) {
        if (!lock.held)
            return undefined;
        const { store, owner } = this.#session;
        const { name } = this.#resource;
        const result = { id: lock.uuid, ...dates };
        try {
            const shared = value === undefined ? {} : { value };
            store.admitResult(shared);
            const data = copyOf(shared);
            const write = { kind: "put-result", at: resultAt(name), result, owner, data };
            const stepEnds = lock.untilStepEnds();
            const until = () => (lock.held ? stepEnds() : Number.NEGATIVE_INFINITY);
            const persistence = { kind: "release", until, firstTimeoutMs: LONGEST_ATTEMPT_MS };
            const { kind } = await persist(this.#session, persistence, (signal) => store.write(write, signal));
            if (kind === "refused")
                throw new LockStoreError(`The row for the result of lock ${JSON.stringify(name)} is not ours`);
            lock.names(result);
            return data;
        }
        catch (cause) {
            publish("dynamutex:not-shared", { name, uuid: lock.uuid, cause });
            if (!isTransient(cause) && this.#session.isNews(`not shared: ${name}`)) {
                process.emitWarning(`The result of ${JSON.stringify(name)} is not shared: ${cause}`, "DynamutexWarning");
            }
            return undefined;
        }
    }
}
function share({ call }, data) {
    call.missed("shared");
    call.settle({ kind: "result", data: copyOf(data) });
}
function refuse(call) {
    call.missed("held");
    call.fail(call.timeout());
}
