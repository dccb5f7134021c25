import { keyOf, newest, type OwnLease, type Resource, type ResourceClaim } from "../kinds/kind.js";
import type { Row } from "../protocol/row.js";
import { onAbort } from "../session/abort-listening.js";
import { BoundedMap } from "../session/bounded-map.js";
import { attemptMs, sendOnce } from "../session/requests.js";
import { isTransient, LONGEST_PAUSE_MS } from "../session/retry.js";
import type { Session } from "../session/session.js";
import { type Claimed, isDone } from "../taking/claim.js";
import { type Once, tickNow } from "../taking/known-time.js";
import type { Wait } from "../taking/wait.js";
import { keptOutFrom, mark, untilFree } from "../taking/watch.js";
import { LocalWaiters, NOBODY_WAITS } from "./local-waiters.js";
import type { SharedPlace } from "./own-places.js";
import { Pace } from "./pace.js";

/** No copy of a claim leaves later than this after the look that it relies on, or it might overtake those who came since. */
const LOOK_LASTS_MS = 3_000;

/** For how long further callers that asked before a look go by it, where there is room for several. */
const KNOWN_LASTS_MS = 1_000;

/** For how long, while sections of this process run, those who ask are gathered before a place is taken for them. */
const GATHER_MS = 50;

/** For how long a look still says how far it is to the front. */
const SEEN_LASTS_MS = 1_000;

/** Of how many names the pace is remembered. */
const MOST_PACES = 1_000;

/** What one call asks of the queue. */
export interface QueueRequest {
  readonly resource: Resource;
  readonly once?: Once | undefined;
  readonly wait: Wait;
  /** Takes a lease, if there is room after so many others. */
  readonly claim: (claim: QueueClaim) => Promise<SectionTry>;
}

/** A call that leads the line of its process, and what it does with what it gets. */
export interface LeadingRequest extends QueueRequest {
  /** @returns whether the lock was delivered; if not, it has been given back. @throws what ended the wait. */
  readonly handOut: (own: OwnLease) => Promise<boolean>;
}

/** A claim on what a look has just shown. */
export type QueueClaim = Required<Pick<ResourceClaim, "until" | "seen" | "ahead">>;

/** One try of a section. */
export type SectionTry = Claimed<OwnLease> | { readonly kind: "held" | "done" };

/**
 * Takes locks in turn: first come, first served, among all hosts.
 *
 * Order comes from the queue, and exclusion from the lock's own rows alone: they are taken by the ordinary claim. Places are in
 * the order of their tickets, which is the order of drawing. The callers of one process share places: see {@link LocalWaiters}.
 * Whoever has a place enters on one consistent query that shows its own row, and that there is room for it after all who are
 * alive before it: a waiter whose row is there is overtaken only by a claim whose look preceded that row. A row that is
 * written late still has the place of its ticket; it missed only those who entered meanwhile.
 */
export class FairQueue {
  readonly #session: Session;
  readonly #local = new Map<string, LocalWaiters>();
  readonly #paces = new BoundedMap<string, Pace>(MOST_PACES);

  constructor(session: Session) {
    this.#session = session;
  }

  /** The callers of this process that want this lock. */
  waiters(resource: Resource): LocalWaiters {
    const key = keyOf(resource);
    const known = this.#local.get(key);
    if (known !== undefined) return known;
    const waiters = new LocalWaiters(this.#session, resource, this.#paceOf(key), () => {
      // The callers behind the front may need another place. That waits for the next microtask: the caller that reads the
      // loss may be about to draw one itself.
      const attend = (): void => (this.#local.get(key) === waiters ? this.attend(resource) : undefined);
      this.#session.detach(Promise.resolve().then(attend));
    });
    this.#local.set(key, waiters);
    return waiters;
  }

  /** How fast its queue has moved lately: it is remembered from one section of this process to the next. */
  #paceOf(key: string): Pace {
    const pace = this.#paces.get(key) ?? new Pace(this.#session);
    this.#paces.set(key, pace);
    return pace;
  }

  /** Somebody has entered, or has gone: gives up what nobody waits for, and forgets those of a lock that nobody wants any more. */
  tidy(resource: Resource): void {
    const key = keyOf(resource);
    if (this.#local.get(key)?.tidy()) this.#local.delete(key);
  }

  /**
   * Waits for the lock's turn, for the call at the front of its process's line.
   *
   * 1. Where no place serves it: if nobody else waits and the lock looks free, claim it. Else take a place.
   * 2. Look at the lock's rows and the first places, until there is room for the own one.
   * 3. Look once more, consistent: the own row is there, and there is room for it after those before it. Claim.
   *
   * @throws the store's error if it is not transient, or if the table never answered; what ended the wait.
   */
  async lead(request: LeadingRequest): Promise<void> {
    const { resource, wait, handOut } = request;
    const waiters = this.waiters(resource);
    // This process may have held the lock since that look, so the rows that it showed are stale.
    if (waiters.seen !== undefined && waiters.line.capacity === 1) waiters.seen = { ...waiters.seen, gate: [] };
    // The look after this process's last section may have shown that other hosts wait.
    let mayBeFree = !waiters.turn.othersWait;
    for (;;) {
      wait.throwIfEnough();
      const own = waiters.places.first;
      if (own !== undefined) {
        if (await this.#enter(waiters, own, request)) return;
        // It ended before it was renewed once: so may the next.
        if (own.place.wasTooShort) wait.failures.leaseWasOver(resource);
        await wait.pacing.again();
        continue;
      }
      const result = mayBeFree ? await this.#takeWithoutPlace(waiters, request) : undefined;
      mayBeFree = false;
      if (result?.kind === "granted") {
        if (await handOut(result.granted)) return;
        continue;
      }
      wait.throwIfEnough();
      // Callers whose sections have just ended may ask again at once. This lets them share the place.
      if (waiters.turn.upTo > 0) await this.#session.clock.sleep(0, wait.enough);
      await before(wait, waiters.draw());
      this.attend(resource);
    }
  }

  /** One try: nothing if anybody is ahead, and then no ticket is drawn. */
  async tryAcquire(request: QueueRequest): Promise<SectionTry> {
    const { wait } = request;
    for (;;) {
      const waiters = this.waiters(request.resource);
      const result = await this.#takeWithoutPlace(waiters, request);
      if (result !== undefined) return result;
      wait.throwIfEnough();
      await wait.pacing.again();
    }
  }

  /**
   * Whether the lease at the front, whose section has ended, goes on to the next caller of this process: where it is that
   * one's turn. A request only if no look has told so in the last `handOverMs`: those who mark the row have no place.
   */
  async mayPass(own: OwnLease): Promise<boolean> {
    const waiters = this.waiters(own.resource);
    const isRecent = this.#session.clock.atMost() - waiters.lookedAt < own.lease.settings.handOverMs;
    if (waiters.isTurn ? isRecent : waiters.turn.othersWait) return waiters.isTurn;
    await this.#lookAgain(waiters, own);
    return waiters.isTurn;
  }

  /** Sees to it that callers behind the front get a place soon, where they may need one. */
  attend(resource: Resource): void {
    const waiters = this.waiters(resource);
    if (waiters.isAttended || waiters.unserved === undefined) return;
    waiters.isAttended = true;
    this.#session.detach(this.#attendTo(waiters, resource));
  }

  /** An error here is not reported: the caller that leads meets it in its own requests. */
  async #attendTo(waiters: LocalWaiters, resource: Resource): Promise<void> {
    try {
      for (let { unserved } = waiters; unserved !== undefined; { unserved } = waiters) {
        const { line } = waiters;
        const [own] = line.leases;
        if (line.isLed || own === undefined) {
          // The one at the front takes the lock, or a place for all.
          if (waiters.places.first === undefined) return;
          await this.#drawFor(waiters);
          continue;
        }
        const gatherMs = GATHER_MS - unserved.who.waitedMs;
        if (gatherMs > 0) {
          await this.#session.clock.sleep(Math.ceil(gatherMs), this.#session.closing);
          continue;
        }
        if (!waiters.turn.othersWait) await this.#lookAgain(waiters, own);
        if (waiters.unserved === unserved && line.leases.has(own)) await this.#drawFor(waiters);
      }
    } finally {
      // Before anything else: a caller that asks from here on starts this again.
      waiters.isAttended = false;
      this.tidy(resource);
    }
  }

  /** Waits after a transient failure, and returns for another try: the callers behind the front send no requests themselves. */
  async #drawFor(waiters: LocalWaiters): Promise<void> {
    try {
      await waiters.draw();
    } catch (error) {
      if (error === NOBODY_WAITS || waiters.unserved === undefined) return;
      if (!isTransient(error)) throw error;
      await this.#session.clock.sleep(LONGEST_PAUSE_MS, this.#session.closing);
    }
  }

  /** Looks, while this process has the lock, whose turn comes next. A failed look changes nothing. */
  async #lookAgain(waiters: LocalWaiters, own: OwnLease): Promise<void> {
    const { settings } = own.resource;
    const { at, uuid } = own.lease.row;
    const asked = { kind: "read", attemptMs: attemptMs(settings.ttlMs) } as const;
    const look = await waiters
      .look((request) => sendOnce(this.#session, asked, request), { isConsistent: true })
      .catch(() => undefined);
    if (look === undefined || !waiters.line.leases.has(own)) return;
    const { turn } = look;
    const row = look.gate.find(({ sort }) => sort === at.sort);
    if (row?.uuid !== uuid) return;
    // A caller that was entitled to this lease before stays entitled.
    waiters.turn = { ...turn, upTo: Math.max(waiters.turn.upTo, turn.upTo) };
    // Callers without a place, of a mutex that is not fair or of a set, show only by their mark on the row.
    if (turn.othersWait || row.wanted === undefined) return;
    const contention = this.#session.contended();
    contention.sees(row);
    if (!contention.isTurnOver(at, settings.handOverMs)) return;
    waiters.turn = { upTo: 0, othersWait: false };
    contention.giveTurn(at, settings.poll.maxMs);
  }

  /** Takes the lock without a place, if nobody waits and it looks free. @returns undefined if no answer came in time. */
  async #takeWithoutPlace(waiters: LocalWaiters, request: QueueRequest): Promise<SectionTry | undefined> {
    const { resource, once, wait } = request;
    const known = waiters.knownTurnOf(wait);
    const isKnown = known !== undefined && this.#session.clock.atMost() - known.sentAt < KNOWN_LASTS_MS;
    const { gate, turn, sentAt } = isKnown ? known : await waiters.look(wait.ask, { isConsistent: true });
    wait.throwIfEnough();
    const row = newest(gate);
    if (row !== undefined) wait.blocker.saw(row);
    waiters.turn = turn;
    if (turn.othersWait) {
      const tick = once && (await tickNow(this.#session, resource.at, once, wait));
      return { kind: row !== undefined && isDone(row, tick) ? "done" : "held" };
    }
    // Only the claim can tell whether a tick is done.
    if (once === undefined && resource.kind.queue.room(resource, gate) === 0) return { kind: "held" };
    const until = (): number => Math.min(sentAt + LOOK_LASTS_MS, wait.until());
    return await this.#claim(request, { until, seen: gate, ahead: 0 });
  }

  /**
   * Waits until there is room for the own place after those before it, and takes the lock.
   * @returns whether it was delivered; false if the place was lost.
   */
  async #enter(waiters: LocalWaiters, own: SharedPlace, request: LeadingRequest): Promise<boolean> {
    const { resource, wait, handOut } = request;
    const { poll } = resource.settings;
    const session = this.#session;
    const { clock } = session;
    const { place } = own;
    const pause = async (ms: number): Promise<void> => {
      await clock.sleep(Math.max(1, ms), wait.enough);
      wait.pacing.paused();
    };
    // What was seen just before the place was taken says how far it is to the front.
    const { seen } = waiters;
    const isRecent = seen !== undefined && clock.atMost() - seen.sentAt < SEEN_LASTS_MS;
    let recent = isRecent ? { ...seen, isConsistent: false } : undefined;
    for (let isConsistent = false; place.lost === undefined; ) {
      wait.throwIfEnough();
      const look = recent ?? (await waiters.look(wait.ask, { isConsistent }));
      [recent, isConsistent] = [undefined, false];
      wait.throwIfEnough();
      const { gate } = look;
      const room = resource.kind.queue.room(resource, gate);
      const ahead = waiters.ahead(look, place.ticket);
      if (ahead > 0 && ahead >= room) {
        const row = newest(gate);
        if (row !== undefined) wait.blocker.saw(row);
        waiters.line.keptOut = undefined;
        await pause(Math.min(waiters.pause(look, place.ticket, ahead), waiters.untilDead(look, place.ticket)));
        continue;
      }
      if (look.isConsistent && !look.places.some(({ uuid }) => uuid === place.uuid)) {
        place.lose();
        return false;
      }
      if (room === 0) {
        const ms = waiters.pace.next(poll);
        await this.#isKeptOut(waiters, request, gate);
        await pause(Math.min(ms, ...gate.map((row) => untilFree(session, { ...resource, at: row }, row))));
        // If the next look is soon, it is consistent: a claim may then follow it directly.
        isConsistent = ms < poll.maxMs / 2;
        continue;
      }
      if (!look.isConsistent) {
        isConsistent = true;
        continue;
      }
      waiters.turn = look.turn;
      const until = (): number => Math.min(look.sentAt + LOOK_LASTS_MS, place.until(), wait.until());
      const result = await this.#claim(request, { until, seen: gate, ahead });
      if (result?.kind === "granted" && (await handOut(result.granted))) return true;
      await wait.pacing.again();
    }
    return false;
  }

  /** It is this process's turn, and other hosts hold all of the lock's rows. After a while it marks one, as waiters without a place do. */
  async #isKeptOut(waiters: LocalWaiters, { resource, wait }: QueueRequest, gate: readonly Row[]): Promise<void> {
    const session = this.#session;
    for (const row of gate) session.contended().waitsFor(row);
    const row = newest(gate);
    if (row === undefined) return;
    wait.blocker.saw(row);
    waiters.line.keptOut ??= keptOutFrom(session);
    await mark(session, { ...resource, at: row }, { row, keptOut: waiters.line.keptOut, wait });
  }

  /** The ordinary claim. @returns undefined if no answer came while its look was valid. */
  async #claim({ once, wait, claim }: QueueRequest, queueClaim: QueueClaim): Promise<SectionTry | undefined> {
    try {
      return await claim(queueClaim);
    } catch (error) {
      wait.throwIfEnough();
      // A claim for a tick is not repeated: the next could find the tick granted to this one, for which nothing runs.
      if (once !== undefined || !isTransient(error) || this.#session.clock.atMost() >= wait.until()) throw error;
      return undefined;
    }
  }
}

/** Waits for what others of this process wait for as well. @throws what ended this wait. */
async function before<T>({ enough }: Wait, shared: Promise<T>): Promise<T> {
  return await new Promise<T>((resolve, reject) => {
    const stop = onAbort(enough, () => reject(enough.reason));
    shared.finally(stop).then(resolve, reject);
  });
}
