import type { TransactWriteItem } from "@aws-sdk/client-dynamodb";
import type { Check } from "../protocol/writes.js";
import { attemptMs, persist } from "../session/requests.js";
import type { Session } from "../session/session.js";
import type { TransactOutcome } from "../store.js";
import type { Lease } from "./lease.js";

/** How long a transaction is tried if the caller does not say. */
const WITHIN_MS = 10_000;

/** A section's writes, and how long they are tried. */
export interface GuardedWrite {
  readonly items: readonly TransactWriteItem[];
  readonly guard: Check;
  readonly withinMs?: number | undefined;
  /** Whether the section is over: its writes are not sent again then. */
  readonly isOver: () => boolean;
}

/**
 * Sends a section's writes with its guard until they are answered, the lease ends, or their time is over. All copies
 * have one token, so DynamoDB applies them once, and repeats a reply that was lost.
 *
 * @throws the store's error after the last attempt: the writes may have been applied or not.
 */
export async function sendGuarded(session: Session, lease: Lease, write: GuardedWrite): Promise<TransactOutcome> {
  const { clock, store } = session;
  const { items, guard, isOver } = write;
  const giveUpAt = clock.atMost() + (write.withinMs ?? WITHIN_MS);
  const until = (): number => (isOver() ? clock.atMost() : Math.min(giveUpAt, clock.atMost() + lease.remainingMs));
  const persistence = { kind: "take", until, attemptMs: attemptMs(lease.settings.ttlMs) } as const;
  const writes = { items, guard, token: session.uuid() };
  return await persist(session, persistence, (signal) => store.transact(writes, signal));
}
