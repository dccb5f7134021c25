/**
 * A distributed mutex on DynamoDB.
 *
 * @packageDocumentation
 */

export type { Diagnostics, RequestOperation } from "./diagnostics.js";
export { Election } from "./election.js";
export {
  findLockLost,
  LockConfigError,
  LockError,
  type LockErrorCode,
  LockLostError,
  LockStoreError,
  LockTimeoutError,
  type LossReason,
} from "./errors.js";
export type { FencedLock, Guard, Lock, LockJson, Permit, TransferableLock } from "./lock.js";
export type {
  LockData,
  LockInfo,
  LockState,
  PermitInfo,
  SemaphoreState,
  SharedMutexState,
  WaiterInfo,
} from "./lock-info.js";
export { LockTable } from "./lock-table.js";
export type { Lockable, LockableJson, TryRun } from "./lockable.js";
export { Mutex } from "./mutex.js";
export type {
  CheckOptions,
  CloseOptions,
  ElectOptions,
  ExtendOptions,
  ForceUnlockOptions,
  HandOffOptions,
  InspectOptions,
  ListOptions,
  LockOptions,
  ObserveOptions,
  PermitOptions,
  ResumeOptions,
  SingleFlightOptions,
  TransactWriteOptions,
  TryLockOptions,
  TryOptions,
  TryPermitOptions,
  TryRunOptions,
} from "./options/calls.js";
export type { LockAllOptions } from "./options/lock-all.js";
export type { MutexOptions } from "./options/mutex.js";
export type { SemaphoreOptions } from "./options/semaphore.js";
export type { SharedMutexOptions } from "./options/shared-mutex.js";
export type { CreateOptions, KeyOptions, LockTableOptions } from "./options/table.js";
export { Semaphore } from "./semaphore.js";
export type { LockSet } from "./sets/lock-set.js";
export { SharedMutex } from "./shared-mutex.js";
export type { DocumentGuard } from "./store.js";
export type { TableLocks } from "./table-locks.js";
export type { BatchReport, TableAction, TableFacts, TableProblem, TableReport } from "./table-report.js";
export { type Bounds, type Clock, systemClock } from "./time/clock.js";
export { type TableClockOptions, tableClock } from "./time/table-clock.js";
