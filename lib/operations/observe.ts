import { isDeepStrictEqual } from "node:util";
import { publish } from "../diagnostics.js";
import type { LockInfo } from "../lock-info.js";
import type { ObserveOptions } from "../options/calls.js";
import { infoOf } from "../protocol/row.js";
import { follow } from "../session/abort-listening.js";
import { isTransient } from "../session/retry.js";
import type { Session } from "../session/session.js";
import { jittered } from "../taking/polling.js";
import type { Target } from "../taking/row-lease.js";
import { isDead, knownNow } from "../taking/rows.js";
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
  const iterator = changes(session, target, pollMs, [returned.signal, session.closing, signal]);
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
  session: Session,
  target: Target,
  pollMs: number,
  signals: readonly (AbortSignal | undefined)[],
): AsyncGenerator<LockInfo | null, undefined, undefined> {
  const { clock } = session;
  const holderNow = watcherOf(session, target);
  let shown: LockInfo | null | undefined;
  for (let dueAt = Number.NEGATIVE_INFINITY; ; ) {
    const end = new AbortController();
    const stop = follow(signals, (reason) => end.abort(reason));
    let holder: LockInfo | null | undefined;
    try {
      end.signal.throwIfAborted();
      const pauseMs = dueAt - clock.atLeast();
      if (pauseMs > 0) await clock.sleep(pauseMs, end.signal);
      holder = await holderNow(end.signal, { isFirst: shown === undefined });
      end.signal.throwIfAborted();
    } catch (error) {
      if (error === RETURNED) return undefined;
      throw error;
    } finally {
      stop();
    }
    dueAt = clock.atLeast() + jittered(session, pollMs);
    if (holder === undefined || (shown !== undefined && isSame(shown, holder))) continue;
    shown = holder;
    yield holder;
  }
}

/**
 * Looks who holds a lock; undefined where the table does not answer at present. Each look begins after the one before has
 * ended and is consistent, so none shows an earlier state than the one before.
 */
function watcherOf(session: Session, { at, settings }: Target) {
  // The last uuid whose lease was found to be over: a renewal that arrives late does not bring its holder back.
  let over: string | undefined;
  return async (end: AbortSignal, { isFirst }: { readonly isFirst: boolean }): Promise<LockInfo | null | undefined> => {
    // The lease of this process, while a section relies on it: nobody else has the row.
    const own = session.leases.on(at).find(({ held }) => held);
    if (own !== undefined) return own.info;
    const ask = async (signal: AbortSignal) => {
      // What is known when the reply arrives says nothing of the row in it, which may have been renewed since (trap 39).
      const known = knownNow(session, settings.takeover);
      return { known, row: await session.store.read(at, { consistent: true }, signal) };
    };
    try {
      const { row, known } = await adminRequest(session, ask, { signal: end });
      session.sightings.note(at, row);
      if (row?.uuid === undefined || row.uuid === over) return null;
      if (!isDead(session, row, known)) return infoOf(row);
      over = row.uuid;
      return null;
    } catch (cause) {
      if (isFirst || end.aborted || !isTransient(cause)) throw cause;
      publish("dynamutex:wait-failed", { name: at.name, cause });
      return undefined;
    }
  };
}

/** Whether nothing has changed that an observer is told of: its lease goes on, with the same data. */
function isSame(one: LockInfo | null, other: LockInfo | null): boolean {
  return one?.uuid === other?.uuid && isDeepStrictEqual(one?.data, other?.data);
}
