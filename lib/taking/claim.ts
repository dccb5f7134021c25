import { ACQUIRED, publish } from "../diagnostics.js";
import type { LockData } from "../lock-info.js";
import { displayTime, stamp } from "../protocol/lease-time.js";
import { mayTake } from "../protocol/may-take.js";
import { LOCK_SORT, memoryOf, type Row, strongerOf } from "../protocol/row.js";
import { wasApplied } from "../protocol/was-applied.js";
import type { Take } from "../protocol/writes.js";
import { attemptMs } from "../session/requests.js";
import { type Copies, isTransient } from "../session/retry.js";
import type { Session } from "../session/session.js";
import type { WriteOutcome } from "../store.js";
import { boundsOf, isTimeKnown } from "../time/clock.js";
import { removeWhenItArrives } from "./abandoned-claims.js";
import { Acquisition, type Taken, type Target } from "./acquisition.js";
import { learnTime, type Once, tickNow } from "./known-time.js";
import type { Wait } from "./wait.js";

/** How many writes one try may take: a refusal may show that the row remembers something, or that it is free by now. */
export const MOST_TRIES = 3;

/** What a claim may add. */
export interface ClaimOptions {
  readonly data?: LockData | undefined;
  readonly once?: Once | undefined;
  /** No copy of a write leaves later than this, on `atMost`. Default: the bounds of the wait. */
  readonly until?: (() => number) | undefined;
}

/** The row that refuses a claim: `held` by somebody else, or `done`, because its tick was already granted. */
export interface InTheWay {
  readonly kind: "held" | "done";
  readonly row: Row;
}

export type Claimed = { readonly kind: "granted"; readonly acquisition: Acquisition } | InTheWay;

/**
 * Tries to take a row: one conditional write, and another where the refusal itself shows that the row is free.
 *
 * @throws the store's error, after retries in the time that `wait` allows.
 */
export async function tryClaim(
  session: Session,
  target: Target,
  wait: Wait,
  options: ClaimOptions = {},
): Promise<Claimed> {
  for (let attempt = 1; ; attempt++) {
    const result = await claim(session, target, wait, options);
    if (result.kind !== "held" || attempt === MOST_TRIES || !looksFree(session, target, result.row)) return result;
    wait.throwIfEnough();
  }
}

/** One write, sent until it is answered or the lease that it asks for would be over. */
export async function claim(
  session: Session,
  target: Target,
  wait: Wait,
  { data, once, until = wait.until }: ClaimOptions = {},
): Promise<Claimed> {
  const { at } = target;
  /** Ticks that a claim of this call without an answer may have taken. */
  const doubtful = new Map<number, unknown>();
  for (;;) {
    wait.throwIfEnough();
    if (!isTimeKnown(session.clock)) {
      const row = await learnTime(session, at, wait);
      // Whether a tick is done, only the write tells for certain.
      if (once === undefined && row !== undefined && !looksFree(session, target, row)) {
        wait.saw(row);
        return { kind: "held", row };
      }
    }
    const tick = once && (await tickNow(session, at, once, wait));
    const sending = new Sending(session, target, { data, tick });
    let outcome: WriteOutcome | undefined;
    try {
      outcome = await sending.send(wait, until);
    } catch (error) {
      if (tick !== undefined) doubtful.set(tick, error);
      if (isTransient(error) || sending.wasRepeated) sending.abandon();
      wait.throwIfEnough();
      if (!isTransient(error) || session.clock.atMost() >= until()) throw error;
      continue;
    }
    if (outcome === undefined) continue;
    const acquisition = sending.granted(outcome);
    if (acquisition !== undefined) {
      session.sightings.note(at, undefined);
      sending.announce(wait, outcome);
      return { kind: "granted", acquisition };
    }
    const { row } = outcome as { readonly row: Row };
    // Only the last copy was certainly refused: one without an answer may still arrive, and block others.
    if (sending.mayStillArrive(outcome)) sending.abandon();
    session.sightings.note(at, row);
    wait.saw(row);
    if (!isDone(row, tick)) return { kind: "held", row };
    // An earlier claim of this call may have taken the tick, and then nothing has run for it.
    if (row.tick !== undefined && doubtful.has(row.tick)) throw doubtful.get(row.tick);
    return { kind: "done", row };
  }
}

/** Whether this tick, or a later one, was already granted. */
export function isDone(row: Row, tick: number | undefined): boolean {
  return tick !== undefined && row.tick !== undefined && row.tick >= tick;
}

/** Whether a claim made now would take this row, which was noted before. */
export function looksFree(session: Session, { at, settings }: Target, row: Row): boolean {
  return mayTake(row, session.sightings.knowledge(at, settings.takeover));
}

/** A new uuid and a lease that begins now. */
export function newTake(
  session: Session,
  { at, settings }: Target,
  { data, tick }: { readonly data: LockData | undefined; readonly tick?: number | undefined },
): Take {
  const { clock, owner, sightings } = session;
  const { ttlMs, fencing, takeover } = settings;
  const bounds = boundsOf(clock);
  return {
    kind: "take",
    at,
    uuid: session.uuid(),
    expires: stamp(bounds, ttlMs),
    ttlMs,
    owner,
    acquired: displayTime(bounds),
    data,
    knowledge: sightings.knowledge(at, takeover),
    remembers: sightings.memory(at),
    // If the row is deleted, the next token still exceeds all earlier ones, because time has advanced.
    fenceSeed: fencing ? Math.ceil(bounds.latest) : undefined,
    tick,
  };
}

/** A take, as its first copy left. */
interface SentTake {
  readonly take: Take;
  /** On `atMost`. */
  readonly at: number;
}

/** One take, and its copies. */
class Sending {
  readonly #session: Session;
  readonly #target: Target;
  readonly #what: { readonly data: LockData | undefined; readonly tick: number | undefined };
  readonly #copies: Copies = { sent: 0, unanswered: 0 };
  #sent: SentTake | undefined;

  constructor(
    session: Session,
    target: Target,
    what: { readonly data: LockData | undefined; readonly tick: number | undefined },
  ) {
    this.#session = session;
    this.#target = target;
    this.#what = what;
  }

  /**
   * Sends the take until it is answered, or the lease that it asks for would be over.
   * @returns undefined if the time has to be learned first.
   */
  send(wait: Wait, until: () => number): Promise<WriteOutcome | undefined> {
    const { clock, store } = this.#session;
    const { ttlMs, safetyMarginMs } = this.#target.settings;
    const end = (): number =>
      this.#sent === undefined ? until() : Math.min(this.#sent.at + ttlMs - safetyMarginMs, until());
    const persistence = { kind: "take", attemptMs: attemptMs(ttlMs), until: end, copies: this.#copies } as const;
    return wait.persistAtKnownTime(persistence, (signal) => {
      // Read the stopwatch before the first copy leaves: a watcher may count the ttl from there.
      this.#sent ??= { at: clock.atMost(), take: newTake(this.#session, this.#target, this.#what) };
      return store.write(this.#sent.take, signal);
    });
  }

  /** The acquisition, where this take or an earlier copy of it was applied. */
  granted(outcome: WriteOutcome): Acquisition | undefined {
    const { take } = this.#sent as SentTake;
    if (outcome.kind === "applied") {
      const { replaced, drawn: fence } = outcome;
      return new Acquisition(this.#session, this.#target, this.#taken(replaced, fence));
    }
    const { row, retried } = outcome;
    const earlierCopyUnanswered = retried || this.#copies.unanswered > 0;
    if (wasApplied(take, row, { earlierCopyUnanswered }) === "no") return undefined;
    return new Acquisition(this.#session, this.#target, this.#taken(row, row?.fence));
  }

  /** Whether a copy that got no answer may be applied after one that was refused. */
  mayStillArrive(outcome: WriteOutcome): boolean {
    return this.#copies.unanswered > 0 || (outcome.kind === "refused" && outcome.retried);
  }

  get wasRepeated(): boolean {
    return this.#copies.sent > 1;
  }

  /** Publishes that the lock was taken, and by which rule it was taken over. */
  announce(wait: Wait, outcome: WriteOutcome): void {
    const { take } = this.#sent as SentTake;
    if (!ACQUIRED.hasSubscribers || take.at.sort !== LOCK_SORT) return;
    const { name } = take.at;
    const { uuid, owner } = take;
    publish("dynamutex:acquired", { name, uuid, owner, waitedMs: wait.waitedMs, takeover: takeoverOf(take, outcome) });
  }

  /** The call has given this take up: what a copy has taken, or may still take, is released in the background. */
  abandon(): void {
    if (this.#sent === undefined) return;
    const taken = this.#taken(undefined, undefined);
    this.#session.detach(removeWhenItArrives(this.#session, this.#target, taken));
  }

  /** @param row the row before the take or after it: either shows what the row remembered. */
  #taken(row: Row | undefined, fence: bigint | undefined): Taken {
    const { take, at } = this.#sent as SentTake;
    const { fencing } = this.#target.settings;
    let remembers = row === undefined ? "nothing" : memoryOf(row);
    if (take.tick !== undefined) remembers = "tick";
    else if (take.fenceSeed !== undefined) remembers = strongerOf(remembers, "fence");
    return { take, sentAt: at, remembers, fence: fencing ? fence : undefined };
  }
}

/** By which rule a holder's row was taken over; undefined where there was no holder. */
function takeoverOf({ knowledge }: Take, outcome: WriteOutcome): "expired" | "unchanged" | undefined {
  const replaced = outcome.kind === "applied" ? outcome.replaced : undefined;
  if (replaced?.uuid === undefined) return undefined;
  return mayTake(replaced, { earliest: knowledge.earliest }) ? "expired" : "unchanged";
}
