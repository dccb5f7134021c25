import { LockConfigError } from "../errors.js";
import { lockShape } from "./calls.js";
import { optionsCheck } from "./check.js";
import { mutexSettings, mutexShape } from "./mutex.js";
const MAX_NAMES = 100;
const checkLockAll = optionsCheck(["lockAll()"], () => {
    const { fair, handOverMs, ...ofMutexes } = mutexShape();
    return { ...ofMutexes, ...lockShape() };
}, {
    fencing: "must not be given to lockAll(): a transaction returns no tokens; take locks with tokens one by one",
    fair: "must not be given to lockAll(): a set stands in no queue, it takes its locks when all of them are free",
    handOverMs: "must not be given to lockAll(): a set passes no lock on",
});
export function lockAllOptions(options, defaults) {
    const { signal, waitMs, data, holdAtLeastMs, ...own } = checkLockAll(options);
    const ofNames = mutexSettings(own, defaults);
    const settingsOf = (mutex) => (mutex === undefined ? ofNames : mutexSettings(own, mutex));
    return { lock: { signal, waitMs: waitMs ?? ofNames.waitMs, data, holdAtLeastMs }, settingsOf };
}
export function checkCount(locks) {
    if (!Array.isArray(locks) || locks.length === 0) {
        throw new LockConfigError("locks", locks, "must be an array of at least one name or mutex");
    }
    if (locks.length > MAX_NAMES) {
        const remedy = `must be at most ${MAX_NAMES}, which is what one transaction of DynamoDB may write`;
        throw new LockConfigError("locks", `${locks.length} locks`, remedy);
    }
}
export function checkMembers(members) {
    const names = new Set();
    for (const [index, { name, settings }] of members.entries()) {
        if (settings.fencing) {
            const remedy = "must not be a mutex with fencing: a transaction returns no tokens; take this lock by itself";
            throw new LockConfigError(`locks.${index}`, name, remedy);
        }
        if (names.has(name))
            throw new LockConfigError(`locks.${index}`, name, "must not be there twice");
        names.add(name);
    }
}
