import type { LockData } from "../lock-info.js";
import { isTransient, LONGEST_ATTEMPT_MS } from "../session/retry.js";
import type { Session } from "../session/session.js";
import type { Acquisition, Target } from "../taking/acquisition.js";
import { type Claimed, claim, isDone, looksFree, tryClaim } from "../taking/claim.js";
import { type Once, tickNow } from "../taking/known-time.js";
import type { Wait } from "../taking/wait.js";
import { keptOutFrom, watch } from "../taking/watch.js";
import { LocalLine } from "./local-line.js";
import { type Place, takePlace } from "./place.js";
import { QueueView } from "./queue-view.js";

/** No copy of a claim leaves later than this after the look that it relies on, or it might overtake those who came since. */
const LOOK_LASTS_MS = 3_000;

/** What one call asks of the queue. */
export interface QueueRequest {
  readonly target: Target;
  readonly data: LockData | undefined;
  readonly once?: Once | undefined;
  readonly wait: Wait;
}

/** A call that waits, and what it does with what it gets. */
export interface WaitingRequest extends QueueRequest {
  /** @returns whether the lock was delivered; if not, it has been given back. @throws what ended the wait. */
  readonly handOut: (acquisition: Acquisition) => Promise<boolean>;
}

/** A call that has a place in the queue. */
interface Placed extends WaitingRequest {
  readonly view: QueueView;
  readonly place: Place;
}

/** One try of a section. */
export type SectionTry = Claimed<Acquisition> | { readonly kind: "held" | "done" };

/**
 * Takes locks in turn: first come, first served, among all hosts.
 *
 * Order comes from the queue, and exclusion from the lock's own row alone: it is taken by the ordinary claim. Places are in
 * the order of their tickets, which is the order of drawing. Who has a place enters on one consistent query that shows its
 * own row, and nobody alive before it: a waiter whose row is there is overtaken only by a claim whose look preceded that
 * row. A row that is written late still has the place of its ticket; it missed only those who entered meanwhile.
 */
export class FairQueue {
  readonly #session: Session;
  /** By name: the calls of this process that have neither the lock nor a place yet. */
  readonly #arriving = new Map<string, LocalLine<never>>();

  constructor(session: Session) {
    this.#session = session;
  }

  /**
   * Waits for the lock's turn.
   *
   * 1. Nobody waits and the lock looks free: claim it. Else:
   * 2. Draw a ticket, and take the place that it numbers.
   * 3. Poll for the nearest waiter ahead until there is none: half a read unit each, however long the queue is.
   * 4. Watch the lock's row until it looks free.
   * 5. Look whether the own row is still there and nobody is before it, consistent; claim; leave the place.
   *
   * @throws the store's error if it is not transient, or if the table never answered; what ended the wait.
   */
  async acquire(request: WaitingRequest): Promise<void> {
    const { target, wait } = request;
    const view = new QueueView(this.#session, target, wait);
    for (let mayTake = true; ; mayTake = false) {
      const found = await this.#inOrder(request, async () => {
        const result = mayTake ? await this.#takeWithoutPlace(request, view) : undefined;
        return result?.kind === "granted" ? result.granted : await takePlace(this.#session, target, wait);
      });
      if (!("ticket" in found)) {
        if (await request.handOut(found)) return;
        continue;
      }
      try {
        if (await this.#waitForTurn({ ...request, view, place: found })) return;
      } finally {
        this.#session.detach(found.leave());
      }
      // The place is lost, and later waiters may have entered: the wait goes on with a new place, at the end.
      await wait.pacing.again();
    }
  }

  /** One try: nothing if anybody is ahead, and then no ticket is drawn. */
  async tryAcquire(request: QueueRequest): Promise<SectionTry> {
    const view = new QueueView(this.#session, request.target, request.wait);
    // A call of this process is about to take it, or to queue for it.
    while (!this.#arriving.has(request.target.at.name)) {
      const result = await this.#takeWithoutPlace(request, view);
      if (result !== undefined) return result;
      request.wait.throwIfEnough();
      await request.wait.pacing.again();
    }
    return { kind: "held" };
  }

  /** The sections of one process come to the queue one at a time, in the order of asking. */
  async #inOrder<T>({ target, wait }: QueueRequest, arrive: () => Promise<T>): Promise<T> {
    wait.throwIfEnough();
    const { name } = target.at;
    const line = this.#arriving.get(name) ?? new LocalLine<never>();
    this.#arriving.set(name, line);
    await line.turn(wait, () => false);
    try {
      return await arrive();
    } finally {
      line.leave(wait);
      if (line.front === undefined) this.#arriving.delete(name);
    }
  }

  /** Takes the lock without a place, if nobody waits and it looks free. @returns undefined if no answer came in time. */
  async #takeWithoutPlace(request: QueueRequest, view: QueueView): Promise<SectionTry | undefined> {
    const { target, once, wait } = request;
    const { row, hasWaiters, sentAt } = await view.front();
    wait.throwIfEnough();
    this.#session.sightings.note(target.at, row);
    if (row !== undefined) wait.saw(row);
    if (hasWaiters) {
      const tick = once && (await tickNow(this.#session, target.at, once, wait));
      return { kind: row !== undefined && isDone(row, tick) ? "done" : "held" };
    }
    // Only the claim can tell whether a tick is done.
    if (once === undefined && row !== undefined && !looksFree(this.#session, target, row)) return { kind: "held" };
    const until = (): number => Math.min(sentAt + LOOK_LASTS_MS, wait.until());
    return await this.#claim(request, until);
  }

  /** @returns whether the lock was delivered; false if the place was lost. */
  async #waitForTurn(placed: Placed): Promise<boolean> {
    const { clock, random } = this.#session;
    const { view, place, wait } = placed;
    const { minMs, maxMs } = placed.target.settings.poll;
    let interval = minMs;
    while (place.lost === undefined) {
      wait.throwIfEnough();
      const ahead = await view.ahead(place);
      wait.throwIfEnough();
      if (ahead === undefined) {
        const delivered = await this.#enter(placed);
        if (delivered !== undefined) return delivered;
        await wait.pacing.again();
      } else {
        const jittered = interval * (0.75 + random() / 2);
        await clock.sleep(Math.min(jittered, Math.max(1, view.untilDead(ahead))), wait.enough);
        wait.pacing.paused();
        interval = Math.min(maxMs, interval * 1.5);
      }
    }
    return false;
  }

  /**
   * In front, as far as is known: takes the lock when it is free.
   * @returns whether it was delivered; false if the place was lost, undefined if somebody is before us after all.
   */
  async #enter({ target, data, wait, handOut, view, place }: Placed): Promise<boolean | undefined> {
    const session = this.#session;
    const goOn = (): boolean => place.lost === undefined;
    const keptOut = keptOutFrom(session);
    const persistence = { kind: "read", attemptMs: LONGEST_ATTEMPT_MS, until: wait.until } as const;
    let row = await wait.persist(persistence, (signal) => session.store.read(target.at, { consistent: false }, signal));
    session.sightings.note(target.at, row);
    for (;;) {
      if (row !== undefined) await watch(session, { target, row }, wait, { keptOut, goOn });
      wait.throwIfEnough();
      if (!goOn()) return false;
      const { present, ahead, sentAt } = await view.before(place);
      if (!present) place.lose();
      wait.throwIfEnough();
      if (!goOn()) return false;
      if (ahead !== undefined) return undefined;
      const until = (): number => Math.min(sentAt + LOOK_LASTS_MS, place.until(), wait.until());
      const result = await this.#claim({ target, data, wait }, until);
      if (result?.kind === "granted" && (await handOut(result.granted))) return true;
      row = result === undefined || result.kind === "granted" ? undefined : result.inTheWay[0].row;
      if (row === undefined) await wait.pacing.again();
    }
  }

  /** The ordinary claim. @returns undefined if no answer came while its look was valid. */
  async #claim({ target, data, once, wait }: QueueRequest, until: () => number) {
    try {
      return await tryClaim(this.#session, wait, () => claim(this.#session, target, wait, { data, once, until }));
    } catch (error) {
      wait.throwIfEnough();
      // A claim for a tick is not repeated: the next could find the tick granted to this one, for which nothing runs.
      if (once !== undefined || !isTransient(error) || this.#session.clock.atMost() >= wait.until()) throw error;
      return undefined;
    }
  }
}
