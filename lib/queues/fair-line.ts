import type { OwnLease, Resource } from "../kinds/kind.js";
import { ticketOf } from "../protocol/addresses.js";
import type { Row } from "../protocol/row.js";
import type { Session } from "../session/session.js";
import type { Ask } from "../taking/rows.js";
import { Wait } from "../taking/wait.js";
import { untilFree } from "../taking/watch.js";
import { LocalLine, type Waiter } from "./local-line.js";
import { OwnPlaces } from "./own-places.js";
import type { Pace } from "./pace.js";
import { takePlace } from "./place.js";
import { type QueueLook, QueueView } from "./queue-view.js";

/** Which callers of this process a look admits. */
export interface Admission {
  /** Callers up to this number go before all others that it has shown. */
  readonly upTo: number;
  /** Whether it has shown the place of somebody else. */
  readonly othersWait: boolean;
}

/** A look at the queue, and what it means for the callers that asked before it left. */
export interface AdmissionLook extends QueueLook {
  readonly admission: Admission;
}

/** For how long further callers that asked before a look go by it, where there is room for several. */
const KNOWN_LASTS_MS = 1_000;

/** So many of those who are next in line together look as often as one would: more share that many looks. */
const NEXT_TOGETHER = 4;

/** How far apart waiters look for a place whose lease ends. */
const APART_MS = 50;

/** The reason with which a draw is aborted when all of its callers have gone. */
export const NOBODY_WAITS: Error = new Error("Nobody waits any more");

const NOT_YET: Admission = { upTo: 0, othersWait: false };

/**
 * The callers of this process that want one fair lock. They stand in one line, in the order of asking, so a number tells
 * whose turn it is: all callers up to it go before the places of others. There are two ways to such a number:
 *
 * - A place in the queue serves all who asked before its ticket was drawn.
 * - A consistent look that shows no place of others serves all who asked before it left.
 */
export class FairLine extends LocalLine<OwnLease> {
  readonly resource: Resource;
  readonly places: OwnPlaces = new OwnPlaces();
  readonly pace: Pace;
  /** Which callers may go on with the lease at the front, by the last look that was made for it. */
  admission: Admission = NOT_YET;
  /** What the last look has shown. */
  seen: AdmissionLook | undefined;
  /** When it has looked last, on `atMost`, whatever came of it. */
  lookedAt: number = Number.NEGATIVE_INFINITY;
  /** Whether the one that leads has its row, and waits for others to leave: those behind it need a place of their own. */
  isTaken = false;
  /** Whether the fair queue is drawing a place for the callers behind the front, or is about to. */
  isAttended = false;
  readonly #session: Session;
  readonly #view: QueueView;
  readonly #placeLost: () => void;
  /** The last of those that have room together, as seen. */
  #front: bigint | undefined;
  /** Up to which number its callers were found to fit a lease. */
  #fitting: { readonly lease: OwnLease | undefined; readonly upTo: number } = { lease: undefined, upTo: 0 };
  #drawing: Promise<void> | undefined;
  /** Aborts when nobody waits any more for what is being drawn. */
  #nobodyWaits: AbortController | undefined;

  constructor(session: Session, resource: Resource, pace: Pace, placeLost: () => void) {
    super(resource.permits);
    this.#session = session;
    this.resource = resource;
    this.pace = pace;
    this.#placeLost = placeLost;
    this.#view = new QueueView(session, resource);
  }

  /** Looks at the queue. */
  async look(ask: Ask, { isConsistent }: { readonly isConsistent: boolean }): Promise<AdmissionLook> {
    let asked = 0;
    this.lookedAt = this.#session.clock.atMost();
    const isOwn = ({ uuid }: Row): boolean => this.places.on(uuid) !== undefined;
    const look = await this.#view.look(ask, isConsistent, isOwn, () => {
      asked = this.lastNumber;
    });
    // Of the places that may enter together, one may be suspended while those behind it enter: the last of them tells the pace.
    const front = look.places[this.resource.kind.queue.together(this.resource, look.places) - 1];
    this.pace.saw(look.gate, front && ticketOf(front.sort), (from, to) => this.#turnsBetween(from, to));
    this.#front = front && ticketOf(front.sort);
    this.seen = { ...look, admission: this.#admissionOf(look, asked) };
    return this.seen;
  }

  /**
   * What a look has shown already that counts for the caller that leads, where several may have the lock: it had asked before
   * that look left, and it has shown the whole queue, without anybody else in it. A look that ended at an own place has not
   * shown who is behind it, and the place may be lost by now.
   */
  knownLookOf(wait: Wait): AdmissionLook | undefined {
    const { leader, capacity, seen } = this;
    if (capacity === 1 || !seen?.isConsistent || !seen.isWhole || seen.admission.othersWait) return undefined;
    if (this.#session.clock.atMost() - seen.sentAt >= KNOWN_LASTS_MS) return undefined;
    return leader?.caller.wait === wait && leader.number <= seen.admission.upTo ? seen : undefined;
  }

  /** How much room the places before this one need, of those that a look has shown. Places of this process do not count. */
  ahead({ places }: QueueLook, ticket: bigint): number {
    const { kind } = this.resource;
    const before = places.filter((place) => isBefore(place, ticket) && this.places.on(place.uuid) === undefined);
    return before.reduce((sum, place) => sum + kind.queue.weight(place), 0);
  }

  /**
   * How long a caller of this process waits before it looks again, if so many are ahead of its place. With several permits,
   * it may be the next in line together with those few.
   */
  pause({ places }: QueueLook, ticket: bigint, ahead: number): number {
    const { permits, settings, kind } = this.resource;
    const [{ side }, [first]] = [kind.queue, places];
    const turns = side === undefined ? ticket - (this.#front ?? ticket) : turnsBefore(places, ticket, side);
    let ms = this.pace.behind(turns, settings.poll);
    if (ahead < permits) ms = Math.min(ms, this.pace.next(settings.poll) * Math.max(1, (ahead + 1) / NEXT_TOGETHER));
    if (first === undefined) return ms;
    // The process of the first place may have died: then it can be skipped once its lease is over. Each further place looks a
    // little later, so that not all of them look at once.
    const apartMs = APART_MS * Number(ticket - (ticketOf(first.sort) ?? ticket) - 1n);
    return Math.min(ms, untilFree(this.#session, { ...this.resource, at: first }, first) + apartMs);
  }

  /** Takes a place for all callers that ask before its draw leaves. A call in between joins the one under way. @throws the store's error. */
  draw(): Promise<void> {
    if (this.#drawing !== undefined) return this.#drawing;
    const drawing = this.#draw().finally(() => {
      if (this.#drawing === drawing) this.#drawing = undefined;
    });
    this.#drawing = drawing;
    return drawing;
  }

  /** Whether the lease at the front may go on to the first who waits. */
  override get admitsFirst(): boolean {
    return (this.first ?? Number.POSITIVE_INFINITY) <= this.admission.upTo;
  }

  /** The first caller behind the front that has no place, and that the present lease will not be passed on to. */
  get unserved(): Waiter<OwnLease> | undefined {
    const [lease] = this.leases;
    const goesOnTo = this.leader !== undefined || lease === undefined ? 0 : this.#goesOnTo(lease);
    return this.firstAfter(Math.max(this.places.serve, goesOnTo));
  }

  /**
   * Up to which number callers can go on with this lease, one after the other, as far as they are admitted: behind one that
   * cannot, the lease is given back. What was found before holds for as long as the first of them can, so each caller is looked at once.
   */
  #goesOnTo(lease: OwnLease): number {
    const { admission } = this;
    const isKnown = this.#fitting.lease === lease && this.firstAfter(0)?.caller.fits(lease) === true;
    let upTo = isKnown ? this.#fitting.upTo : 0;
    const next = (): Waiter<OwnLease> | undefined => this.firstAfter(upTo);
    for (let one = next(); one !== undefined && one.number <= admission.upTo && one.caller.fits(lease); one = next())
      upTo = one.number;
    this.#fitting = { lease, upTo };
    return Math.min(upTo, admission.upTo);
  }

  /** Gives up what nobody waits for any more. @returns whether nobody is left. */
  override tidy(): boolean {
    const { first, isEmpty } = this;
    this.places.leaveBefore(first);
    if (first === undefined && this.#drawing !== undefined) {
      this.#drawing = undefined;
      this.#nobodyWaits?.abort(NOBODY_WAITS);
    }
    return isEmpty;
  }

  async #draw(): Promise<void> {
    const wait = new Wait(this.#session, this.resource.name, { patient: true });
    this.#nobodyWaits = new AbortController();
    const { signal } = this.#nobodyWaits;
    await wait.run<void>(
      async (deliver) => {
        const sharing = () => ({ sections: this.#waitingAfter(this.places.serve), last: this.lastNumber });
        const place = await takePlace(this.#session, this.resource, wait, sharing);
        if (!deliver()) return place.leave();
        place.onLost = this.#placeLost;
        this.places.add(place);
      },
      { signal, waitMs: Number.POSITIVE_INFINITY },
    );
    // The callers that share it may have gone meanwhile.
    this.tidy();
  }

  /** How many turns there were from one ticket to another, by the look before. */
  #turnsBetween(from: bigint, to: bigint): number {
    const { side } = this.resource.kind.queue;
    if (side === undefined) return Number(to - from);
    const passed = (this.seen?.places ?? []).filter((place) => !isBefore(place, from) && isBefore(place, to));
    return Math.max(1, turnsIn(passed));
  }

  #waitingAfter(number: number): number {
    const leads = this.leader !== undefined && (this.first ?? 0) > number;
    return this.countAfter(number) + (leads ? 1 : 0);
  }

  #admissionOf({ places, isWhole }: QueueLook, asked: number): Admission {
    let upTo = 0;
    for (const { uuid } of places) {
      const own = this.places.on(uuid);
      if (own === undefined) return { upTo, othersWait: true };
      upTo = own.last;
    }
    return { upTo: isWhole ? asked : upTo, othersWait: false };
  }
}

function isBefore({ sort }: Row, ticket: bigint): boolean {
  return (ticketOf(sort) ?? ticket) < ticket;
}

/** How many turns of a shared mutex come before a ticket: of the places that a look has not shown, as many as of those that it has. */
function turnsBefore(places: readonly Row[], ticket: bigint, side: "exclusive" | "shared"): number {
  const before = places.filter((place) => isBefore(place, ticket));
  const last = before.at(-1);
  if (last === undefined) return 0;
  const isHidden = before.length === places.length;
  const hidden = isHidden ? Number(ticket - (ticketOf(last.sort) ?? ticket)) - 1 : 0;
  if (hidden <= 0) return turnsIn(before, side);
  return (turnsIn(before) * (before.length + hidden)) / before.length;
}

/** How many turns these places of a shared mutex take: those of the shared side that follow one another go in together. */
function turnsIn(places: readonly Row[], next?: "exclusive" | "shared"): number {
  const sides = [...places.map(({ data }) => data?.side), next];
  return places.filter((_, index) => sides[index] !== "shared" || sides[index + 1] !== "shared").length;
}
