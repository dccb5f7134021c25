export { Locked, OncePer } from "./decorators.js";
export { HeldLock } from "./held-lock.js";
export { LockModule, } from "./lock-module.js";
export { getLocksToken, InjectLocks } from "./tokens.js";
