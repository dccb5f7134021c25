import { LockStoreError } from "../errors.js";
import type { RequestContext } from "./attempts.js";

/** Operations that change nothing. */
const READS: ReadonlySet<string> = new Set(["GetItem", "Query", "Scan"]);

/** Whether the SDK could not read a reply of the table. What a connection does as it breaks off has a cause. */
export function isUnreadable(error: unknown, { status }: RequestContext): boolean {
  const { name, cause } = Object(error) as Partial<Error>;
  return status !== undefined && name === "TypeError" && cause === undefined;
}

/**
 * The error for such a reply. The same request would get the same one: an item has something that the SDK cannot hold.
 *
 * @param lock whose item it was asked for, if it is one.
 */
export function unreadable(
  error: unknown,
  { operation, lock, tableName }: { readonly operation: string; readonly lock: string | undefined; tableName: string },
  { attempts, status = 0 }: RequestContext,
): LockStoreError {
  // The reply to a write that was applied can be as unreadable as that to one that was refused.
  const isDone = !READS.has(operation) && status < 400;
  const whose = lock === undefined ? "" : `, for lock ${JSON.stringify(lock)}`;
  const message =
    `${operation}${whose}: table ${tableName} has answered, and the AWS SDK cannot read an item in the reply, such as one with an ` +
    `attribute called __proto__ in a map. No lock writes one${isDone ? "" : ", and it was left as it is"}: remove the item, and give the ` +
    "locks a table of their own or a keyPrefix that nothing else uses";
  return new LockStoreError(`${message} (${error})`, {
    cause: error,
    transient: false,
    answered: !isDone,
    retried: isDone || attempts > 1,
  });
}
