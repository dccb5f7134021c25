import { LockStoreError } from "../errors.js";
import type { MutexSettings } from "../options/mutex.js";

/** The table's answers take longer than a lease: no retry helps. */
export function tooSlow(name: string, { ttlMs }: MutexSettings, cause?: unknown): LockStoreError {
  const message = `Lock ${JSON.stringify(name)}: the table's answers take longer than a lease of ${ttlMs} ms lasts; raise ttlMs`;
  return new LockStoreError(message, cause === undefined ? {} : { cause });
}
