import { resume } from "./holding/resume.js";
import { forceUnlockIn } from "./operations/force-unlock.js";
import { inspectSemaphore } from "./operations/inspect.js";
import { checkWeight, permitOptions, tryPermitOptions, } from "./options/calls.js";
import { NONE } from "./options/check.js";
import { PERMITS, permitAt, permitOf } from "./protocol/addresses.js";
import { retraced } from "./retraced.js";
import { SectionCalls } from "./section-calls.js";
import { SHOWN, shownAs } from "./shown.js";
export class Semaphore {
    name;
    permits;
    #session;
    #resource;
    #calls;
    constructor(sections, name, { permits, settings }) {
        this.name = name;
        this.permits = permits;
        this.#session = sections.session;
        this.#resource = { name, kind: sections.kinds.semaphore, at: permitAt(name, 0), settings, permits, weight: 1 };
        this.#calls = new SectionCalls(sections, this.#resource, {
            checkLock: permitOptions,
            checkTry: tryPermitOptions,
            resourceFor: ({ permits: weight = 1 }) => {
                if (weight === 1)
                    return this.#resource;
                checkWeight(weight, permits, this.#session.clock.regionSkewMs);
                return { ...this.#resource, weight };
            },
        });
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
    async resume(token, options = NONE) {
        const { settings, permits } = this.#resource;
        const isOurs = ({ name, sort }) => name === this.name && permitOf(sort) !== undefined;
        const lock = await resume(this.#session, token, options, isOurs, (at) => ({ at, settings, permits }));
        return lock;
    }
    async inspect() {
        try {
            return await inspectSemaphore(this.#session, this.#resource);
        }
        catch (error) {
            throw retraced(error);
        }
    }
    async forceUnlock(uuid, options = NONE) {
        try {
            return await forceUnlockIn(this.#session, this.name, PERMITS, uuid, options);
        }
        catch (error) {
            throw retraced(error);
        }
    }
    toJSON() {
        return this.#calls.toJSON();
    }
    [SHOWN](_depth, options) {
        return shownAs("Semaphore", this.toJSON(), options);
    }
}
