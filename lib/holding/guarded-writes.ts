import type { TransactWriteItem } from "@aws-sdk/client-dynamodb";
import { CHANNELS } from "../diagnostics.js";
import { LockConfigError, type LockLostError } from "../errors.js";
import type { Lock } from "../lock.js";
import { copyOf } from "../lock-info.js";
import { type TransactWriteOptions, transactWriteOptions } from "../options/calls.js";
import type { Check } from "../protocol/writes.js";
import { retraced } from "../retraced.js";
import { answeredWithin } from "../session/overdue.js";
import { firstTimeoutMs, persist } from "../session/requests.js";
import { isTransient, noAnswer } from "../session/retry.js";
import type { Session } from "../session/session.js";
import type { TransactOutcome } from "../store.js";
import type { Lease } from "./lease.js";

/** How long a transaction is tried if the caller does not say. */
const TRANSACT_TIMEOUT_MS = 10_000;

const NO_GUARDS =
  "is for a table of several Regions, which has no transactions and so no guards: in place of one, compare the fencing token in a " +
  "condition on the item itself (docs/guides/regions.md in the package)";

const NO_GUARD_OF_SEVERAL =
  "must not be asked for on a lock of several permits, all of which no single condition can check: take one permit, or a mutex, for " +
  "the write that needs a guard";

/** The section that its guard is for. */
interface GuardedSection extends Pick<Lock, "remainingMs" | "assertHeld"> {
  /** Whether its caller has ended it: after that, the lease may belong to another section, under another uuid. */
  readonly isOver: boolean;
  readonly lost: LockLostError | undefined;
}

/** The guard of a section. @throws unless the section holds the lock; why a renewal that the guard needs has failed. */
export async function guardFor(session: Session, lease: Lease, section: GuardedSection): Promise<Check> {
  const { regionSkewMs = 0 } = session.clock;
  if (regionSkewMs > 0) throw new LockConfigError("clock.regionSkewMs", regionSkewMs, NO_GUARDS);
  if (lease.row.others !== undefined) throw new LockConfigError("guard()", lease.row.at.name, NO_GUARD_OF_SEVERAL);
  section.assertHeld();
  try {
    return await lease.renewals.guard();
  } catch (error) {
    throw retraced(error);
  } finally {
    // The section may have ended meanwhile: then the guard is not its own.
    section.assertHeld();
  }
}

/**
 * Sends the caller's items together with the guard.
 * @throws the loss or the end of the section, if there is one; otherwise why the transaction was refused or not sent, or got no
 * answer.
 */
export async function transactUnder(
  session: Session,
  lease: Lease,
  section: GuardedSection,
  items: readonly TransactWriteItem[],
  options: TransactWriteOptions,
): Promise<void> {
  const outcome = await sendUnder(session, lease, section, items, options).catch((error: unknown) => {
    throw retraced(error);
  });
  switch (outcome.kind) {
    case "committed":
      return;
    case "unguarded":
      if (!section.isOver) throw lease.unguarded(outcome.row);
      section.assertHeld();
      return;
    case "refused":
      throw outcome.error;
    default:
      outcome satisfies never;
  }
}

async function sendUnder(
  session: Session,
  lease: Lease,
  section: GuardedSection,
  items: readonly TransactWriteItem[],
  options: TransactWriteOptions,
): Promise<TransactOutcome> {
  const { timeoutMs = TRANSACT_TIMEOUT_MS } = transactWriteOptions(options);
  const { clock, store, uuid } = session;
  store.admitItems(lease.row.at, items);
  // Copied now: DynamoDB refuses a further copy that differs from the first, and the outcome would stay unknown.
  const copy = copyOf(items);
  const giveUpAt = clock.atMost() + timeoutMs;
  // The renewal that a guard may need goes on for as long as the lease.
  const guard = await answeredWithin(clock, timeoutMs, guardFor(session, lease, section));
  if (guard === undefined) {
    section.assertHeld();
    // Any failure of a renewal is retried, and one that is not transient, such as a missing permission, says what to do.
    const { lastFailure } = lease;
    const isTold = lastFailure !== undefined && !isTransient(lastFailure);
    throw isTold ? lastFailure : noAnswer(timeoutMs, { sent: 1, failure: lastFailure });
  }
  // All copies have one token, so DynamoDB applies them once, and repeats a reply that was lost.
  const writes = { items: copy, guard, token: uuid(), isMetered: CHANNELS["dynamutex:request"].hasSubscribers };
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
