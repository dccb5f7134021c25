import { LockConfigError, LockError } from "../errors.js";
import { tryRunOptions } from "../options/calls.js";
import { NONE } from "../options/check.js";
import { tickNameOf } from "./app-locks.js";
import { lockedOptions, oncePerOptions } from "./options.js";
import { wrapped } from "./wrapped.js";
export function Locked(name, options = NONE) {
    const { table, waitMs, data, holdAtLeastMs, ...mutex } = lockedOptions(options);
    if (typeof name !== "function" && (typeof name !== "string" || name === "")) {
        throw new LockConfigError("name", name, "must be a non-empty string, or a function that makes one of the arguments");
    }
    const settings = settingsOf(mutex);
    return wrapped("Locked", table, async ({ app, args, section }) => {
        const of = typeof name === "function" ? name(...args) : name;
        return await app.table.mutex(of, settings).run(section, { waitMs, data, holdAtLeastMs });
    });
}
export function OncePer(everyMs, options = NONE) {
    const { table, name, data, holdAtLeastMs, untilSuccess, ...mutex } = oncePerOptions(options);
    if (everyMs === undefined)
        throw new LockConfigError("everyMs", everyMs, "must be the length of a period, in ms");
    const tick = tryRunOptions({ everyMs, data, holdAtLeastMs, untilSuccess });
    const settings = settingsOf(mutex);
    const run = async ({ app, instance, section }, method) => {
        if (app.isStopping)
            return;
        let hasBegun = false;
        const begin = async (lock) => {
            hasBegun = true;
            return await section(lock);
        };
        try {
            await app.table.mutex(name ?? tickNameOf(instance, method), settings).tryRun(begin, tick);
        }
        catch (error) {
            const isClosed = error instanceof LockError && error.code === "LOCK_CLOSED";
            if (!isClosed || hasBegun || !app.isStopping)
                throw error;
        }
    };
    const refuseTwins = (app, instance, method) => app.claimTicks(instance, method);
    return wrapped("OncePer", table, run, name === undefined ? refuseTwins : undefined);
}
function settingsOf(options) {
    return Object.keys(options).length === 0 ? undefined : options;
}
