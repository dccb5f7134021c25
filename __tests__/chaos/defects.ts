import { DeleteItemCommand, type DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { Clock, Lock } from "../../lib/index.js";

/**
 * Ways to break a lock from outside, to see that the checker sees it.
 *
 * - `deaf`: the holder is never told of a loss.
 * - `unconditional`: a holder that has lost deletes the row, whoever's it is.
 * - `impatient`: watching runs four times too fast, and so does the table's clock as contenders see it.
 */
export type Defect = "deaf" | "unconditional" | "impatient";

export const DEFECTS: readonly Defect[] = ["deaf", "unconditional", "impatient"];

/** What a section uses of its lock. */
export type SectionLock = Pick<Lock, "held" | "assertHeld" | "unlock">;

export function breakLock(
  lock: Lock,
  defect: Defect | undefined,
  row: { readonly client: DynamoDBClient; readonly tableName: string },
): SectionLock {
  if (defect === "deaf") return { held: true, assertHeld: () => undefined, unlock: () => lock.unlock() };
  if (defect !== "unconditional") return lock;
  return {
    get held() {
      return lock.held;
    },
    assertHeld: () => lock.assertHeld(),
    unlock: async () => {
      if (lock.held) return await lock.unlock();
      const Key = { name: { S: lock.name }, sort: { S: "lock" } };
      await row.client.send(new DeleteItemCommand({ TableName: row.tableName, Key })).catch(() => undefined);
      await lock.unlock();
    },
  };
}

export function breakClock(clock: Clock, defect: Defect | undefined): Clock {
  if (defect !== "impatient") return clock;
  return {
    ...clock,
    atLeast: () => 4 * clock.atLeast(),
    wall: () => {
      const bounds = clock.wall();
      return bounds && { ...bounds, earliest: bounds.earliest + 2_000 };
    },
  };
}
