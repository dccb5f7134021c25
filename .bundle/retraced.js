import { LockError, LockStoreError } from "./errors.js";
const retracedErrors = new WeakSet();
export function retraced(error, lockName) {
    if (!(error instanceof LockError))
        return error;
    const names = lockName !== undefined && error.code === "LOCK_CLOSED";
    const also = names ? `. Lock ${JSON.stringify(lockName)} was not taken` : "";
    const own = names || retracedErrors.has(error) ? anotherOf(error, also) : error;
    if (own === undefined)
        return error;
    retracedErrors.add(own);
    Error.captureStackTrace(own, retraced);
    return own;
}
function anotherOf(error, also) {
    const cause = "cause" in error ? { cause: error.cause } : {};
    if (error.constructor === LockError)
        return new LockError(error.code, error.message + also, cause);
    if (!(error instanceof LockStoreError) || error.constructor !== LockStoreError)
        return undefined;
    const { transient, answered, throttled, retried } = error;
    return new LockStoreError(error.message, { ...cause, transient, answered, throttled, retried });
}
