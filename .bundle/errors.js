const BRAND = Symbol.for("dynamutex.LockError");
export class LockError extends Error {
    static code = "any";
    name = "LockError";
    code;
    constructor(code, message, options) {
        super(message, options);
        this.code = code;
        Object.defineProperty(this, BRAND, { value: true });
    }
    static [Symbol.hasInstance](value) {
        return isInstance(this, value);
    }
}
function isInstance(kind, value) {
    if (Function.prototype[Symbol.hasInstance].call(kind, value))
        return true;
    if (typeof value !== "object" || value === null || !(BRAND in value))
        return false;
    return Object.hasOwn(kind, "code") && (kind.code === "any" || kind.code === Reflect.get(value, "code"));
}
export class LockConfigError extends LockError {
    static code = "LOCK_CONFIG";
    name = "LockConfigError";
    option;
    value;
    constructor(option, value, remedy, options) {
        super("LOCK_CONFIG", `${option}: ${remedy} (got ${show(value)})`, options);
        this.option = option;
        this.value = value;
    }
}
export class LockTimeoutError extends LockError {
    static code = "LOCK_TIMEOUT";
    name = "LockTimeoutError";
    lockName;
    holder;
    waitedMs;
    constructor(lockName, waitedMs, holder, options = {}) {
        const by = holder === undefined ? "" : `; last seen ${seen(holder, options.inThisProcess === true)}`;
        const why = options.because === undefined ? "" : `. ${options.because}`;
        super("LOCK_TIMEOUT", `Lock ${show(lockName)} was not free within ${Math.round(waitedMs)} ms${by}${why}`, options);
        this.lockName = lockName;
        this.waitedMs = waitedMs;
        this.holder = holder;
    }
}
function seen({ uuid, owner, expires, handedOff }, inThisProcess) {
    const until = expires.toISOString();
    if (uuid === undefined)
        return `without a holder, and blocked until ${until}, which no unlock can end`;
    if (!inThisProcess)
        return `${handedOff ? "handed off" : "held"} by ${owner} until ${until}`;
    const nested = "If that section awaits this call, waiting longer does not help: a mutex is not re-entrant";
    return `held by a section of this process, ${owner}, until ${until}. ${nested}`;
}
export class LockLostError extends LockError {
    static code = "LOCK_LOST";
    name = "LockLostError";
    lockName;
    uuid;
    reason;
    constructor(lockName, uuid, reason, options = {}) {
        super("LOCK_LOST", `Lock ${show(lockName)} was lost: ${options.because ?? LOSS[reason]}`, options);
        this.lockName = lockName;
        this.uuid = uuid;
        this.reason = reason;
    }
}
export const LOSS = {
    expired: "its lease ended before a renewal got through",
    stolen: "another holder's uuid is on its row",
    deleted: "its row was deleted by somebody else",
    forced: "it was unlocked by force",
    "max-hold": "it was held for maxHoldMs",
    closed: "its LockTable was closed, and its section had not ended when the drain was over",
};
export class LockStoreError extends LockError {
    static code = "LOCK_STORE";
    name = "LockStoreError";
    transient;
    answered;
    throttled;
    retried;
    constructor(message, options = {}) {
        super("LOCK_STORE", message, options);
        this.transient = options.transient ?? false;
        this.answered = options.answered ?? true;
        this.throttled = options.throttled ?? false;
        this.retried = options.retried ?? false;
    }
}
export function findLockLost(error) {
    const parts = new Set([error]);
    for (const part of parts) {
        if (part instanceof LockLostError)
            return part;
        const { cause, error: thrown, suppressed, errors } = Object(part);
        for (const inner of [thrown, suppressed, cause, ...(Array.isArray(errors) ? errors : [])])
            parts.add(inner);
    }
    return undefined;
}
function show(value) {
    if (typeof value === "string")
        return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
    if (typeof value === "bigint")
        return `${value}n`;
    if (typeof value === "function")
        return "a function";
    if (typeof value !== "object" || value === null)
        return String(value);
    try {
        const text = JSON.stringify(value);
        return text.length > 200 ? `${text.slice(0, 200)}…` : text;
    }
    catch {
        return Object.prototype.toString.call(value);
    }
}
