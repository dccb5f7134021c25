import type { LockData } from "../lock-info.js";
import { isTransient } from "../session/retry.js";
import type { Host } from "../session/session.js";
import type { Row, Take } from "../store.js";
import { withdraw } from "./abandoned-claims.js";
import { announce, type Copies, looksFree, newClaim, sendCounted, termsNow } from "./claim.js";
import type { Grant, Target } from "./grant.js";
import type { Wait } from "./wait.js";
import { MOST_TRIES, watch } from "./watch.js";

/** One of the locks of a set, as one transaction asks for it. */
interface Part extends Take {
  readonly target: Target;
  readonly grant: Grant;
}

/** A row that is in the way of a set. */
interface InTheWay {
  readonly target: Target;
  readonly row: Row;
}

type Outcome =
  | { readonly kind: "granted"; readonly grants: readonly Grant[] }
  | { readonly kind: "held"; readonly inTheWay: readonly InTheWay[] };

/**
 * Waits until all of these locks are taken, by one transaction, all or none.
 *
 * 1. Try to take them. A refusal shows the rows that are in the way, so nothing needs to be read.
 * 2. Watch these rows, one after the other, each until it looks free: one read a poll, however many the locks are.
 * 3. Go on with 1. Nothing is held meanwhile, so nobody waits for somebody who waits for him.
 *
 * @throws the store's error if it is not transient, or if the table never answered; what ended the wait.
 */
export async function acquireAll(
  host: Host,
  targets: readonly Target[],
  data: LockData | undefined,
  wait: Wait,
): Promise<readonly Grant[]> {
  for (;;) {
    const outcome = await claimAll(host, targets, data, wait);
    if (outcome.kind === "granted") return outcome.grants;
    for (const { target, row } of outcome.inTheWay) await watch(host, target, row, wait);
  }
}

/** Tries to take all of these locks. @returns undefined if one of them is held; the wait knows by whom. */
export async function tryAcquireAll(
  host: Host,
  targets: readonly Target[],
  data: LockData | undefined,
  wait: Wait,
): Promise<readonly Grant[] | undefined> {
  for (let attempt = 1; ; attempt++) {
    const outcome = await claimAll(host, targets, data, wait);
    if (outcome.kind === "granted") return outcome.grants;
    const areFree = outcome.inTheWay.every(({ target, row }) => looksFree(host, target, row));
    if (attempt === MOST_TRIES || !areFree) return undefined;
    wait.throwIfEnough();
  }
}

/**
 * Takes back a set that nobody waits for any more. Two of its rows tell whether the transaction arrived, because one of
 * them may have been taken off us by force.
 */
export async function withdrawAll(
  host: Host,
  parts: readonly { readonly target: Target; readonly grant: Grant }[],
  { certain }: { readonly certain: boolean },
): Promise<void> {
  const takeBack = (some: typeof parts): Promise<unknown> =>
    Promise.all(some.map(({ target, grant }) => withdraw(host, target, grant, { certain: true })));
  if (certain) {
    await takeBack(parts);
    return;
  }
  let rest: Promise<unknown> | undefined;
  const lookOut = async ({ target, grant }: (typeof parts)[number]): Promise<void> => {
    if (!(await withdraw(host, target, grant, { certain }))) return;
    rest ??= takeBack(parts.slice(2));
    await rest;
  };
  await Promise.all(parts.slice(0, 2).map(lookOut));
}

/** One transaction, sent until it is answered or the leases that it asks for would be over. */
async function claimAll(
  host: Host,
  targets: readonly Target[],
  data: LockData | undefined,
  wait: Wait,
): Promise<Outcome> {
  for (;;) {
    wait.throwIfEnough();
    const parts = targets.map((target): Part => {
      const terms = termsNow(host, target);
      return { target, terms, ...newClaim(host, target, data, terms, undefined) };
    });
    const attempt = { sent: 0, unanswered: 0 };
    let rows: readonly (Row | undefined)[] | undefined;
    try {
      rows = await send(host, parts, wait, attempt);
    } catch (error) {
      // Nobody knows whether a copy was applied, or will be: what it took must go, now or when it arrives.
      if (isTransient(error) || attempt.sent > 1) host.detach(withdrawAll(host, parts, { certain: false }));
      wait.throwIfEnough();
      if (!isTransient(error) || host.clock.atMost() >= wait.until()) throw error;
      continue;
    }
    // Our own uuids refuse us, all of them: an earlier copy of this transaction was applied and its reply lost.
    if (rows === undefined || rows.every((row, index) => row?.uuid === parts[index]?.claim.uuid)) {
      // A transaction does not tell what it replaced.
      for (const { target, grant } of parts) announce(host, target, grant, wait, undefined);
      return { kind: "granted", grants: parts.map(({ grant }) => grant) };
    }
    const arrived = parts.filter(({ claim }, index) => rows?.[index]?.uuid === claim.uuid);
    // An earlier copy was applied, and one of its locks was ended by force since: the others are nobody's.
    if (arrived.length > 0) host.detach(withdrawAll(host, arrived, { certain: true }));
    // Only this copy was refused for certain: one that got no answer may still arrive.
    if (attempt.unanswered > 0) host.detach(withdrawAll(host, parts, { certain: false }));
    return { kind: "held", inTheWay: noted(host, parts, rows, wait) };
  }
}

/** @returns the rows that refused it; undefined if it was granted. */
async function send(
  host: Host,
  parts: readonly Part[],
  wait: Wait,
  attempt: Copies,
): Promise<readonly (Row | undefined)[] | undefined> {
  const ttlMs = Math.min(...parts.map(({ target }) => target.settings.ttlMs));
  const ends = parts.map(({ target: { settings }, grant }) => grant.sentAt + settings.ttlMs - settings.safetyMarginMs);
  const leaseEnds = Math.min(...ends);
  const until = (): number => Math.min(leaseEnds, wait.until());
  const request = (signal: AbortSignal) => host.store.takeAll(parts, signal);
  const outcome = await sendCounted(wait, attempt, { ttlMs, until }, request);
  return outcome.kind === "someHeld" ? outcome.rows : undefined;
}

/** What refused, less what a copy of our own left there: that is taken back. */
function noted(
  host: Host,
  parts: readonly Part[],
  rows: readonly (Row | undefined)[],
  wait: Wait,
): readonly InTheWay[] {
  return parts.flatMap(({ target, claim }, index) => {
    const row = rows[index];
    if (row === undefined || row.uuid === claim.uuid) return [];
    host.observations.note(target.name, row);
    wait.saw(row);
    return [{ target, row }];
  });
}
