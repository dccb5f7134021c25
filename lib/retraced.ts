import { LockError, LockStoreError } from "./errors.js";

/** Errors whose stack names the code that called. */
const retracedErrors = new WeakSet<LockError>();

/**
 * Gives an error of this library the stack of the call that rejects with it. Most are made where a timer, a reply or a close is
 * handled, and say nothing of the code that called. Call it in a `catch` behind an `await`: there V8 knows the async functions that
 * wait for the call. The stack of the cause stays as it is.
 *
 * A loss is one error for all calls that meet it, and names the first. Of other errors, which calls may share, each gets its own.
 *
 * @param lockName for the error of a closed table: without an `await` in the caller's code, its stack shows no line of it.
 */
export function retraced(error: unknown, lockName?: string): unknown {
  if (!(error instanceof LockError)) return error;
  const names = lockName !== undefined && error.code === "LOCK_CLOSED";
  const also = names ? `. Lock ${JSON.stringify(lockName)} was not taken` : "";
  const own = names || retracedErrors.has(error) ? anotherOf(error, also) : error;
  if (own === undefined) return error;
  retracedErrors.add(own);
  Error.captureStackTrace(own, retraced);
  return own;
}

/** @param also what its message ends with. */
function anotherOf(error: LockError, also: string): LockError | undefined {
  const cause = "cause" in error ? { cause: error.cause } : {};
  if (error.constructor === LockError) return new LockError(error.code, error.message + also, cause);
  if (!(error instanceof LockStoreError) || error.constructor !== LockStoreError) return undefined;
  const { transient, answered, throttled, retried } = error;
  return new LockStoreError(error.message, { ...cause, transient, answered, throttled, retried });
}
