import { LockConfigError } from "./errors.js";
import { copyOf } from "./lock-info.js";
import { lockOptions } from "./options/calls.js";
import { NONE } from "./options/check.js";
import { kindOf } from "./protocol/addresses.js";
import { retraced } from "./retraced.js";
import { SHOWN, shownAs } from "./shown.js";
import { Call } from "./taking/call.js";
import { askFor } from "./taking/wait.js";
export class SectionCalls {
    #sections;
    #resource;
    #how;
    constructor(sections, resource, how) {
        this.#sections = sections;
        this.#resource = resource;
        this.#how = how;
    }
    async lock(options = NONE) {
        return as(await this.#lock(options));
    }
    async tryLock(options = NONE) {
        const tried = await this.#try(this.#how.checkTry(options));
        return tried.kind === "granted" ? as(tried.lock) : null;
    }
    async run(fn, options = NONE) {
        checkFunction("fn", fn);
        const lock = await this.#lock(options);
        return await runUnder(lock, fn, options.signal);
    }
    async tryRun(fn, options = NONE) {
        checkFunction("fn", fn);
        const tried = await this.#try((this.#how.checkTryRun ?? this.#how.checkTry)(options));
        if (tried.kind !== "granted")
            return { ran: false, because: tried.kind, row: tried.call.holder };
        return { ran: true, value: await runUnder(tried.lock, fn) };
    }
    toJSON() {
        const { session } = this.#sections;
        const { name, kind } = this.#resource;
        const isOurs = ({ name: of, sort }) => of === name && kindOf(sort) !== "place";
        const held = [...session.leases].filter((lease) => isOurs(lease.row.at) && lease.held);
        const infos = held.map(({ info }) => info).filter((info) => info.kind === kind.id);
        const [first] = infos.toSorted((one, other) => Number(one.expires) - Number(other.expires));
        return { name, held: infos.length > 0, ...(first && { owner: first.owner, expires: first.expires }) };
    }
    [SHOWN](_depth, options) {
        return shownAs("Lockable", this.toJSON(), options);
    }
    async #lock(options) {
        const { name, settings } = this.#resource;
        const { signal, waitMs = settings.waitMs } = (this.#how.checkLock ?? lockOptions)(options);
        signal?.throwIfAborted();
        if (waitMs === 0) {
            const tried = await this.#try(options, { namesHolder: true });
            if (tried.kind !== "granted")
                throw tried.call.timeout();
            return tried.lock;
        }
        const request = this.#requestOf(options);
        const call = new Call(this.#sections.session, name, { signal, waitMs, isPatient: true, asksFor: 1 });
        try {
            return await call.begin(() => this.#sections.add({ request, call, settle: (lock) => call.settle(lock) }));
        }
        catch (error) {
            throw retraced(error, name);
        }
    }
    async #try(options, { namesHolder = false } = {}) {
        const request = this.#requestOf(options);
        const { session } = this.#sections;
        const call = new Call(session, this.#resource.name, { signal: options.signal, asksFor: 1, namesHolder });
        const settle = (lock) => call.settle({ kind: "granted", lock });
        const work = async (agent) => {
            const refusal = await this.#sections.try(agent);
            if (refusal === undefined)
                return;
            call.missed(refusal);
            call.settle({ kind: refusal, call });
        };
        try {
            return await call.begin(() => askFor(session, { request, call, settle }, work));
        }
        catch (error) {
            throw retraced(error, this.#resource.name);
        }
    }
    #requestOf(options) {
        const { data, holdAtLeastMs = 0 } = options;
        const { session } = this.#sections;
        session.assertOpen(this.#resource.name);
        session.store.admit(data);
        const resource = this.#how.resourceFor?.(options) ?? this.#resource;
        return { resource, data: data && copyOf(data), holdAtLeastMs, once: tickOf(options) };
    }
}
function tickOf({ once, everyMs, untilSuccess }) {
    const maxAttempts = untilSuccess === true ? Number.POSITIVE_INFINITY : untilSuccess?.maxAttempts;
    const inVain = { doubtfulTicks: new Map(), refused: new Set() };
    if (everyMs !== undefined)
        return { kind: "period", everyMs, maxAttempts, inVain };
    return once === undefined ? undefined : { kind: "tick", tick: Number(once) + 0, maxAttempts, inVain };
}
const as = (lock) => lock;
export async function runUnder(lock, fn, signal) {
    const stopFollowing = lock.follow(signal);
    let value;
    try {
        value = await fn(as(lock));
        await lock.recordSuccess();
    }
    catch (error) {
        await lock.unlock().catch(() => undefined);
        throw error;
    }
    finally {
        stopFollowing();
    }
    await lock.unlock();
    return value;
}
export function checkFunction(name, fn) {
    if (typeof fn !== "function")
        throw new LockConfigError(name, fn, "must be the function to run under the lock");
}
