import { inspect } from "node:util";
import { publish } from "./diagnostics.js";
import { findLockLost, LockError } from "./errors.js";
import { follow } from "./session/abort-listening.js";
import { SHOWN, shownAs } from "./shown.js";
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
const nothing = () => undefined;
export class Election {
    name;
    done;
    #parts;
    #end = new AbortController();
    #lock;
    constructor(parts) {
        this.name = parts.name;
        this.#parts = parts;
        this.done = this.#run();
        this.done.catch(nothing);
    }
    get lock() {
        return this.#lock;
    }
    get isLeader() {
        return this.#lock?.held ?? false;
    }
    get wanted() {
        return this.#lock?.wanted ?? false;
    }
    async resign() {
        const message = `The candidate for ${JSON.stringify(this.name)} resigns: \`lead\` has to end`;
        this.#end.abort(new LockError("LOCK_RESIGNED", message));
        await this.done.catch(nothing);
    }
    observe(options) {
        return this.#parts.observe(options);
    }
    [Symbol.asyncDispose]() {
        return this.resign();
    }
    toJSON() {
        return { name: this.name, isLeader: this.isLeader, lock: this.lock?.toJSON() };
    }
    [SHOWN](_depth, options) {
        return shownAs("Election", this.toJSON(), options);
    }
    async #run() {
        const { session, signal } = this.#parts;
        const stop = follow([session.closing, signal], (reason) => this.#end.abort(reason));
        await this.#campaigns();
        stop();
        const { reason } = session.closing;
        const isClosed = reason !== undefined && this.#end.signal.reason === reason;
        this.#tell("over", isClosed ? { cause: reason } : {});
        if (isClosed)
            throw reason;
    }
    async #campaigns() {
        const { clock, random } = this.#parts.session;
        const ends = this.#end.signal;
        for (let pauses = 0; !ends.aborted;) {
            this.#tell("campaigning");
            const term = await this.#term();
            const isLast = ends.aborted || term.outcome === "returned";
            pauses = term.ledMs >= LONGEST_PAUSE_MS ? 1 : pauses + 1;
            const pauseMs = isLast ? undefined : pauseBefore(pauses, random());
            this.#ended(term, pauseMs);
            if (pauseMs === undefined)
                return;
            await clock.sleep(pauseMs, ends).catch(nothing);
        }
    }
    async #term() {
        const { campaign, lead, session } = this.#parts;
        const ends = this.#end.signal;
        const term = { lock: undefined, ledMs: 0, outcome: "ended", cause: undefined };
        const led = async (lock) => {
            if (ends.aborted)
                return;
            const since = session.clock.atLeast();
            term.lock = lock;
            this.#lock = lock;
            this.#tell("leading", { uuid: lock.uuid });
            try {
                await lead(lock);
            }
            catch (error) {
                if (!isObedience(error, lock.signal))
                    Object.assign(term, { outcome: "failed", cause: error });
                throw error;
            }
            finally {
                this.#lock = undefined;
                term.ledMs = session.clock.atLeast() - since;
            }
        };
        const rejected = await campaign(led, ends).then(() => undefined, (error) => ({ error }));
        if (term.outcome === "failed")
            return term;
        if (term.lock === undefined) {
            return rejected === undefined || ends.aborted ? term : { ...term, outcome: "failed", cause: rejected.error };
        }
        const { signal } = term.lock;
        const hasReturned = rejected === undefined && !signal.aborted;
        const cause = findLockLost(signal.aborted ? signal.reason : rejected?.error);
        return { ...term, outcome: hasReturned ? "returned" : "ended", cause };
    }
    #ended({ lock, outcome, cause }, pauseMs) {
        const uuid = lock?.uuid;
        if (uuid !== undefined)
            this.#tell("stopped", { uuid, cause, pauseMs });
        else if (outcome === "failed")
            this.#tell("failed", { cause, pauseMs });
        if (outcome !== "failed")
            return;
        const what = uuid === undefined ? "a campaign" : "`lead`";
        const next = pauseMs === undefined ? "it was the last" : `the next campaign begins in ${Math.round(pauseMs)} ms`;
        const because = cause instanceof Error ? cause.message : inspect(cause);
        const detail = cause instanceof Error ? { detail: cause.stack ?? because } : {};
        const message = `Election ${JSON.stringify(this.name)}: ${what} has failed, ${next}: ${because}`;
        process.emitWarning(message, { type: "DynamutexWarning", ...detail });
    }
    #tell(event, { uuid, cause, pauseMs } = {}) {
        const { owner } = this.#parts.session;
        publish("dynamutex:election", { name: this.name, owner, event, uuid, cause, pauseMs });
    }
}
function isObedience(error, signal) {
    if (!signal.aborted)
        return false;
    if (error === signal.reason || findLockLost(error) !== undefined)
        return true;
    const { name, cause } = Object(error);
    return name === "AbortError" || cause === signal.reason;
}
function pauseBefore(pauses, random) {
    return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (pauses - 1)) * (0.5 + random / 2);
}
