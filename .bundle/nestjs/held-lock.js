import { LockConfigError } from "../errors.js";
const LOCK_PARAMETER = Symbol.for("dynamutex.nestjs.lock-parameter");
export function HeldLock() {
    return (target, key, index) => {
        if (key === undefined)
            throw new LockConfigError("@HeldLock()", "constructor", "must be on a parameter of a method");
        Reflect.defineMetadata(LOCK_PARAMETER, index, target, key);
    };
}
export function lockParameterOf(target, key) {
    return Reflect.getOwnMetadata(LOCK_PARAMETER, target, key);
}
