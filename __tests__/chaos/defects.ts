import { setTimeout as sleep } from "node:timers/promises";
import { DeleteItemCommand, type DynamoDBClient, type TransactWriteItem } from "@aws-sdk/client-dynamodb";
import type { Clock, Lock } from "../../lib/index.js";
import { TTL_MS } from "./lock-groups.js";

/**
 * Ways to break a lock from outside, to see that the checker sees it.
 *
 * - `deaf`: the holder is never told of a loss.
 * - `unconditional`: a holder that has lost deletes the row, whoever's it is.
 * - `impatient`: watching runs four times too fast, and so does the table's clock as contenders see it.
 * - `unguarded`: transactions are sent without their guard.
 */
export type Defect = "deaf" | "unconditional" | "impatient" | "unguarded";

export const DEFECTS: readonly Defect[] = ["deaf", "unconditional", "impatient", "unguarded"];

/** What a section uses of its lock, or of its set of locks. */
export type SectionLock = Pick<Lock, "held" | "assertHeld" | "unlock">;

export function breakLock(
  lock: SectionLock,
  defect: Defect | undefined,
  rows: { readonly client: DynamoDBClient; readonly tableName: string; readonly names: readonly string[] },
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
      // The next holder shall be in by then.
      await sleep(TTL_MS / 3);
      for (const name of rows.names) {
        const Key = { name: { S: name }, sort: { S: "lock" } };
        await rows.client.send(new DeleteItemCommand({ TableName: rows.tableName, Key })).catch(() => undefined);
      }
      await lock.unlock();
    },
  };
}

/** The items with which a guard goes into a transaction. */
export function breakGuard(guard: TransactWriteItem, defect: Defect | undefined): readonly TransactWriteItem[] {
  return defect === "unguarded" ? [] : [guard];
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
