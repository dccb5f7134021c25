import { publish } from "../diagnostics.js";
import { LockStoreError, type LossReason } from "../errors.js";
import type { LockData } from "../lock-info.js";
import { memberUuid } from "../protocol/addresses.js";
import type { HandOff } from "../protocol/hand-off.js";
import { leaseEnd, stamp, tokenDraw } from "../protocol/lease-time.js";
import type { Row } from "../protocol/row.js";
import { isStillHeldBy, wasApplied } from "../protocol/was-applied.js";
import type { RecordSuccess, Renew, RowAfterRelease, Transfer, Vacate } from "../protocol/writes.js";
import { Copies, firstTimeoutMs, persist } from "../session/requests.js";
import { isTransient, type Persistence } from "../session/retry.js";
import { rowsOf, type Session } from "../session/session.js";
import type { WriteOutcome } from "../store.js";
import { boundsOf, type Clock, sleepUntilRung } from "../time/clock.js";
import { asOne, lossOf, type RowLease, reasonOf } from "./row-lease.js";

/** What became of a write of a row's holder. */
export type Outcome =
  | { readonly kind: "ok" }
  /** Certainly refused: the row is not ours any more. */
  | { readonly kind: "lost"; readonly why: LossReason }
  /** No answer, or none that tells: the write may have been applied, or may be later. */
  | { readonly kind: "unknown"; readonly cause: unknown };

/** The same, with the lease as it is known afterwards, whatever the outcome. It replaces the lease that the write was given. */
export type Written = Outcome & { readonly lease: RowLease };

/** How long a write of a holder is tried. */
export interface Trying {
  /** On `atMost`. */
  readonly until: () => number;
  /** Ends the retries: an attempt in flight is still awaited. */
  readonly endSignal?: AbortSignal | undefined;
  readonly onFailure?: ((cause: unknown) => void) | undefined;
}

// Each write makes its request, sends it, and judges the answer. One at a time is in flight for a lease, or one would undo what
// another has learned. Only `record` may overlap with others: it learns nothing of the lease.
//
// A lock of several permits has a write for each of its rows, all at once. Losing one of them is losing all.

/**
 * Stamps a later `expires`, and replaces the data, if given. Without data, any failure is retried: credentials may be refreshed, a
 * table may come back. With data it may be the data that the table refuses.
 */
export async function renew(session: Session, lease: RowLease, trying: Trying, data?: LockData): Promise<Written> {
  if (lease.others !== undefined) return await writeEach(lease, (one) => renew(session, one, trying, data));
  const { at, uuid, remembers } = lease;
  const retried = data === undefined ? { ...trying, worthRetrying: () => true } : trying;
  const make = (expires: number): Renew => ({ kind: "renew", at, uuid, expires, data, remembers });
  const written = await writeStamp(session, lease, retried, make);
  return written.kind === "ok" && data !== undefined ? { kind: "ok", lease: { ...written.lease, data } } : written;
}

/**
 * Gives the row a new uuid and, on a fenced mutex, the next token, for a section that must share neither with the one before.
 * Like a renewal, it stamps a later `expires`.
 */
export async function reissue(
  session: Session,
  lease: RowLease,
  trying: Trying,
  uuid: string = session.uuid(),
): Promise<Written> {
  if (lease.others !== undefined)
    return await writeEach(lease, (one, index) => reissue(session, one, trying, memberUuid(uuid, index)));
  const { at, uuid: from, remembers, fence } = lease;
  const fenced = lease.settings.fencing;
  const make = (expires: number): Transfer => {
    const token = fenced ? tokenDraw(boundsOf(session.clock), fence) : undefined;
    return { kind: "reissue", at, from, uuid, expires, token, remembers };
  };
  const written = await writeStamp(session, lease, trying, make);
  return underUuid(uuid, written, fenced ? written.drawn : fence);
}

/** Gives the row the uuid of a hand-off, and a lease of that length, which may end earlier than the one that it has. */
export async function transfer(
  session: Session,
  lease: RowLease,
  trying: Trying,
  { handOff, ttlMs }: { readonly handOff: HandOff; readonly ttlMs: number },
): Promise<Written> {
  const { at, uuid: from, firstStamp: after, remembers } = lease;
  const { uuid } = handOff;
  const change = { kind: "transfer", at, from, after, uuid, ttlMs, owner: session.owner } as const;
  const make = (expires: number): Transfer => ({ ...change, handOff, expires, remembers });
  const written = await writeStamp(session, lease, trying, make, ttlMs);
  return underUuid(uuid, written, lease.fence);
}

/** How a row is released. */
export interface Releasing {
  /** Until when the release is retried, on `atMost`. Default: for one attempt. */
  readonly until?: (() => number) | undefined;
  /** Default: free. */
  readonly leaves?: RowAfterRelease | undefined;
  /** Whether the run of its tick has begun. If not, the release takes back that it is shown as run, and the number of that run. */
  readonly hasBegun?: boolean | undefined;
  /** Whether its caller has had its answer: it is reported to nobody, and does not keep the process alive. */
  readonly isDetached?: boolean | undefined;
}

/**
 * Removes the uuid from the row, if it is still ours, whichever of its uuids it has. Retried after any failure. A release without
 * an answer is reported on the diagnostics channel, and the lease ends by itself.
 */
export async function vacate(session: Session, lease: RowLease, releasing: Releasing = {}): Promise<Written> {
  const written = await vacateRows(session, lease, releasing);
  if (written.kind === "unknown" && !releasing.isDetached) reportUnreleased(lease, written.cause);
  return written;
}

async function vacateRows(session: Session, lease: RowLease, releasing: Releasing): Promise<Written> {
  if (lease.others !== undefined) return await writeEach(lease, (one) => vacateRows(session, one, releasing));
  const answer = await sendReleases(session, lease, releasing);
  switch (answer.applied) {
    case "yes":
    case "maybe":
      return { kind: "ok", lease };
    case "no":
      return { kind: "lost", why: reasonOf(session, lease, answer.row), lease };
    case "unanswered":
      return { kind: "unknown", cause: answer.cause, lease };
    default:
      return answer satisfies never;
  }
}

/** Sends the release of the uuid, and of the other one that the row may have. */
async function sendReleases(session: Session, lease: RowLease, releasing: Releasing): Promise<Answer> {
  const { clock } = session;
  const { at, uuid, maybeUuid, remembers, attempt: ran } = lease;
  const isUnbegun = lease.tick !== undefined && !releasing.hasBegun;
  const attempt = isUnbegun && ran !== undefined ? ran - 1 : undefined;
  const leaves = unlikeNamed(lease, releasing.leaves ?? { kind: "free" });
  const { until = attemptEnd(session, lease), isDetached } = releasing;
  const write: Vacate = { kind: "vacate", at, uuid, leaves, remembers, isUnbegun, attempt };
  const how = { ...AS_RELEASE, ...(isDetached && { sleep: sleepUnheeded(clock) }) };
  const halfAt = (clock.atMost() + until()) / 2;
  // Both are sent in time, however long the first one gets no answer.
  const firstUntil = maybeUuid === undefined ? until : (): number => Math.min(halfAt, until());
  const first = await send(session, lease, { ...how, until: firstUntil }, () => write);
  if (maybeUuid === undefined || (first.applied === "no" && !isStillHeldBy(maybeUuid, first.row))) return first;
  // A write without an answer, which gives the row its other uuid, was applied before this release, or may have been. If it
  // arrives after the release of the uuid that it replaces, it is refused.
  const other = await send(session, lease, { ...how, until }, () => ({ ...write, uuid: maybeUuid }));
  if (other.applied === "unanswered") return other;
  // Whatever became of earlier copies: the row that has refused the last one still has the uuid that got no answer.
  if (first.applied === "unanswered" && isStillHeldBy(uuid, other.row)) return first;
  return other.applied === "no" ? { ...other, applied: "yes" } : other;
}

function reportUnreleased({ at: { name }, uuid }: RowLease, cause: unknown): void {
  publish("dynamutex:release-failed", { name, uuid, cause });
  // A failure that is not transient, such as a missing permission, would otherwise only show as slow locks.
  if (!isTransient(cause))
    process.emitWarning(`${JSON.stringify(name)} was not released: ${cause}`, "DynamutexWarning");
}

/** Sleeps without keeping the process alive. */
function sleepUnheeded(clock: Clock): Clock["sleep"] {
  return (ms, signal) => sleepUntilRung((wake) => clock.alarm(ms, wake), signal);
}

/**
 * Records that the run of its tick has succeeded. Retried after any failure until `until`. If another tick's row refuses it, it
 * may have been applied before.
 */
export async function record(
  session: Session,
  lease: RowLease,
  { tick, attempt }: Pick<RecordSuccess, "tick" | "attempt">,
  until: () => number,
): Promise<Outcome> {
  const write: RecordSuccess = { kind: "record", at: lease.at, uuid: lease.uuid, tick, attempt };
  const answer = await send(session, lease, { ...AS_RELEASE, until }, () => write);
  switch (answer.applied) {
    case "yes":
      return { kind: "ok" };
    case "no":
      return { kind: "lost", why: reasonOf(session, lease, answer.row) };
    case "maybe":
      return { kind: "unknown", cause: lossOf(lease, reasonOf(session, lease, answer.row)) };
    case "unanswered":
      return { kind: "unknown", cause: answer.cause };
    default:
      return answer satisfies never;
  }
}

/** Writes each of the rows of a lease. @returns the worst outcome, with the lease of them all. */
async function writeEach(lease: RowLease, write: (one: RowLease, index: number) => Promise<Written>): Promise<Written> {
  const [first, ...others] = rowsOf(lease) as readonly [RowLease, ...RowLease[]];
  const [head, ...rest] = await Promise.all([
    write({ ...first, others: undefined }, 0),
    ...others.map((one, index) => write(one, index + 1)),
  ]);
  const all = [head, ...rest];
  const worst = all.find(({ kind }) => kind === "lost") ?? all.find(({ kind }) => kind === "unknown") ?? head;
  return { ...worst, lease: asOne([head.lease, ...rest.map(({ lease: one }) => one)]) };
}

/** The table's answer to a write, and whether that write or an earlier copy of it was applied. */
type Answer =
  | {
      readonly applied: "yes" | "maybe" | "no";
      /** The row that has refused the write, if one has. */
      readonly row: Row | undefined;
      /** The fencing token that the row has, if the write draws one. */
      readonly drawn: bigint | undefined;
    }
  | { readonly applied: "unanswered"; readonly cause: unknown };

/** Sends a write until it is answered. All copies are the same: what it says is chosen as the first one leaves. */
async function send<Sent extends Renew | Transfer | Vacate | RecordSuccess>(
  session: Session,
  { settings: { ttlMs } }: RowLease,
  persistence: Omit<Persistence, "firstTimeoutMs">,
  make: () => Sent,
): Promise<Answer> {
  const copies = new Copies();
  let made: Sent | undefined;
  let outcome: WriteOutcome;
  try {
    outcome = await persist(session, { ...persistence, firstTimeoutMs: firstTimeoutMs(ttlMs) }, (signal) => {
      made ??= make();
      return copies.count(session.store.write(made, signal));
    });
  } catch (cause) {
    return { applied: "unanswered", cause };
  }
  if (outcome.kind === "applied") {
    if (outcome.replaced?.wanted !== undefined) session.contended().sees(outcome.replaced);
    return { applied: "yes", row: undefined, drawn: outcome.drawn };
  }
  const { row, retried } = outcome;
  // A copy that was throttled counts as well: the network may have delivered it twice.
  const applied = wasApplied(made as Sent, row, { earlierCopyUnanswered: retried || copies.sent > 1 });
  return { applied, row, drawn: row?.fence };
}

/**
 * Sends a write that stamps a later `expires`. A lease with a length of its own, `ownMs`, may get an earlier one.
 * @returns also the fencing token that the row has, if the write draws one.
 */
async function writeStamp(
  session: Session,
  lease: RowLease,
  trying: Trying & Pick<Persistence, "worthRetrying">,
  make: (expires: number) => Renew | Transfer,
  ownMs?: number,
): Promise<Written & { readonly drawn?: bigint | undefined }> {
  const { agenda, clock } = session;
  const {
    at,
    settings: { ttlMs },
  } = lease;
  let [sentAt, lastStamp] = [0, lease.lastStamp];
  const answer = await send(session, lease, { ...trying, kind: "renewal", sleep: agenda.sleep }, () => {
    lastStamp = ownMs === undefined ? stamp(boundsOf(clock), ttlMs, lastStamp) : stamp(boundsOf(clock), ownMs);
    // Read the stopwatch before the first copy leaves: a watcher may count the ttl from there.
    sentAt = clock.atMost();
    return make(lastStamp);
  });
  const sent = { ...lease, lastStamp };
  switch (answer.applied) {
    case "yes": {
      // A later stamp never ends the lease sooner, not even if the reply's `Date` contradicts what was known when the lease began.
      const stamped = { expires: lastStamp, ttlMs, sentAt, bounds: clock.wall(), atMost: clock.atMost() };
      const validUntil = Math.max(lease.validUntil, leaseEnd(stamped));
      return { kind: "ok", lease: { ...sent, expires: lastStamp, validUntil }, drawn: answer.drawn };
    }
    case "no": {
      if (!isStillHeldBy(lease.uuid, answer.row))
        return { kind: "lost", why: reasonOf(session, lease, answer.row), lease: sent };
      const cause = new LockStoreError(`The row of ${at.name} carries a stamp that its holder never sent`);
      return { kind: "unknown", cause, lease: sent };
    }
    case "maybe": {
      const message = `Lock ${JSON.stringify(at.name)} may have been handed off: its row has another holder by now, or is gone`;
      return { kind: "unknown", cause: new LockStoreError(message), lease: sent };
    }
    case "unanswered":
      return { kind: "unknown", cause: answer.cause, lease: sent };
    default:
      return answer satisfies never;
  }
}

/** The lease after a write that gives the row this uuid. Without an answer the row may have either: its release tries both. */
function underUuid(uuid: string, written: Written, fence: bigint | undefined): Written {
  const { lease } = written;
  switch (written.kind) {
    case "ok":
      return { kind: "ok", lease: { ...lease, uuid, firstStamp: lease.expires, fence } };
    case "unknown":
      return { ...written, lease: { ...lease, maybeUuid: uuid } };
    case "lost":
      return written;
    default:
      return written satisfies never;
  }
}

/** How long a release and the record of a success are retried: after any failure. */
const AS_RELEASE = { kind: "release", worthRetrying: () => true } as const;

/**
 * A take names a row without a holder by its `expires`. If the hold that we leave had the same `expires`, a late copy of the
 * take would match it: so the hold ends a millisecond later.
 */
function unlikeNamed({ namedHold }: RowLease, leaves: RowAfterRelease): RowAfterRelease {
  if (leaves.kind !== "held" || leaves.expires !== namedHold) return leaves;
  return { ...leaves, expires: leaves.expires + 1 };
}

function attemptEnd({ clock }: Session, { settings }: RowLease): () => number {
  const end = clock.atMost() + firstTimeoutMs(settings.ttlMs);
  return () => end;
}
