import * as z from "zod/mini";
import { LockConfigError } from "../errors.js";
import { durationOrForever, optionsCheck, text } from "../options/check.js";
const check = optionsCheck(["runCoordinator()"], () => ({
    maxHoldMs: z.optional(durationOrForever(1)),
    prefix: z.optional(text()),
}));
export function runCoordinator(locks, options = {}) {
    if (typeof locks?.mutex !== "function")
        throw new LockConfigError("locks", locks, "must be a LockTable");
    const { maxHoldMs, prefix = "node-cron/" } = check(options);
    const mutexOf = (task) => locks.mutex(`${prefix}${task}`, { maxHoldMs });
    try {
        mutexOf("t");
    }
    catch (error) {
        if (!(error instanceof LockConfigError) || error.option !== "name")
            throw error;
        const remedy = "must leave room for a task's name in the 2048 bytes of DynamoDB's key, with the table's keyPrefix";
        throw new LockConfigError("prefix", prefix, remedy);
    }
    const kept = new Map();
    const onComplete = async (key) => {
        const lock = kept.get(key);
        kept.delete(key);
        await lock?.unlock();
    };
    return {
        async shouldRun(key) {
            const { task, date } = fireOf(key);
            const lock = await mutexOf(task).tryLock({ once: date });
            if (lock === null)
                return false;
            kept.set(key, lock);
            const leave = () => void onComplete(key).catch(() => undefined);
            if (maxHoldMs === undefined)
                leave();
            else
                lock.signal.addEventListener("abort", leave, { once: true });
            return true;
        },
        onComplete,
    };
}
const KEY = /^(?<task>.+):(?<date>(?:\d{4}|[+-]\d{6})-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)$/s;
function fireOf(key) {
    const { task = "", date = "" } = (typeof key === "string" ? KEY.exec(key)?.groups : undefined) ?? {};
    if (task !== "")
        return { task, date: new Date(date) };
    throw new LockConfigError("key", key, "must be what node-cron makes of a task's name and the date of a fire");
}
