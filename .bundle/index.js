export { Election } from "./election.js";
export { findLockLost, LockConfigError, LockError, LockLostError, LockStoreError, LockTimeoutError, } from "./errors.js";
export { LockTable } from "./lock-table.js";
export { Mutex } from "./mutex.js";
export { Semaphore } from "./semaphore.js";
export { SharedMutex } from "./shared-mutex.js";
export { systemClock } from "./time/clock.js";
export { tableClock } from "./time/table-clock.js";
