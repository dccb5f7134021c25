import { Election } from "./election.js";
import { Flights } from "./flights/flights.js";
import { resume } from "./holding/resume.js";
import { copyOf } from "./lock-info.js";
import { forceUnlock } from "./operations/force-unlock.js";
import { inspect } from "./operations/inspect.js";
import { observe } from "./operations/observe.js";
import { electOptions, observeOptions, singleFlightOptions, tryLockOptions, tryRunOptions } from "./options/calls.js";
import { NONE } from "./options/check.js";
import { lockAt } from "./protocol/addresses.js";
import { retraced } from "./retraced.js";
import { checkFunction, SectionCalls } from "./section-calls.js";
import { SHOWN, shownAs } from "./shown.js";
export class Mutex {
    name;
    #session;
    #resource;
    #calls;
    #flights;
    constructor(sections, name, settings, flights = new Flights(sections)) {
        this.name = name;
        this.#session = sections.session;
        this.#resource = { name, kind: sections.kinds.mutex, at: lockAt(name), settings, permits: 1, weight: 1 };
        this.#flights = flights;
        this.#calls = new SectionCalls(sections, this.#resource, {
            checkTry: tryLockOptions,
            checkTryRun: tryRunOptions,
        });
    }
    static of(value, session) {
        const isOurs = typeof value === "object" && value !== null && #session in value && value.#session === session;
        return isOurs ? { name: value.name, settings: value.#resource.settings } : undefined;
    }
    async lock(options = NONE) {
        return await this.#calls.lock(options);
    }
    async tryLock(options = NONE) {
        return await this.#calls.tryLock(options);
    }
    async run(fn, options = NONE) {
        return await this.#calls.run(fn, options);
    }
    async tryRun(fn, options = NONE) {
        return await this.#calls.tryRun(fn, options);
    }
    async singleFlight(fn, options = NONE) {
        const { freshMs = 0, signal, waitMs = this.#resource.settings.waitMs } = singleFlightOptions(options);
        checkFunction("fn", fn);
        signal?.throwIfAborted();
        this.#session.assertOpen();
        return await this.#flights.call(this.#resource, fn, { freshMs, signal, waitMs });
    }
    elect(lead, options = NONE) {
        const { signal, data } = electOptions(options);
        checkFunction("lead", lead);
        this.#session.assertOpen();
        this.#session.store.admit(data);
        const copy = data && copyOf(data);
        return new Election({
            session: this.#session,
            name: this.name,
            campaign: (led, ends) => this.#calls.run(led, { signal: ends, data: copy, waitMs: Number.POSITIVE_INFINITY }),
            observe: (observed) => this.observe(observed),
            lead,
            signal,
        });
    }
    observe(options = NONE) {
        const how = observeOptions(options);
        this.#session.assertOpen();
        return observe(this.#session, this.#resource, how);
    }
    async resume(token, options = NONE) {
        const { at, settings } = this.#resource;
        const isOurs = ({ name, sort }) => name === this.name && sort === at.sort;
        const lock = await resume(this.#session, token, options, isOurs, () => ({ at, settings }));
        return lock;
    }
    async inspect() {
        try {
            return await inspect(this.#session, this.#resource);
        }
        catch (error) {
            throw retraced(error);
        }
    }
    async forceUnlock(uuid, options = NONE) {
        try {
            return await forceUnlock(this.#session, this.#resource.at, uuid, options);
        }
        catch (error) {
            throw retraced(error);
        }
    }
    toJSON() {
        return this.#calls.toJSON();
    }
    [SHOWN](_depth, options) {
        return shownAs("Mutex", this.toJSON(), options);
    }
}
