/**
 * A distributed mutex on DynamoDB.
 *
 * @packageDocumentation
 */

export type { LockOptions, TransactWriteOptions, TryLockOptions } from "./call-options.js";
export { type Bounds, type Clock, systemClock } from "./clock.js";
export type { Diagnostics } from "./diagnostics.js";
export { type TableClockOptions, tableClock } from "./dynamodb/table-clock.js";
export {
  findLockLost,
  LockConfigError,
  LockError,
  LockLostError,
  LockStoreError,
  LockTimeoutError,
  type LossReason,
} from "./errors.js";
export type { DocumentGuard } from "./guard.js";
export type { FencedLock, Lock } from "./lock.js";
export type { LockAllOptions } from "./lock-all-options.js";
export type { LockData, LockInfo, LockState, WaiterInfo } from "./lock-info.js";
export type { LockSet } from "./lock-set.js";
export { LockTable } from "./lock-table.js";
export { Mutex, type TryRun } from "./mutex.js";
export type { MutexOptions } from "./mutex-options.js";
export type { CheckOptions, ForceUnlockOptions, ListOptions } from "./operation-options.js";
export type { CreateOptions, KeyOptions, LockTableOptions } from "./table-options.js";
export type { TableAction, TableFacts, TableProblem, TableReport } from "./table-report.js";
