import type { CancellationReason, TransactionCanceledException } from "@aws-sdk/client-dynamodb";

/**
 * Why a transaction was cancelled, for each of its items in order, where a condition was among the reasons; undefined
 * for everything else. A condition that refuses stands, whatever else was the matter at that moment.
 */
export function refusalsOf(error: unknown): readonly CancellationReason[] | undefined {
  const { name, CancellationReasons } = (error ?? {}) as Partial<TransactionCanceledException>;
  if (name !== "TransactionCanceledException") return undefined;
  return CancellationReasons?.some(isRefusal) ? CancellationReasons : undefined;
}

export function isRefusal({ Code }: CancellationReason): boolean {
  return Code === "ConditionalCheckFailed";
}

/** Whether another write was under way on this item's row. */
export function isConflict({ Code }: CancellationReason): boolean {
  return Code === "TransactionConflict";
}
