import { publish } from "../diagnostics.js";
import type { LockData } from "../lock-info.js";
import type { Row } from "../protocol/row.js";
import { memoryAfter } from "../protocol/rules.js";
import { wasApplied } from "../protocol/was-applied.js";
import type { Take } from "../protocol/writes.js";
import { attemptMs } from "../session/requests.js";
import { type Copies, isTransient } from "../session/retry.js";
import type { Session } from "../session/session.js";
import type { WriteAllOutcome } from "../store.js";
import { isTimeKnown } from "../time/clock.js";
import { giveBack, removeWhenItArrives } from "./abandoned-claims.js";
import { Acquisition, type Taken, type Target } from "./acquisition.js";
import { looksFree, MOST_TRIES, newTake } from "./claim.js";
import { learnTime } from "./known-time.js";
import type { Wait } from "./wait.js";
import { watch } from "./watch.js";

/** One of the locks of a set, as one transaction asks for it. */
interface Part {
  readonly target: Target;
  readonly take: Take;
}

/** A row that is in the way of a set. */
interface InTheWay {
  readonly target: Target;
  readonly row: Row;
}

type Outcome =
  | { readonly kind: "granted"; readonly acquisitions: readonly Acquisition[] }
  | { readonly kind: "held"; readonly inTheWay: readonly InTheWay[] };

/**
 * Waits until all of these locks are taken, by one transaction, all or none.
 *
 * 1. Try to take them. A refusal shows the rows that are in the way, so nothing needs to be read.
 * 2. Watch these rows, one after the other, each until it looks free: one read a poll, however many the locks are.
 * 3. Go on with 1. Nothing is held meanwhile, so no two sets wait for one another.
 *
 * @throws the store's error if it is not transient, or if the table never answered; what ended the wait.
 */
export async function acquireAll(
  session: Session,
  targets: readonly Target[],
  data: LockData | undefined,
  wait: Wait,
): Promise<readonly Acquisition[]> {
  for (;;) {
    const outcome = await claimAll(session, targets, data, wait);
    if (outcome.kind === "granted") return outcome.acquisitions;
    for (const { target, row } of outcome.inTheWay) await watch(session, target, row, wait);
  }
}

/** Tries to take all of these locks. @returns undefined if one of them is held; the wait knows by whom. */
export async function tryAcquireAll(
  session: Session,
  targets: readonly Target[],
  data: LockData | undefined,
  wait: Wait,
): Promise<readonly Acquisition[] | undefined> {
  for (let attempt = 1; ; attempt++) {
    const outcome = await claimAll(session, targets, data, wait);
    if (outcome.kind === "granted") return outcome.acquisitions;
    const areFree = outcome.inTheWay.every(({ target, row }) => looksFree(session, target, row));
    if (attempt === MOST_TRIES || !areFree) return undefined;
    wait.throwIfEnough();
  }
}

/** One transaction, sent until it is answered or the leases that it asks for would be over. */
async function claimAll(
  session: Session,
  targets: readonly Target[],
  data: LockData | undefined,
  wait: Wait,
): Promise<Outcome> {
  for (;;) {
    wait.throwIfEnough();
    const [first] = targets;
    if (first !== undefined && !isTimeKnown(session.clock)) {
      const row = await learnTime(session, first.at, wait);
      if (row !== undefined && !looksFree(session, first, row)) {
        wait.saw(row);
        return { kind: "held", inTheWay: [{ target: first, row }] };
      }
    }
    const sending = new Sending(session, targets, data);
    let outcome: WriteAllOutcome | undefined;
    try {
      outcome = await sending.send(wait);
    } catch (error) {
      if (isTransient(error) || sending.copies.sent > 1) sending.abandon();
      wait.throwIfEnough();
      if (!isTransient(error) || session.clock.atMost() >= wait.until()) throw error;
      continue;
    }
    if (outcome === undefined) continue;
    const rows = outcome.kind === "refused" ? outcome.rows : undefined;
    if (rows === undefined || sending.wasApplied(rows)) return { kind: "granted", acquisitions: sending.granted(wait) };
    sending.releaseArrived(rows);
    // Only this copy was certainly refused: one without an answer may still arrive.
    if (sending.copies.unanswered > 0) sending.abandon();
    return { kind: "held", inTheWay: sending.inTheWay(rows, wait) };
  }
}

/** A transaction, as its first copy left. */
interface SentSet {
  readonly parts: readonly Part[];
  /** On `atMost`. */
  readonly at: number;
}

/** One transaction of takes, and its copies. */
class Sending {
  readonly copies: Copies = { sent: 0, unanswered: 0 };
  readonly #session: Session;
  readonly #targets: readonly Target[];
  readonly #data: LockData | undefined;
  #sent: SentSet | undefined;

  constructor(session: Session, targets: readonly Target[], data: LockData | undefined) {
    this.#session = session;
    this.#targets = targets;
    this.#data = data;
  }

  /** @returns undefined if the time has to be learned first. */
  async send(wait: Wait): Promise<WriteAllOutcome | undefined> {
    const { clock, store } = this.#session;
    const ttlMs = Math.min(...this.#targets.map(({ settings }) => settings.ttlMs));
    const leaseMs = Math.min(...this.#targets.map(({ settings }) => settings.ttlMs - settings.safetyMarginMs));
    const until = (): number => {
      return this.#sent === undefined ? wait.until() : Math.min(this.#sent.at + leaseMs, wait.until());
    };
    const persistence = { kind: "take", attemptMs: attemptMs(ttlMs), until, copies: this.copies } as const;
    return await wait.persistAtKnownTime(persistence, (signal) => {
      if (this.#sent === undefined) {
        const make = (target: Target): Part => ({ target, take: newTake(this.#session, target, { data: this.#data }) });
        this.#sent = { at: clock.atMost(), parts: this.#targets.map(make) };
      }
      return store.writeAll(
        this.#sent.parts.map(({ take }) => take),
        signal,
      );
    });
  }

  /** Whether every row has our uuid: an earlier copy of this transaction was applied and its reply lost. */
  wasApplied(rows: readonly (Row | undefined)[]): boolean {
    return this.#parts.every((part, index) => isOwn(part, rows[index]));
  }

  /** A transaction does not return what it replaced. */
  granted(wait: Wait): readonly Acquisition[] {
    const { sightings, owner } = this.#session;
    return this.#parts.map((part) => {
      const acquisition = this.#acquisition(part);
      const { at, uuid } = acquisition;
      sightings.note(at, undefined);
      const { waitedMs } = wait;
      publish("dynamutex:acquired", { name: at.name, uuid, owner, waitedMs, takeover: undefined });
      return acquisition;
    });
  }

  /**
   * An earlier copy was applied, and one of its locks was unlocked by force since. The others are of no use alone, and
   * are released.
   */
  releaseArrived(rows: readonly (Row | undefined)[]): void {
    for (const [index, part] of this.#parts.entries()) {
      if (isOwn(part, rows[index])) this.#session.detach(giveBack(this.#session, this.#acquisition(part)));
    }
  }

  /**
   * The call has given this transaction up: what a copy has taken, or may still take, is released in the background. Two
   * of its rows are looked at, because one of them may have been unlocked by force.
   */
  abandon(): void {
    const parts = this.#sent?.parts ?? [];
    let rest: Promise<unknown> | undefined;
    const look = async (part: Part): Promise<void> => {
      if (!(await removeWhenItArrives(this.#session, part.target, this.#taken(part)))) return;
      rest ??= Promise.all(parts.slice(2).map((other) => giveBack(this.#session, this.#acquisition(other))));
      await rest;
    };
    for (const part of parts.slice(0, 2)) this.#session.detach(look(part));
  }

  /** What refused, less what a copy of our own left there. */
  inTheWay(rows: readonly (Row | undefined)[], wait: Wait): readonly InTheWay[] {
    return this.#parts.flatMap((part, index) => {
      const row = rows[index];
      if (row === undefined || isOwn(part, row)) return [];
      this.#session.sightings.note(part.target.at, row);
      wait.saw(row);
      return [{ target: part.target, row }];
    });
  }

  get #parts(): readonly Part[] {
    return this.#sent?.parts ?? [];
  }

  #acquisition(part: Part): Acquisition {
    return new Acquisition(this.#session, part.target, this.#taken(part));
  }

  /** A transaction does not return what the rows remembered: it is at most what the take respects. */
  #taken({ take }: Part): Taken {
    return { take, sentAt: (this.#sent as SentSet).at, remembers: memoryAfter(take) };
  }
}

function isOwn({ take }: Part, row: Row | undefined): boolean {
  return wasApplied(take, row, { earlierCopyUnanswered: true }) !== "no";
}
