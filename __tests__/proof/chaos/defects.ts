import { setTimeout as sleep } from "node:timers/promises";
import {
  DeleteItemCommand,
  type DynamoDBClient,
  type TransactWriteItem,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import { uuidOf } from "../../../lib/holding/hand-off-token.js";
import type { Clock, Lock, Lockable, SharedMutex } from "../../../lib/index.js";
import { decodedToken } from "../../support/tokens.js";
import { TTL_MS } from "./lock-groups.js";
import type { Token } from "./tokens.js";

/**
 * Ways to break a lock from outside, to see that the checker sees it.
 *
 * - `deaf`: the holder is never told of a loss.
 * - `unconditional`: a holder that has lost deletes the row, whoever's it is.
 * - `impatient`: watching runs four times too fast, and so does the table's clock as contenders see it.
 * - `unguarded`: transactions are sent without their guard.
 * - `crowded`: the semaphore has one permit too many.
 * - `blind`: the exclusive side of a shared mutex does not wait for the shared side, nor keeps it out.
 * - `replayed`: a token is resumed however often it was resumed before.
 */
export type Defect = (typeof DEFECTS)[number];

export const DEFECTS = ["deaf", "unconditional", "impatient", "unguarded", "crowded", "blind", "replayed"] as const;

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

/** How many permits a host believes in. */
export function breakPermits(permits: number, defect: Defect | undefined): number {
  return defect === "crowded" ? permits + 1 : permits;
}

/** What a section takes that is to have the lock alone. */
export function breakExclusive({ shared, exclusive }: SharedMutex, defect: Defect | undefined): Lockable {
  return defect === "blind" ? shared : exclusive;
}

/** Puts the uuid that the token opens back on the row, whoever has it by now. */
export async function breakToken(
  { token }: Token,
  defect: Defect | undefined,
  rows: { readonly client: DynamoDBClient; readonly tableName: string },
): Promise<void> {
  if (defect !== "replayed") return;
  const [, , name, sort, secret] = decodedToken(token) as [string, string, string, string, string];
  const update = new UpdateItemCommand({
    TableName: rows.tableName,
    Key: { name: { S: name }, sort: { S: sort } },
    ConditionExpression: "attribute_exists(#name)",
    UpdateExpression: "SET #uuid = :uuid",
    ExpressionAttributeNames: { "#name": "name", "#uuid": "uuid" },
    ExpressionAttributeValues: { ":uuid": { S: uuidOf(secret) } },
  });
  await rows.client.send(update).catch(() => undefined);
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
