import type { Lease } from "../holding/lease.js";
import type { LockData } from "../lock-info.js";
import { ticketOf } from "../protocol/addresses.js";
import { onAbort } from "../session/abort-listening.js";
import { attemptMs, sendOnce } from "../session/requests.js";
import { isTransient, LONGEST_ATTEMPT_MS, LONGEST_PAUSE_MS } from "../session/retry.js";
import type { Session } from "../session/session.js";
import type { Acquisition, Target } from "../taking/acquisition.js";
import { type Claimed, claim, isDone, looksFree, tryClaim } from "../taking/claim.js";
import { type Once, tickNow } from "../taking/known-time.js";
import type { Wait } from "../taking/wait.js";
import { keptOutFrom, mark, untilFree } from "../taking/watch.js";
import type { SharedPlace } from "./own-places.js";
import { Pace } from "./pace.js";
import { NOBODY_WAITS, Party } from "./party.js";
import type { Ask } from "./queue-view.js";

/** No copy of a claim leaves later than this after the look that it relies on, or it might overtake those who came since. */
const LOOK_LASTS_MS = 3_000;

/** For how long, while sections of this process run, those who ask are gathered before a place is taken for them. */
const GATHER_MS = 50;

/** For how long a look still says how far it is to the front. */
const SEEN_LASTS_MS = 1_000;

/** Of how many names the pace is remembered. */
const MOST_PACES = 1_000;

/** What one call asks of the queue. */
export interface QueueRequest {
  readonly target: Target;
  readonly data: LockData | undefined;
  readonly once?: Once | undefined;
  readonly wait: Wait;
}

/** A call that leads the line of its process, and what it does with what it gets. */
export interface LeadingRequest extends QueueRequest {
  /** @returns whether the lock was delivered; if not, it has been given back. @throws what ended the wait. */
  readonly handOut: (acquisition: Acquisition) => Promise<boolean>;
}

/** One try of a section. */
export type SectionTry = Claimed<Acquisition> | { readonly kind: "held" | "done" };

/**
 * Takes locks in turn: first come, first served, among all hosts.
 *
 * Order comes from the queue, and exclusion from the lock's own row alone: it is taken by the ordinary claim. Places are in
 * the order of their tickets, which is the order of drawing. The callers of one process share places: see {@link Party}.
 * Whoever has a place enters on one consistent query that shows its own row, and nobody alive before it: a waiter whose row is
 * there is overtaken only by a claim whose look preceded that row. A row that is written late still has the place of its
 * ticket; it missed only those who entered meanwhile.
 */
export class FairQueue {
  readonly #session: Session;
  readonly #parties = new Map<string, Party>();
  readonly #paces = new Map<string, Pace>();

  constructor(session: Session) {
    this.#session = session;
  }

  /** The callers of this process that want this lock. */
  party(target: Target): Party {
    const { name } = target.at;
    const known = this.#parties.get(name);
    if (known !== undefined) return known;
    const party = new Party(this.#session, target, this.#paceOf(name), () => {
      // Those behind the front may need another: not at once, because whoever asks for its loss may be about to see to that.
      const attend = (): void => (this.#parties.get(name) === party ? this.attend(target) : undefined);
      this.#session.detach(Promise.resolve().then(attend));
    });
    this.#parties.set(name, party);
    return party;
  }

  /** How fast its queue has moved lately: it is remembered from one section of this process to the next. */
  #paceOf(name: string): Pace {
    const pace = this.#paces.get(name) ?? new Pace(this.#session);
    this.#paces.delete(name);
    this.#paces.set(name, pace);
    const [oldest = ""] = this.#paces.keys();
    if (this.#paces.size > MOST_PACES) this.#paces.delete(oldest);
    return pace;
  }

  /** Somebody has entered, or has gone: gives up what nobody waits for, and forgets a party that is empty. */
  tidy(name: string): void {
    if (this.#parties.get(name)?.tidy()) this.#parties.delete(name);
  }

  /**
   * Waits for the lock's turn, for the call at the front of its process's line.
   *
   * 1. Where no place serves it: if nobody else waits and the lock looks free, claim it. Else take a place.
   * 2. Look at the lock's row and the first place, until that is the own one and the lock looks free.
   * 3. Look once more, consistent: the own row is there, and nobody is before it. Claim.
   *
   * @throws the store's error if it is not transient, or if the table never answered; what ended the wait.
   */
  async lead(request: LeadingRequest): Promise<void> {
    const { target, wait, handOut } = request;
    const party = this.party(target);
    // A lease of this process may have been there since: what was seen of the row tells nothing.
    if (party.seen !== undefined) party.seen = { ...party.seen, row: undefined };
    // The look at the end of this process's own sections may have shown that others wait.
    let mayBeFree = !party.turn.othersWait;
    for (;;) {
      wait.throwIfEnough();
      const own = party.places.first;
      if (own !== undefined) {
        if (await this.#enter(party, own, request)) return;
        // It ended before it was renewed once: so may the next.
        if (own.place.wasTooShort) wait.leaseWasOver(target);
        await wait.pacing.again();
        continue;
      }
      const result = mayBeFree ? await this.#takeWithoutPlace(party, request) : undefined;
      mayBeFree = false;
      if (result?.kind === "granted") {
        if (await handOut(result.granted)) return;
        continue;
      }
      wait.throwIfEnough();
      // Those whose sections have just ended may ask again at once: they share the place.
      if (party.turn.upTo > 0) await this.#session.clock.sleep(0, wait.enough);
      await before(wait, party.draw());
      this.attend(target);
    }
  }

  /** One try: nothing if anybody is ahead, and then no ticket is drawn. */
  async tryAcquire(request: QueueRequest): Promise<SectionTry> {
    const { wait } = request;
    for (;;) {
      const result = await this.#takeWithoutPlace(this.party(request.target), request);
      if (result !== undefined) return result;
      wait.throwIfEnough();
      await wait.pacing.again();
    }
  }

  /**
   * Whether the lease at the front, whose section has ended, goes on to the next caller of this process: where it is that
   * one's turn. A request only if no look has told so in the last `handOverMs`: those who mark the row have no place.
   */
  async mayPass(lease: Lease): Promise<boolean> {
    const target: Target = { at: lease.row.at, settings: lease.settings };
    const party = this.party(target);
    const isRecent = this.#session.clock.atMost() - party.lookedAt < lease.settings.handOverMs;
    if (party.isTurn ? isRecent : party.turn.othersWait) return party.isTurn;
    await this.#lookAgain(party, target, lease);
    return party.isTurn;
  }

  /** Sees to it that callers behind the front get a place soon, where they may need one. */
  attend(target: Target): void {
    const party = this.party(target);
    if (party.isAttended || party.unserved === undefined) return;
    party.isAttended = true;
    this.#session.detach(this.#attendTo(party, target));
  }

  /** Who leads finds out for itself what has failed. */
  async #attendTo(party: Party, target: Target): Promise<void> {
    try {
      for (let { unserved } = party; unserved !== undefined; { unserved } = party) {
        const { front, isLed } = party.line;
        if (isLed) {
          // The one at the front takes the lock, or a place for all.
          if (party.places.first === undefined) return;
          await this.#drawFor(party);
          continue;
        }
        const gatherMs = GATHER_MS - unserved.who.waitedMs;
        if (gatherMs > 0) {
          await this.#session.clock.sleep(Math.ceil(gatherMs), this.#session.closing);
          continue;
        }
        if (!party.turn.othersWait) await this.#lookAgain(party, target, front as Lease);
        if (party.unserved === unserved && party.line.front === front) await this.#drawFor(party);
      }
    } finally {
      // At once: who asks from here on is attended to anew.
      party.isAttended = false;
      this.tidy(target.at.name);
    }
  }

  /** A failure that passes is waited out: those behind the front ask the table for nothing themselves. */
  async #drawFor(party: Party): Promise<void> {
    try {
      await party.draw();
    } catch (error) {
      if (error === NOBODY_WAITS || party.unserved === undefined) return;
      if (!isTransient(error)) throw error;
      await this.#session.clock.sleep(LONGEST_PAUSE_MS, this.#session.closing);
    }
  }

  /** Looks while this process has the lock: whose turn it is after this. One that fails tells nothing. */
  async #lookAgain(party: Party, { at, settings }: Target, lease: Lease): Promise<void> {
    const asked = { kind: "read", attemptMs: attemptMs(settings.ttlMs) } as const;
    const look = await party
      .look((request) => sendOnce(this.#session, asked, request), { isConsistent: true })
      .catch(() => undefined);
    if (look === undefined || party.line.front !== lease) return;
    const { row, turn } = look;
    if (row?.uuid !== lease.row.uuid) return;
    // Whose turn it was on this lease, still has it.
    party.turn = { ...turn, upTo: Math.max(party.turn.upTo, turn.upTo) };
    // A mutex that is not fair, or a set, has no place in the queue.
    if (turn.othersWait || row.wanted === undefined) return;
    const contention = this.#session.contended();
    contention.sees(row);
    if (!contention.isTurnOver(at.name, settings.handOverMs)) return;
    party.turn = { upTo: 0, othersWait: false };
    contention.giveTurn(at.name, settings.poll.maxMs);
  }

  /** Takes the lock without a place, if nobody waits and it looks free. @returns undefined if no answer came in time. */
  async #takeWithoutPlace(party: Party, request: QueueRequest): Promise<SectionTry | undefined> {
    const { target, once, wait } = request;
    const { row, turn, sentAt } = await party.look(this.#asking(wait), { isConsistent: true });
    wait.throwIfEnough();
    if (row !== undefined) wait.saw(row);
    party.turn = turn;
    if (turn.othersWait) {
      const tick = once && (await tickNow(this.#session, target.at, once, wait));
      return { kind: row !== undefined && isDone(row, tick) ? "done" : "held" };
    }
    // Only the claim can tell whether a tick is done.
    if (once === undefined && row !== undefined && !looksFree(this.#session, target, row)) return { kind: "held" };
    const until = (): number => Math.min(sentAt + LOOK_LASTS_MS, wait.until());
    return await this.#claim(request, until);
  }

  /**
   * Waits until the own place is the first and the lock is free, and takes it.
   * @returns whether it was delivered; false if the place was lost.
   */
  async #enter(party: Party, own: SharedPlace, { target, data, wait, handOut }: LeadingRequest): Promise<boolean> {
    const session = this.#session;
    const { clock } = session;
    const { poll } = target.settings;
    const { place } = own;
    const pause = async (ms: number): Promise<void> => {
      await clock.sleep(Math.max(1, ms), wait.enough);
      wait.pacing.paused();
    };
    // What was seen just before the place was taken says how far it is to the front.
    const { seen } = party;
    const isRecent = seen !== undefined && clock.atMost() - seen.sentAt < SEEN_LASTS_MS;
    let recent = isRecent ? { ...seen, isConsistent: false } : undefined;
    for (let isConsistent = false; place.lost === undefined; ) {
      wait.throwIfEnough();
      const look = recent ?? (await party.look(this.#asking(wait), { isConsistent }));
      [recent, isConsistent] = [undefined, false];
      wait.throwIfEnough();
      const [first] = look.places;
      if (first !== undefined && party.places.on(first.uuid) === undefined && isBefore(first.sort, place.ticket)) {
        if (look.row !== undefined) wait.saw(look.row);
        party.line.keptOut = undefined;
        await pause(Math.min(party.pace.behind(place.ticket, poll), party.untilDead(look, place.ticket)));
        continue;
      }
      if (look.isConsistent && !look.places.some(({ uuid }) => uuid === place.uuid)) {
        place.lose();
        return false;
      }
      const { row } = look;
      if (row !== undefined && !looksFree(session, target, row)) {
        wait.saw(row);
        session.contended().waitsFor(row);
        party.line.keptOut ??= keptOutFrom(session);
        await mark(session, target, { row, keptOut: party.line.keptOut, wait });
        const ms = party.pace.next(poll);
        await pause(Math.min(ms, untilFree(session, target, row)));
        // What it shows may be relied on: a hand-over needs no other.
        isConsistent = ms < poll.maxMs / 2;
        continue;
      }
      if (!look.isConsistent) {
        isConsistent = true;
        continue;
      }
      party.turn = look.turn;
      const until = (): number => Math.min(look.sentAt + LOOK_LASTS_MS, place.until(), wait.until());
      const result = await this.#claim({ target, data, wait }, until);
      if (result?.kind === "granted" && (await handOut(result.granted))) return true;
      await wait.pacing.again();
    }
    return false;
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

  /** Asks within the bounds of a call that waits. */
  #asking(wait: Wait): Ask {
    const persistence = { kind: "read", attemptMs: LONGEST_ATTEMPT_MS, until: wait.until } as const;
    return (request) => wait.persist(persistence, request);
  }
}

function isBefore(sort: string, ticket: bigint): boolean {
  return (ticketOf(sort) ?? ticket) < ticket;
}

/** Waits for what others of this process wait for as well. @throws what ended this wait. */
async function before<T>({ enough }: Wait, shared: Promise<T>): Promise<T> {
  return await new Promise<T>((resolve, reject) => {
    const stop = onAbort(enough, () => reject(enough.reason));
    shared.finally(stop).then(resolve, reject);
  });
}
