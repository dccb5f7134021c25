import { LockStoreError } from "../errors.js";
import type { Target } from "./acquisition.js";

/** The table's answers take longer than a lease: no retry helps. */
export function tooSlow({ at, settings }: Target, cause?: unknown): LockStoreError {
  const message = `Lock ${JSON.stringify(at.name)}: the table's answers take longer than a lease of ${settings.ttlMs} ms lasts; raise ttlMs`;
  return new LockStoreError(message, cause === undefined ? {} : { cause });
}
