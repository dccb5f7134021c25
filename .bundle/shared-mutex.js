import { forceUnlock, forceUnlockIn } from "./operations/force-unlock.js";
import { inspectSharedMutex } from "./operations/inspect.js";
import { tryOptions } from "./options/calls.js";
import { NONE } from "./options/check.js";
import { READERS, writerAt } from "./protocol/addresses.js";
import { retraced } from "./retraced.js";
import { SectionCalls } from "./section-calls.js";
import { SHOWN, shownAs } from "./shown.js";
export class SharedMutex {
    name;
    shared;
    exclusive;
    #session;
    #resource;
    #shared;
    #exclusive;
    constructor(sections, name, settings) {
        const { exclusive, shared } = sections.kinds;
        this.name = name;
        this.#session = sections.session;
        this.#resource = { name, kind: exclusive, at: writerAt(name), settings, permits: 1, weight: 1 };
        const readers = { ...this.#resource, kind: shared, permits: Number.POSITIVE_INFINITY };
        this.#shared = new SectionCalls(sections, readers, { checkTry: tryOptions });
        this.#exclusive = new SectionCalls(sections, this.#resource, { checkTry: tryOptions });
        this.shared = this.#shared;
        this.exclusive = this.#exclusive;
    }
    async inspect() {
        try {
            return await inspectSharedMutex(this.#session, this.#resource);
        }
        catch (error) {
            throw retraced(error);
        }
    }
    async forceUnlock(uuid, options = NONE) {
        if (await forceUnlockIn(this.#session, this.name, READERS, uuid, options))
            return true;
        try {
            return await forceUnlock(this.#session, this.#resource.at, uuid, options);
        }
        catch (error) {
            throw retraced(error);
        }
    }
    toJSON() {
        return { name: this.name, shared: this.#shared.toJSON(), exclusive: this.#exclusive.toJSON() };
    }
    [SHOWN](_depth, options) {
        return shownAs("SharedMutex", this.toJSON(), options);
    }
}
