import { LockStoreError } from "../errors.js";
import type { LockData } from "../lock-info.js";
import { displayTime, stamp } from "../protocol/lease-time.js";
import { mayTake } from "../protocol/may-take.js";
import type { Memory, Row } from "../protocol/row.js";
import { memoryAfter, memoryOf } from "../protocol/rules.js";
import { wasApplied } from "../protocol/was-applied.js";
import type { Take } from "../protocol/writes.js";
import { attemptMs } from "../session/requests.js";
import { type Copies, isTransient } from "../session/retry.js";
import type { Session } from "../session/session.js";
import { boundsOf, isTimeKnown } from "../time/clock.js";
import { giveBack, removeWhenItArrives } from "./abandoned-claims.js";
import { Acquisition, type Takeover, type Target } from "./acquisition.js";
import { learnTime, type Once, tickNow } from "./known-time.js";
import type { Wait } from "./wait.js";

/** The most writes of one try: a refusal may show that the row remembers something, or is free by now. */
const MOST_TRIES = 3;

export interface ClaimOptions {
  readonly data?: LockData | undefined;
  readonly once?: Once | undefined;
  /** No copy of a write leaves later than this, on `atMost`. Default: the bounds of the wait. */
  readonly until?: (() => number) | undefined;
}

/** The row that refuses a claim: `held` by somebody else, or `done`, because its tick was already granted. */
export interface InTheWay {
  readonly target: Target;
  readonly row: Row;
}

/** The rows that were seen to be in the way: one at least. */
export type RowsInTheWay = readonly [InTheWay, ...InTheWay[]];

export type Claimed<Granted> =
  | { readonly kind: "granted"; readonly granted: Granted }
  /** `done`: this tick was already granted, now and for ever. */
  | { readonly kind: "held" | "done"; readonly inTheWay: RowsInTheWay };

/**
 * Tries to take rows: one conditional write, and another where the refusal itself shows that they are free.
 *
 * @throws the store's error, after retries in the time that `wait` allows.
 */
export async function tryClaim<Granted>(
  session: Session,
  wait: Wait,
  send: () => Promise<Claimed<Granted>>,
): Promise<Claimed<Granted>> {
  for (let attempt = 1; ; attempt++) {
    const result = await send();
    if (result.kind !== "held" || attempt === MOST_TRIES) return result;
    if (!result.inTheWay.every(({ target, row }) => looksFree(session, target, row))) return result;
    wait.throwIfEnough();
  }
}

/** Takes one row: one write, sent until it is answered or its lease would be over. */
export async function claim(
  session: Session,
  target: Target,
  wait: Wait,
  options: ClaimOptions = {},
): Promise<Claimed<Acquisition>> {
  const claimed = await claimAll(session, [target], wait, options);
  return claimed.kind === "granted" ? { ...claimed, granted: claimed.granted[0] as Acquisition } : claimed;
}

/** Takes several rows together or not at all: one transaction. */
export async function claimAll(
  session: Session,
  targets: readonly [Target, ...Target[]],
  wait: Wait,
  { data, once, until = wait.until }: ClaimOptions = {},
): Promise<Claimed<readonly Acquisition[]>> {
  const [first] = targets;
  /** What the last claim of this call without an answer failed of. */
  let failure: unknown;
  for (;;) {
    wait.throwIfEnough();
    if (!isTimeKnown(session.clock)) {
      const row = await learnTime(session, first.at, wait);
      // Whether a tick is done, only the write tells for certain.
      if (once === undefined && row !== undefined && !looksFree(session, first, row)) {
        wait.blocker.saw(row);
        return { kind: "held", inTheWay: [{ target: first, row }] };
      }
    }
    const tick = once && (await tickNow(session, first.at, once, wait));
    const sending = new Sending(session, targets, { data, tick });
    let answer: Answer | undefined;
    try {
      answer = await sending.send(wait, until);
    } catch (error) {
      if (tick !== undefined) wait.failures.doubtfulTicks.set(tick, error);
      failure = error;
      // A copy may have been applied: the client's own retries count.
      const isDoubtful = error instanceof LockStoreError && (error.transient || error.retried);
      if (isDoubtful || sending.copies.sent > 1) sending.abandon();
      wait.throwIfEnough();
      if (isTransient(error)) wait.claimWasUnanswered(first, leaseMs(targets), error);
      // Its retries have paused until its lease would be over.
      if (!isTransient(error) || session.clock.atMost() >= until()) throw error;
      continue;
    }
    if (answer === undefined) {
      await wait.pacing.again();
      continue;
    }
    const granted = sending.granted(answer);
    if (granted !== undefined) return { kind: "granted", granted };
    const inTheWay = sending.refused(answer);
    if (tick !== undefined) for (const uuid of sending.uuids) wait.failures.refusedClaims.add(uuid);
    for (const { target, row } of inTheWay) {
      session.sightings.note(target.at, row);
      wait.blocker.saw(row);
    }
    const done = inTheWay.find(({ row }) => isDone(row, tick));
    if (done === undefined) {
      if (!inTheWay.every(({ row }) => session.sightings.isAbandoned(row))) return { kind: "held", inTheWay };
      // Earlier claims of this process, which nobody relies on: the next one names their rows, and takes them over.
      if (session.clock.atMost() >= until()) throw inOwnWay(first, failure);
      await session.clock.sleep(first.settings.poll.minMs, wait.enough);
      continue;
    }
    // It may have been an earlier claim of this very call that took the tick, and nothing has run.
    if (wait.failures.doubtfulTicks.has(done.row.tick)) throw wait.failures.doubtfulTicks.get(done.row.tick);
    // A late copy of a claim of this call that was refused before.
    if (wait.failures.refusedClaims.has(done.row.uuid)) throw tickWasted(done);
    return { kind: "done", inTheWay };
  }
}

/** @param cause why an earlier claim of the call got no answer, if one did not. */
function inOwnWay({ at }: Target, cause: unknown): LockStoreError {
  return new LockStoreError(
    `Lock ${JSON.stringify(at.name)} is not held: an earlier claim of this process got no answer, and its row was there ` +
      "to the end; try again",
    { transient: true, cause },
  );
}

function tickWasted({ target, row }: InTheWay): LockStoreError {
  return new LockStoreError(
    `Lock ${JSON.stringify(target.at.name)}: tick ${row.tick} was taken by a late copy of a claim of this call that had been ` +
      "refused, so nothing has run for it",
  );
}

/** For how long the first of these leases to end can be relied on. */
function leaseMs(targets: readonly Target[]): number {
  return Math.min(...targets.map(({ settings }) => settings.ttlMs - settings.safetyMarginMs));
}

/** Whether this tick, or a later one, was already granted. */
export function isDone(row: Row, tick: number | undefined): boolean {
  return tick !== undefined && row.tick !== undefined && row.tick >= tick;
}

/** Whether a claim made now would take this row, which was noted before. */
export function looksFree(session: Session, { at, settings }: Target, row: Row): boolean {
  return mayTake(row, session.sightings.knowledge(at, settings.takeover));
}

/** Whether a claim made now would take this row, by the rows that a look has shown. */
export function looksFreeIn(session: Session, target: Target, rows: readonly Row[]): boolean {
  const row = rows.find(({ sort }) => sort === target.at.sort);
  return row === undefined || looksFree(session, target, row);
}

/** What the table said to the copy of a claim that was answered last. */
type Answer =
  | { readonly kind: "applied"; readonly replaced: Row | undefined; readonly drawn: bigint | undefined }
  /** For each take the row that refused it, if one did. */
  | { readonly kind: "refused"; readonly rows: readonly (Row | undefined)[]; readonly retried: boolean };

/** One of the rows of a claim. */
interface Part {
  readonly target: Target;
  readonly take: Take;
}

/** What the answer to a take tells of its row. */
interface Found {
  /** What the row remembered before. Default: what the take respects, which is the most. */
  readonly remembered?: Memory | undefined;
  readonly fence?: bigint | undefined;
  readonly takeover?: Takeover | undefined;
}

/** The takes of one claim, which go together, and their copies. */
class Sending {
  readonly copies: Copies = { sent: 0, unanswered: 0 };
  readonly #session: Session;
  readonly #targets: readonly Target[];
  readonly #purpose: Pick<Take, "data" | "tick">;
  /** Empty until the first copy has left. */
  #parts: readonly Part[] = [];
  /** When the first copy left, on `atMost`. */
  #sentAt = Number.POSITIVE_INFINITY;

  constructor(session: Session, targets: readonly Target[], purpose: Pick<Take, "data" | "tick">) {
    this.#session = session;
    this.#targets = targets;
    this.#purpose = purpose;
    for (const { settings } of targets) session.mayRelease(settings.releaseWithinMs);
  }

  /**
   * Sends the takes until they are answered, or a lease that they ask for would be over.
   * @returns undefined if the time has to be learned first.
   */
  send(wait: Wait, until: () => number): Promise<Answer | undefined> {
    const ttlMs = Math.min(...this.#targets.map(({ settings }) => settings.ttlMs));
    const longestMs = leaseMs(this.#targets);
    const end = (): number => Math.min(this.#sentAt + longestMs, until());
    const persistence = { kind: "take", attemptMs: attemptMs(ttlMs), until: end, copies: this.copies } as const;
    return wait.persistAtKnownTime(persistence, (signal) => {
      if (this.#parts.length === 0) {
        // Read the stopwatch before the first copy leaves: a watcher may count the ttl from there.
        this.#sentAt = this.#session.clock.atMost();
        this.#parts = this.#targets.map((target) => ({ target, take: this.#newTake(target) }));
      }
      return this.#write(signal);
    });
  }

  get uuids(): readonly string[] {
    return this.#parts.map(({ take }) => take.uuid);
  }

  /** The acquisitions, where this claim or an earlier copy of it was applied. */
  granted(answer: Answer): readonly Acquisition[] | undefined {
    if (answer.kind === "refused" && !this.#parts.every(({ take }, index) => this.#isOwn(take, answer.rows[index])))
      return undefined;
    return this.#parts.map((part, index) => {
      const { at } = part.target;
      // What it replaced, or what it has made of that: either shows what the row remembered before.
      const row = answer.kind === "applied" ? answer.replaced : answer.rows[index];
      const fence = answer.kind === "applied" ? answer.drawn : row?.fence;
      if (row?.wanted !== undefined) this.#session.contended().sees(row);
      this.#session.sightings.note(at, undefined);
      const remembered = this.#parts.length === 1 ? memoryOf(row) : undefined;
      return this.#acquisition(part, { remembered, fence, takeover: this.#takeover(part.take, answer) });
    });
  }

  /** Gives back what is left of an earlier copy. @returns the rows of others, of which there is one at least. */
  refused(answer: Answer): RowsInTheWay {
    const rows = answer.kind === "refused" ? answer.rows : [];
    const others: InTheWay[] = [];
    for (const [index, part] of this.#parts.entries()) {
      // Also of a refused claim the network may deliver a copy later: nobody relies on what that leaves.
      this.#session.sightings.abandon(part.take.uuid);
      const row = rows[index];
      if (row === undefined) continue;
      if (!this.#isOwn(part.take, row)) others.push({ target: part.target, row });
      // An earlier copy was applied, and one of its rows was ended by force since: what is left of it is abandoned.
      else this.#session.detach(giveBack(this.#session, this.#acquisition(part)));
    }
    // Only the last copy was refused for certain: one that got no answer may still arrive, and block others.
    if (this.#mayStillArrive(answer)) this.abandon();
    return others as unknown as RowsInTheWay;
  }

  /** Removes what a copy has taken, now or when it arrives. Two rows are looked at: one may have been ended by force. */
  abandon(): void {
    const parts = this.#parts;
    for (const { take } of parts) this.#session.sightings.abandon(take.uuid);
    let rest: Promise<unknown> | undefined;
    const look = async (part: Part): Promise<void> => {
      if (!(await removeWhenItArrives(this.#session, this.#acquisition(part)))) return;
      rest ??= Promise.all(parts.slice(2).map((other) => giveBack(this.#session, this.#acquisition(other))));
      await rest;
    };
    for (const part of parts.slice(0, 2)) this.#session.detach(look(part));
  }

  async #write(signal: AbortSignal): Promise<Answer> {
    const { store } = this.#session;
    const [only] = this.#parts;
    if (only !== undefined && this.#parts.length === 1) {
      const outcome = await store.write(only.take, signal);
      return outcome.kind === "applied" ? outcome : { ...outcome, rows: [outcome.row] };
    }
    const takes = this.#parts.map(({ take }) => take);
    const outcome = await store.writeAll(takes, signal);
    if (outcome.kind === "refused") return { ...outcome, retried: false };
    // A transaction does not tell what it replaced.
    return { kind: "applied", replaced: undefined, drawn: undefined };
  }

  /** A fresh uuid and a lease that begins now. */
  #newTake({ at, settings, permits }: Target): Take {
    const { clock, owner, sightings, contention } = this.#session;
    const { ttlMs, fencing, takeover } = settings;
    const bounds = boundsOf(clock);
    return {
      ...this.#purpose,
      kind: "take",
      at,
      uuid: this.#session.uuid(),
      expires: stamp(bounds, ttlMs),
      ttlMs,
      owner,
      acquired: displayTime(bounds),
      wanted: contention?.markOf(at),
      permits,
      knowledge: sightings.knowledge(at, takeover),
      remembers: sightings.memory(at),
      // Should the row be deleted, the next first token is later than every one before it: time has gone on.
      fenceSeed: fencing ? Math.ceil(bounds.latest) : undefined,
    };
  }

  /** Whether a copy that got no answer may be applied after one that was refused. */
  #mayStillArrive(answer: Answer): boolean {
    return this.copies.unanswered > 0 || (answer.kind === "refused" && answer.retried);
  }

  #isOwn(take: Take, row: Row | undefined): boolean {
    return wasApplied(take, row) !== "no";
  }

  #acquisition({ take, target }: Part, { remembered = take.remembers, fence, takeover }: Found = {}): Acquisition {
    const { uuid, expires, acquired, data, tick, knowledge } = take;
    return new Acquisition(this.#session, target, {
      ...{ uuid, expires, sentAt: this.#sentAt, acquired, data, tick, takeover },
      remembers: memoryAfter({ ...take, remembers: remembered }),
      fence: target.settings.fencing ? fence : undefined,
      namedHold: knowledge.unchanged?.uuid === undefined ? knowledge.unchanged?.expires : undefined,
    });
  }

  /** The rule by which a take took its row from a holder that was gone. */
  #takeover({ knowledge }: Take, answer: Answer): Takeover | undefined {
    const replaced = answer.kind === "applied" ? answer.replaced : undefined;
    if (replaced?.uuid === undefined || this.#session.sightings.isAbandoned(replaced)) return undefined;
    return mayTake(replaced, { earliest: knowledge.earliest }) ? "expired" : "unchanged";
  }
}
