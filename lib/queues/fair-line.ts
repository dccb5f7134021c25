import type { Resource, Tenure } from "../kinds/kind.js";
import { ticketOf } from "../protocol/addresses.js";
import type { Row } from "../protocol/row.js";
import type { Session } from "../session/session.js";
import { runFor } from "../taking/bid.js";
import { Call } from "../taking/call.js";
import type { Ask } from "../taking/rows.js";
import { untilFree } from "../taking/watch.js";
import { Line, type LineBid, NOBODY_WAITS, type Standing, type TryOutcome } from "./line.js";
import { OwnPlaces } from "./own-places.js";
import type { Pace } from "./pace.js";
import { type Place, type Sharing, takePlace } from "./place.js";
import { type QueueLook, QueueView } from "./queue-view.js";
import type { Turns } from "./turns.js";

/** Which callers of this process may enter, by what a look has shown. */
export interface Admission {
  /** Callers of this process up to this number go before all places of other processes that the look has shown. */
  readonly upTo: number;
  /** Whether the look has shown a place of another process. */
  readonly othersWait: boolean;
}

/** A look at the queue, and what it means for the callers that asked before it left. */
export interface AdmissionLook extends QueueLook {
  readonly admission: Admission;
}

/** How long a look counts for further callers that asked before it left, where several may have the lock. */
const KNOWN_LASTS_MS = 1_000;

/** Up to this many waiters that are next together look as often as one alone would. More of them share that many looks. */
const NEXT_TOGETHER = 4;

/** Waiters look this long after one another for a place whose lease ends. */
const APART_MS = 50;

const NOT_YET: Admission = { upTo: 0, othersWait: false };

/** What decides whose turn it is: see `fair-queue.ts`. */
interface LineQueue {
  acquire(line: FairLine, bid: LineBid): Promise<Tenure>;
  tryAcquire(line: FairLine, bid: LineBid): Promise<TryOutcome>;
  mayPass(line: FairLine, own: Tenure, until: number): Promise<boolean>;
  /** Starts to get a place for the callers behind the first, if they need one. */
  drawForUnserved(line: FairLine): void;
}

interface FairLineParts {
  readonly queue: LineQueue;
  /** How fast the queue of the lock moves. */
  readonly pace: Pace;
}

/**
 * The callers of this process that want one fair lock, numbered in the order of asking. All callers up to an admitted number go
 * before the places of other processes. A caller is admitted in one of two ways:
 *
 * - A place in the queue serves all callers that asked before its ticket was drawn.
 * - A consistent look that shows no place of another process serves all callers that asked before it left.
 */
export class FairLine extends Line {
  readonly places: OwnPlaces = new OwnPlaces();
  readonly pace: Pace;
  /** Which callers may run on the lease that this process has, by the last look that was made for it. */
  admission: Admission = NOT_YET;
  /** What the last look has shown. */
  seen: AdmissionLook | undefined;
  /** When the last look left, on `atMost`, whether or not it succeeded. */
  lookedAt: number = Number.NEGATIVE_INFINITY;
  /** Whether the bid has its row and waits for other holders to leave: then the other callers need a place of their own. */
  awaitsHolders = false;
  /** Whether the fair queue is drawing a place for the callers behind the first, or is about to. */
  isDrawingForUnserved = false;
  readonly #session: Session;
  readonly #queue: LineQueue;
  readonly #view: QueueView;
  readonly #placeLost: () => void;
  /** The ticket of the last place that may enter together with the first one, by the last look. */
  #front: bigint | undefined;
  /** Up to which number callers were found to fit this lease. */
  #fitting: { readonly lease: Tenure | undefined; readonly upTo: number } = { lease: undefined, upTo: 0 };
  /** Until when nobody looks again from a place, on `atLeast`. */
  #pausing: { readonly place: Place; readonly until: number; readonly because: string | undefined } | undefined;
  #drawing: Promise<void> | undefined;
  /** Aborts when no caller waits any more for the ticket that is being drawn. */
  #nobodyWaits: AbortController | undefined;

  constructor(session: Session, turns: Turns, resource: Resource, { queue, pace }: FairLineParts) {
    super(session, turns, resource);
    this.#session = session;
    this.#queue = queue;
    this.pace = pace;
    // The callers behind the first may need another place. Check that in the next microtask: the caller that reads the loss may be
    // about to draw one itself.
    this.#placeLost = () => session.detach(Promise.resolve().then(() => this.changed()));
    this.#view = new QueueView(session, resource.settings.ttlMs);
  }

  override acquire(bid: LineBid): Promise<Tenure> {
    return this.#queue.acquire(this, bid);
  }

  override tryAcquire(bid: LineBid): Promise<TryOutcome> {
    return this.#queue.tryAcquire(this, bid);
  }

  override mayPass(own: Tenure, until: number): Promise<boolean> {
    return this.#queue.mayPass(this, own, until);
  }

  /** A place may not be needed any more, or the callers behind the first may need one. */
  override changed(): void {
    this.tidy();
    this.#queue.drawForUnserved(this);
  }

  /** Looks at the queue, for a caller that knows the lock by this resource. */
  async look(
    ask: Ask,
    resource: Resource,
    { isConsistent }: { readonly isConsistent: boolean },
  ): Promise<AdmissionLook> {
    let asked = 0;
    this.lookedAt = this.#session.clock.atMost();
    // Up to the first place of this process, or until a caller behind the places of others has to wait in any case.
    const isEnough = (gate: readonly Row[], places: readonly Row[]): boolean => {
      if (places.some(({ uuid }) => uuid === this.places.first?.uuid)) return true;
      const ahead = this.#needs(places);
      return ahead > 0 && ahead >= resource.kind.queue.room(resource, gate);
    };
    const look = await this.#view.look(ask, resource, isConsistent, isEnough, () => {
      asked = this.lastNumber;
    });
    // The pace is taken from the last of the places that may enter together: the process of another of them may be suspended,
    // while the places behind it enter.
    const front = look.places[this.resource.kind.queue.together(this.resource, look.places) - 1];
    this.pace.saw(look.gate, front && ticketOf(front.sort), (from, to) => this.#groupsBetween(from, to));
    this.#front = front && ticketOf(front.sort);
    this.seen = { ...look, admission: this.#admissionOf(look, asked) };
    return this.seen;
  }

  /**
   * The last look, if the first waiter may claim by it without a new one, where several may have the lock. It must have asked
   * before that look left, and the look must have shown the whole queue, without a place of another process. A look that
   * stopped at an own place does not count: it has not shown the places behind that one, which may be lost by now.
   */
  get knownLook(): AdmissionLook | undefined {
    const { first, capacity, seen } = this;
    if (capacity === 1 || !seen?.isConsistent || !seen.isWhole || seen.admission.othersWait) return undefined;
    if (this.#session.clock.atMost() - seen.sentAt >= KNOWN_LASTS_MS) return undefined;
    return first !== undefined && first <= seen.admission.upTo ? seen : undefined;
  }

  /** Who waits ahead of this process, by the last look; undefined if nobody does. */
  get whoIsAhead(): string | undefined {
    const first = this.seen?.places.find(({ uuid }) => this.places.on(uuid) === undefined);
    return first && `Callers of other processes are ahead in its queue, the first of them of ${first.owner}`;
  }

  /** Whether a look has shown all that there is up to this place. */
  reaches({ places, isWhole }: QueueLook, { ticket }: Place): boolean {
    const last = places.at(-1);
    return isWhole || (last !== undefined && !isBefore(last, ticket));
  }

  /** How much room the places before this ticket need, of those that a look has shown. Places of this process do not count. */
  ahead({ places }: QueueLook, ticket: bigint): number {
    return this.#needs(places.filter((place) => isBefore(place, ticket)));
  }

  /**
   * How long a caller of this process waits before it looks again, if the places ahead of it need that much room. With several
   * permits, it may be next together with them.
   */
  pause({ places }: QueueLook, ticket: bigint, ahead: number): number {
    const { permits, settings, kind } = this.resource;
    const [{ side }, [first]] = [kind.queue, places];
    const groups = side === undefined ? ticket - (this.#front ?? ticket) : groupsBefore(places, ticket, side);
    let ms = this.pace.behind(groups, settings.poll);
    if (ahead < permits) ms = Math.min(ms, this.pace.next(settings.poll) * Math.max(1, (ahead + 1) / NEXT_TOGETHER));
    if (first === undefined) return ms;
    // If the process of the first place has died, its place can be skipped once its lease is over. Each further place looks a
    // little later, so that not all of them look at once.
    const apartMs = APART_MS * Number(ticket - (ticketOf(first.sort) ?? ticket) - 1n);
    return Math.min(ms, untilFree(this.#session, { ...this.resource, at: first }, first) + apartMs);
  }

  /**
   * Pauses before the next look from a place. If the bid is withdrawn meanwhile, the next one goes on with this pause.
   * @param because why, where no row says it. @throws what ended the call.
   */
  async pauseFor(ms: number, place: Place, bid: LineBid, because: string | undefined): Promise<void> {
    this.#pausing = { place, until: this.#session.clock.atLeast() + ms, because };
    await bid.pause(Math.max(1, ms), because);
    this.#pausing = undefined;
  }

  /** The rest of the pause in which another bid was withdrawn. @throws what ended the call. */
  async restOfPause(place: Place, bid: LineBid): Promise<void> {
    const before = this.#pausing;
    if (before?.place !== place) return;
    await this.pauseFor(before.until - this.#session.clock.atLeast(), place, bid, before.because);
  }

  /** Takes a place for all callers that ask before its draw leaves. Later calls join that draw. @throws the store's error. */
  draw(): Promise<void> {
    if (this.#drawing !== undefined) return this.#drawing;
    const drawing = this.#session
      .inOwnContext(() => this.#draw())
      .finally(() => {
        if (this.#drawing === drawing) this.#drawing = undefined;
      });
    this.#drawing = drawing;
    return drawing;
  }

  /** Whether the lease that this process has may pass to the first caller without a lock. */
  override get admitsFirst(): boolean {
    return (this.first ?? Number.POSITIVE_INFINITY) <= this.admission.upTo;
  }

  /**
   * The first caller that has no place, that no bid asks for, and that the present lease will not be passed on to. A bid asks for
   * the first waiter.
   */
  get unserved(): Standing | undefined {
    const [lease] = this.leases;
    let goesOnTo = 0;
    if (this.hasBid) goesOnTo = this.first ?? 0;
    else if (lease !== undefined) goesOnTo = this.#goesOnTo(lease);
    return this.firstAfter(Math.max(this.places.serve, goesOnTo));
  }

  /**
   * Up to which number the admitted callers can use this lease, one after the other: at the first one that cannot, the lease is
   * given back. An earlier result counts while the first caller still fits, so each caller is checked once.
   */
  #goesOnTo(lease: Tenure): number {
    const { admission } = this;
    const fitting = (one: Standing | undefined): one is Standing => one !== undefined && lease.admits(one.request);
    let upTo = this.#fitting.lease === lease && fitting(this.waiters[0]) ? this.#fitting.upTo : 0;
    const next = (): Standing | undefined => this.firstAfter(upTo);
    for (let one = next(); fitting(one) && one.number <= admission.upTo; one = next()) upTo = one.number;
    this.#fitting = { lease, upTo };
    return Math.min(upTo, admission.upTo);
  }

  /** Gives up the places and the draw that no caller needs any more. @returns whether the line is empty. */
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
    this.#nobodyWaits = new AbortController();
    const { signal } = this.#nobodyWaits;
    const call = new Call<void>(this.#session, this.resource.name, { isPatient: true, signal });
    await runFor(this.#session, call, async (bid) => {
      const place = await takePlace(this.#session, this.resource, bid, () => this.#sharing());
      if (!call.settle()) return place.giveUp();
      place.onLost = this.#placeLost;
      this.places.add(place);
    });
    // The callers that share the new place may have gone meanwhile.
    this.tidy();
  }

  /** How much room places need, except those of this process. */
  #needs(places: readonly Row[]): number {
    const { queue } = this.resource.kind;
    const others = places.filter(({ uuid }) => this.places.on(uuid) === undefined);
    return others.reduce((sum, place) => sum + queue.weight(place), 0);
  }

  /** How many groups there were from one ticket to another, by the previous look. */
  #groupsBetween(from: bigint, to: bigint): number {
    const { side } = this.resource.kind.queue;
    if (side === undefined) return Number(to - from);
    const passed = (this.seen?.places ?? []).filter((place) => !isBefore(place, from) && isBefore(place, to));
    return Math.max(1, groupsIn(passed));
  }

  /** The callers that share a place which is drawn now. */
  #sharing(): Sharing {
    const { serve } = this.places;
    return { sections: this.countAfter(serve), permits: this.weightAfter(serve), last: this.lastNumber };
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

/**
 * How many groups of a shared mutex come before a ticket. Places that the look has not shown count as many groups each as those
 * that it has shown.
 */
function groupsBefore(places: readonly Row[], ticket: bigint, side: "exclusive" | "shared"): number {
  const before = places.filter((place) => isBefore(place, ticket));
  const last = before.at(-1);
  if (last === undefined) return 0;
  const isHidden = before.length === places.length;
  const hidden = isHidden ? Number(ticket - (ticketOf(last.sort) ?? ticket)) - 1 : 0;
  if (hidden <= 0) return groupsIn(before, side);
  return (groupsIn(before) * (before.length + hidden)) / before.length;
}

/** How many groups these places of a shared mutex make: consecutive places of the shared side enter together, as one group. */
function groupsIn(places: readonly Row[], next?: "exclusive" | "shared"): number {
  const sides = [...places.map(({ data }) => data?.side), next];
  return places.filter((_, index) => sides[index] !== "shared" || sides[index + 1] !== "shared").length;
}
