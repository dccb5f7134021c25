import { isDeepStrictEqual } from "node:util";
import { publish } from "../diagnostics.js";
import type { LockInfo } from "../lock-info.js";
import type { ObserveOptions } from "../options/calls.js";
import { infoOf, type Row } from "../protocol/row.js";
import { follow } from "../session/abort-listening.js";
import { isTransient } from "../session/retry.js";
import type { Session } from "../session/session.js";
import type { Target } from "../taking/acquisition.js";
import { jittered } from "../taking/polling.js";
import { isDead, type Known, knownNow } from "../taking/rows.js";
import { adminRequest } from "./admin-request.js";

const POLL_MS = 1_000;

/** Ends an observation whose caller returns in the middle of a `next()`. */
const RETURNED = new Error("The iterator has returned");

/**
 * The holders of a lock, one after the other. It looks only inside of a `next()`: between two of them there is no timer, no
 * listener and no request. A `return()` ends a `next()` that is under way.
 */
export function observe(
  session: Session,
  target: Target,
  { signal, pollMs = POLL_MS }: ObserveOptions,
): AsyncIterableIterator<LockInfo | null> {
  const returned = new AbortController();
  const holders = new Holders(session, target, pollMs);
  const iterator = changes(holders, [returned.signal, session.closing, signal]);
  return {
    next: () => iterator.next(),
    return: () => {
      returned.abort(RETURNED);
      return iterator.return(undefined);
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

/** @param signals end the observation. It listens to them only while somebody waits for a change. */
async function* changes(
  holders: Holders,
  signals: readonly (AbortSignal | undefined)[],
): AsyncGenerator<LockInfo | null, undefined, undefined> {
  for (;;) {
    const end = new AbortController();
    const stop = follow(signals, (reason) => end.abort(reason));
    let holder: LockInfo | null;
    try {
      end.signal.throwIfAborted();
      holder = await holders.next(end.signal);
      end.signal.throwIfAborted();
    } catch (error) {
      if (error === RETURNED) return undefined;
      throw error;
    } finally {
      stop();
    }
    yield holder;
  }
}

/**
 * Looks who holds a lock. Each look begins after the one before has ended and is consistent, so none shows an earlier state than
 * the one before.
 */
class Holders {
  readonly #session: Session;
  readonly #target: Target;
  readonly #pollMs: number;
  #shown: LockInfo | null | undefined;
  /** When the next look is due, on `atLeast`. */
  #dueAt = Number.NEGATIVE_INFINITY;
  /** The last uuid whose lease was found to be over: a renewal that arrives late does not bring its holder back. */
  #over: string | undefined;

  constructor(session: Session, target: Target, pollMs: number) {
    this.#session = session;
    this.#target = target;
    this.#pollMs = pollMs;
  }

  /** Waits for another holder than the last, or for the first. @throws the reason of `end`; the store's error. */
  async next(end: AbortSignal): Promise<LockInfo | null> {
    const { clock } = this.#session;
    for (;;) {
      const pauseMs = this.#dueAt - clock.atLeast();
      if (pauseMs > 0) await clock.sleep(pauseMs, end);
      const holder = await this.#look(end);
      this.#dueAt = clock.atLeast() + jittered(this.#session, this.#pollMs);
      if (holder === undefined || (this.#shown !== undefined && isSame(this.#shown, holder))) continue;
      this.#shown = holder;
      return holder;
    }
  }

  /** @returns undefined where the table does not answer at present. */
  async #look(end: AbortSignal): Promise<LockInfo | null | undefined> {
    const own = this.#own();
    if (own !== undefined) return own;
    const session = this.#session;
    const { at, settings } = this.#target;
    try {
      const ask = async (signal: AbortSignal) => {
        // What is known when the reply arrives says nothing of the row in it, which may have been renewed since (trap 39).
        const known = knownNow(session, settings.takeover);
        return { known, row: await session.store.read(at, { consistent: true }, signal) };
      };
      const { row, known } = await adminRequest(session, ask, { signal: end });
      return this.#judge(row, known);
    } catch (error) {
      if (this.#shown === undefined || end.aborted || !isTransient(error)) throw error;
      publish("dynamutex:wait-failed", { name: at.name, cause: error });
      return undefined;
    }
  }

  /** The lease of this process, while a section relies on it: nobody else has the row. */
  #own(): LockInfo | undefined {
    const { name, sort } = this.#target.at;
    for (const { row, held } of this.#session.leases) {
      if (held && row.at.name === name && row.at.sort === sort) return row.info;
    }
    return undefined;
  }

  #judge(row: Row | undefined, known: Known): LockInfo | null {
    this.#session.sightings.note(this.#target.at, row);
    if (row?.uuid === undefined || row.uuid === this.#over) return null;
    if (!isDead(this.#session, row, known)) return infoOf(row);
    this.#over = row.uuid;
    return null;
  }
}

/** Whether nothing has changed that an observer is told of: its lease goes on, with the same data. */
function isSame(one: LockInfo | null, other: LockInfo | null): boolean {
  return one?.uuid === other?.uuid && isDeepStrictEqual(one?.data, other?.data);
}
