import type { TransactWriteItem } from "@aws-sdk/client-dynamodb";
import { CHANNELS } from "../diagnostics.js";
import type { LockLostError } from "../errors.js";
import type { Lock } from "../lock.js";
import { copyOf } from "../lock-info.js";
import { type TransactWriteOptions, transactWriteOptions } from "../options/calls.js";
import type { Check } from "../protocol/writes.js";
import { firstTimeoutMs, persist } from "../session/requests.js";
import { isTransient } from "../session/retry.js";
import type { Session } from "../session/session.js";
import type { TransactOutcome } from "../store.js";
import type { Lease } from "./lease.js";

/** How long a transaction is tried if the caller does not say. */
const TRANSACT_WITHIN_MS = 10_000;

/** What a transaction is guarded by. */
interface Guarded {
  readonly lease: Lease;
  readonly section: Pick<Lock, "remainingMs" | "assertHeld"> & { readonly lost: LockLostError | undefined };
  readonly guard: () => Promise<Check>;
}

/**
 * Sends the caller's items together with the guard.
 * @throws the loss or the end of the section, if there is one; otherwise why the transaction was not sent, or got no answer.
 */
export async function transactUnder(
  session: Session,
  { lease, section, guard }: Guarded,
  items: readonly TransactWriteItem[],
  options: TransactWriteOptions,
): Promise<TransactOutcome> {
  const { withinMs = TRANSACT_WITHIN_MS } = transactWriteOptions(options);
  const { clock, store, uuid } = session;
  store.admitItems(lease.row.at, items);
  // Copied now: DynamoDB refuses a further copy that differs from the first, and the outcome would stay unknown.
  const copy = copyOf(items);
  // All copies have one token, so DynamoDB applies them once, and repeats a reply that was lost.
  const writes = {
    items: copy,
    guard: await guard(),
    token: uuid(),
    isMetered: CHANNELS["dynamutex:request"].hasSubscribers,
  };
  const giveUpAt = clock.atMost() + withinMs;
  // Nothing is sent after the section or the lease has ended.
  const until = (): number => Math.min(giveUpAt, clock.atMost() + section.remainingMs);
  const persistence = { kind: "take", until, firstTimeoutMs: firstTimeoutMs(lease.settings.ttlMs) } as const;
  const sent = persist(session, persistence, (signal) => store.transact(writes, signal));
  return await sent.catch((error: unknown) => {
    // If no answer came, the end of the section or of its lease may have ended the retries.
    if (section.lost !== undefined || isTransient(error)) section.assertHeld();
    throw error;
  });
}
