import { displayTime, stamp, tokenDraw } from "../protocol/lease-time.js";
import { mayTake } from "../protocol/may-take.js";
import type { Memory, Row } from "../protocol/row.js";
import { memoryAfter, memoryOf } from "../protocol/rules.js";
import { wasApplied } from "../protocol/was-applied.js";
import type { Take } from "../protocol/writes.js";
import type { Session } from "../session/session.js";
import type { WriteOutcome } from "../store.js";
import { boundsOf } from "../time/clock.js";
import { giveBack, removeWhenItArrives } from "./abandoned-claims.js";
import { type RowLease, rowLease, type Taken, type TakeoverRule, type Target } from "./row-lease.js";

/** What the answer to a take tells of its row, such as what the row remembered before. */
type Found = Partial<Pick<Taken, "fence" | "takeover"> & { readonly remembered: Memory }>;

/** What a claim is for. */
export interface Purpose extends Pick<Take, "data" | "tick" | "after"> {
  /** With `untilSuccess`: the most runs of the tick that may begin. */
  readonly maxAttempts?: number | undefined;
}

/** A row that refuses a claim, and what the claim wanted to take. */
export interface InTheWay {
  readonly target: Target;
  readonly row: Row;
}

/** The rows that were seen in the way: at least one. */
export type RowsInTheWay = readonly [InTheWay, ...InTheWay[]];

/** The take of one row. */
export class RowTake {
  /** When its first copy left, on `atMost`; Infinity before that. */
  sentAt: number = Number.POSITIVE_INFINITY;
  readonly #session: Session;
  readonly #target: Target;
  readonly #purpose: Purpose;
  readonly #uuid: string | undefined;
  #take: Take | undefined;

  /** @param uuid what its row gets. Default: a fresh one. */
  constructor(session: Session, target: Target, purpose: Purpose, uuid?: string) {
    this.#session = session;
    this.#target = target;
    this.#purpose = purpose;
    this.#uuid = uuid;
    session.mayRelease(target.settings.releaseWithinMs);
  }

  get uuids(): readonly string[] {
    return [this.write.uuid];
  }

  /** The write that all copies send: its uuid and its stamp are chosen as the first copy leaves. */
  get write(): Take {
    if (this.#take === undefined) {
      // Read the stopwatch before the first copy leaves: a watcher may count the ttl from there.
      this.sentAt = this.#session.clock.atMost();
      this.#take = this.#newTake();
    }
    return this.#take;
  }

  send(signal: AbortSignal, inTime: () => boolean): Promise<WriteOutcome> {
    return this.#session.store.write(this.write, signal, inTime);
  }

  granted(outcome: WriteOutcome): RowLease | undefined {
    if (outcome.kind === "refused") {
      const { row } = outcome;
      return this.isOwn(row) ? this.taken(row, { remembered: memoryOf(row), fence: row?.fence }) : undefined;
    }
    const { replaced, drawn: fence } = outcome;
    return this.taken(replaced, { remembered: memoryOf(replaced), fence, takeover: this.#takeoverOf(replaced) });
  }

  refused(outcome: WriteOutcome): readonly InTheWay[] {
    return outcome.kind === "refused" ? this.refusedBy(outcome.row) : [];
  }

  abandon(): void {
    if (this.#take === undefined) return;
    this.disown();
    this.#session.detach(removeWhenItArrives(this.#session, this.lease()));
  }

  /** Notes that no section will use this take, wherever its copies are. */
  disown(): void {
    this.#session.sightings.disown(this.write.uuid, this.write.attempt);
  }

  isOwn(row: Row | undefined): boolean {
    return wasApplied(this.write, row) !== "no";
  }

  /** The take was applied. @param row the row that it replaced, or the row that it has written, as far as is known. */
  taken(row: Row | undefined, found: Found): RowLease {
    if (row?.wanted !== undefined) this.#session.contended().sees(row);
    const { sightings } = this.#session;
    sightings.note(this.#target.at, undefined);
    if (found.fence !== undefined) sightings.noteToken(this.#target.at, found.fence);
    return this.lease(found);
  }

  refusedBy(row: Row | undefined): readonly InTheWay[] {
    // The network may deliver a copy later even of a refused claim: no section relies on the row that such a copy writes.
    this.disown();
    if (row === undefined) return [];
    if (!this.isOwn(row)) return [{ target: this.#target, row }];
    // Only in a set: an earlier copy of its transaction was applied, and another of its rows was unlocked by force since. So
    // this row is given back.
    this.#session.detach(giveBack(this.#session, this.lease()));
    return [];
  }

  /**
   * The lease, if a copy was applied, or may have been. Without an answer, the row remembers at most what the take respects.
   */
  lease({ remembered = this.write.remembers, fence, takeover }: Found = {}): RowLease {
    const { uuid, expires, acquired, data, tick, attempt, knowledge } = this.write;
    return rowLease(this.#session, this.#target, {
      ...{ uuid, expires, sentAt: this.sentAt, acquired, data, tick, attempt, takeover },
      remembers: memoryAfter({ ...this.write, remembers: remembered }),
      fence: this.#target.settings.fencing ? fence : undefined,
      namedHold: knowledge.unchanged?.uuid === undefined ? knowledge.unchanged?.expires : undefined,
    });
  }

  /** A fresh uuid and a lease that begins now. */
  #newTake(): Take {
    const { at, settings, permits } = this.#target;
    const { clock, owner, contention, sightings } = this.#session;
    const { ttlMs, fencing, takeover } = settings;
    const bounds = boundsOf(clock);
    const { data, tick, after } = this.#purpose;
    return {
      ...{ data, tick, after, ...this.#attempt() },
      kind: "take",
      at,
      uuid: this.#uuid ?? this.#session.uuid(),
      expires: stamp(bounds, ttlMs),
      ttlMs,
      owner,
      acquired: displayTime(bounds),
      wanted: contention?.markOf(at),
      permits,
      knowledge: sightings.knowledge(at, takeover),
      remembers: sightings.memory(at),
      token: fencing ? tokenDraw(bounds, sightings.token(at)) : undefined,
    };
  }

  /**
   * The number of the run to claim. If no further run may begin, the claim asks as the first would: the row refuses it, and
   * tells what has become of the tick.
   */
  #attempt(): Pick<Take, "attempt" | "seenAttempt"> {
    const { tick, maxAttempts } = this.#purpose;
    if (tick === undefined || maxAttempts === undefined) return {};
    const next = this.#session.sightings.nextAttempt(this.#target.at, tick);
    return next.attempt > maxAttempts ? { attempt: 1 } : next;
  }

  /** The rule by which it took its row from a holder that was gone. */
  #takeoverOf(replaced: Row | undefined): TakeoverRule | undefined {
    if (replaced?.uuid === undefined || this.#session.sightings.isDisowned(replaced)) return undefined;
    return mayTake(replaced, { earliest: this.write.knowledge.earliest }) ? "expired" : "unchanged";
  }
}
