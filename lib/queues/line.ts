import type { HeldLock } from "../holding/handle.js";
import type { Resource, ResourceClaim, SectionRequest, Tenure } from "../kinds/kind.js";
import type { LockInfo } from "../lock-info.js";
import type { Session } from "../session/session.js";
import { Bid } from "../taking/bid.js";
import type { Call, Failure, Progress } from "../taking/call.js";
import { type Claimed, looksFree, type Refusal, tryClaim } from "../taking/claim.js";
import type { Once } from "../taking/known-time.js";
import type { RowsInTheWay } from "../taking/row-take.js";
import { View } from "../taking/view.js";
import type { Turns } from "./turns.js";

/** What a queue adds to a claim: what a look has shown, and until when the claim may rely on it. */
export interface ClaimHow extends Pick<ResourceClaim, "seen" | "ahead" | "until" | "onTaken"> {
  /** The tick to ask for, if it is known. */
  readonly once?: Once | undefined;
}

/** The outcome of one try: that of a claim, or a refusal without a claim because others are ahead. */
export type TryOutcome = Claimed<Tenure> | { readonly kind: Refusal };

/** A call that wants a lock. */
export interface Waiter {
  readonly request: SectionRequest;
  readonly call: Call<unknown>;
  /** Settles the call with the lock: it has had no answer so far. */
  readonly settle: (lock: HeldLock) => void;
}

/** A waiter that stands in line. */
export interface Standing extends Waiter {
  /** Waiters are numbered in the order of asking. */
  readonly number: number;
  /** Asks the table for it. */
  bid: LineBid | undefined;
}

/** The bid of a waiter in line, or of a try. */
export type LineBid = Bid<Waiter>;

/** The reason with which a bid or a draw ends when nobody needs it any more. */
export const NOBODY_WAITS: Error = new Error("Nobody waits any more");

/**
 * The callers of this process for one lock, first come, first served, the leases that they have, and their bids for more. At most
 * one bid watches the lock for longer than one claim: others would see the same. What it sees is the line's, and the next bid goes on
 * with that.
 */
export class Line {
  readonly resource: Resource;
  /** How many leases its callers may have at once: as many as the one that knows the most of them says. */
  capacity = 0;
  /** In the order of their numbers. */
  readonly waiters: Standing[] = [];
  /** The leases that its callers have, the latest last. */
  readonly leases: Set<Tenure> = new Set();
  /** The latest of them, or one that has ended. */
  #latest: Tenure | undefined;
  /** The bids that may still take a lease, including those that are withdrawn. */
  readonly #claiming = new Set<LineBid>();
  readonly #session: Session;
  readonly #turns: Turns;
  /** The bid that watches the lock, or would if its claim is refused: callers that come now stand behind it. */
  #watcher: LineBid | undefined;
  /** How many waiters have a bid. */
  #bids = 0;
  #lastNumber = 0;
  #asking: LineBid | undefined;
  /** What the bids of those who wait see. The last one who waits leaves nothing of it. */
  #view: View | undefined;
  /** The calls whose `waitMs` has passed, and which share a try that is under way. */
  readonly #overdue = new Set<Call<unknown>>();
  /** Those who want to know when something has come of what this process has sent. */
  readonly #curious: (() => void)[] = [];

  constructor(session: Session, turns: Turns, resource: Resource) {
    this.#session = session;
    this.#turns = turns;
    this.resource = resource;
  }

  /** The number of the caller that asked last; 0 if none has. */
  get lastNumber(): number {
    return this.#lastNumber;
  }

  /** The number of the first waiter. */
  get first(): number | undefined {
    return this.waiters[0]?.number;
  }

  get hasBid(): boolean {
    return this.#bids > 0;
  }

  /** Whether as many leases are in use or being claimed as there may be. */
  get isFull(): boolean {
    return this.leases.size + this.#claiming.size >= this.capacity;
  }

  get isEmpty(): boolean {
    return this.leases.size + this.waiters.length + this.#claiming.size === 0;
  }

  /** Whether callers wait, and have to go on waiting as far as is known. */
  get isCrowded(): boolean {
    return this.#watcher !== undefined || this.waiters.length > this.#bids;
  }

  /**
   * Whether others of this process are ahead of a try. A claim that nobody needs any more is not: its caller will not have the lock,
   * and it may never be sent.
   */
  get isAheadOfTries(): boolean {
    if (this.isEmpty) return false;
    if (this.isCrowded) return true;
    if (!this.isFull) return false;
    const needed = [...this.#claiming].filter(({ withdrawn }) => !withdrawn.aborted);
    // Nor is a lease that has run out while it was released: a process may have been frozen after the end of its section.
    const leases = [...this.leases].filter(({ lease }) => !lease.hasRunOut);
    return leases.length + needed.length >= this.capacity;
  }

  /** Whether a waiter has no bid and may have one. @param together see {@link newBid}. */
  needsBid(together: boolean): boolean {
    const without = this.waiters.length - this.#bids;
    if (without === 0 || this.isFull) return false;
    return this.#bids === 0 || (together && without === 1 && this.#watcher === undefined);
  }

  /** Whether this process leaves the lock to others at present. */
  get isOthersTurn(): boolean {
    return this.#session.contention?.othersTurnOf(this.resource.at) !== undefined;
  }

  /** Who has the lock, as this process knows it: from its own latest lease, or from the row that a bid has seen. */
  get holder(): LockInfo | undefined {
    // Each waiting call asks for it again and again, so the latest is looked for once after it has changed.
    if (this.#latest === undefined || !this.leases.has(this.#latest)) this.#latest = [...this.leases].at(-1);
    return this.#latest?.lease.info ?? this.#view?.holder ?? this.#asking?.view.holder;
  }

  /** The last bid that has asked the table. */
  get asking(): LineBid | undefined {
    return this.#asking;
  }

  /** How far the asking for a caller has come. A caller without a bid shares what another one of its process has sent. */
  progressOf(bid: LineBid | undefined): Progress | undefined {
    const shared = this.#watcher ?? this.#asking;
    const asking = bid ?? (this.leases.size < this.capacity ? shared : undefined);
    return asking !== undefined && this.#claiming.has(asking) ? asking : undefined;
  }

  /** A call, whose `waitMs` has passed, goes on until the next {@link review}, which may end it. */
  addOverdue(call: Call<unknown>): void {
    if (this.#overdue.has(call) || call.isSettled) return;
    this.#overdue.add(call);
    call.atEnd(() => this.#overdue.delete(call));
  }

  /** Resolves at the next {@link review}. */
  reviewed(): Promise<void> {
    return new Promise((resolve) => this.#curious.push(resolve));
  }

  /** Something has come of what this process has sent: it counts for all callers whose `waitMs` has passed. */
  review(): void {
    for (const call of [...this.#overdue]) call.review();
    for (const tell of this.#curious.splice(0)) tell();
  }

  add({ request, call, settle }: Waiter): Standing {
    this.#lastNumber += 1;
    const standing = { request, call, settle, number: this.#lastNumber, bid: undefined };
    this.waiters.push(standing);
    return standing;
  }

  /** A waiter goes: with the lock, or for the reason that it failed. */
  leave(waiter: Standing, failure: Failure | undefined): void {
    const index = this.#indexAfter(waiter.number - 1);
    if (this.waiters[index] !== waiter) return;
    this.waiters.splice(index, 1);
    const { bid } = waiter;
    const isServed = failure === undefined && bid !== undefined && bid === this.#watcher;
    if (bid !== undefined) {
      this.#part(bid);
      bid.withdraw(failure === undefined ? NOBODY_WAITS : failure.reason);
      // A claim in flight may still take the lock, and new calls would meet it, so it counts until it is answered. If the waiter goes
      // with a lease of this process, nobody has to wait for that.
      if (failure === undefined) this.#claiming.delete(bid);
    }
    if (this.waiters.length === 0) this.#view = undefined;
    else if (isServed) this.view.passed();
  }

  /** What those who wait see of the lock. */
  get view(): View {
    this.#view ??= this.newView();
    return this.#view;
  }

  /** What one bid sees of the lock, or several that share it. A try has one of its own. */
  newView(): View {
    return new View(this.#session, { longestPauseMs: () => this.#longestPauseMs, onProgress: () => this.review() });
  }

  /**
   * A bid for the first waiter that has none.
   * @param together whether it asks although other bids may ask as well. Otherwise it is the watcher from the beginning.
   */
  newBid(together: boolean): LineBid {
    const waiter = this.#firstWithoutBid as Standing;
    const bid: LineBid = new Bid<Waiter>(this.#session, waiter, this.view);
    waiter.bid = bid;
    this.#bids += 1;
    if (!together) this.#watcher = bid;
    this.enter(bid);
    return bid;
  }

  /** A bid begins to ask. */
  enter(bid: LineBid): void {
    this.#claiming.add(bid);
    this.#asking = bid;
  }

  /** A bid has its lease, or asks no longer. */
  dismiss(bid: LineBid): void {
    this.#claiming.delete(bid);
    this.#part(bid);
  }

  /** It is no waiter's bid any more, nor the watcher. */
  #part(bid: LineBid): void {
    if (this.#watcher === bid) this.#watcher = undefined;
    const waiter = bid.asker as Partial<Standing>;
    if (waiter.bid !== bid) return;
    waiter.bid = undefined;
    this.#bids -= 1;
  }

  /** A bid has taken a lease. */
  keep(own: Tenure, bid: LineBid): void {
    this.leases.add(own);
    this.#latest = own;
    // What another bid watches is still in that one's way.
    if (this.#watcher === undefined || this.#watcher === bid) this.#view?.taken();
    else this.#view?.unblock();
  }

  /**
   * Takes a lease for the bid's waiter, or joins one.
   *
   * 1. Try to take it. A refusal shows the row, so nothing needs to be read.
   * 2. Watch it until it looks free; go on with 1. A read is a hint: the conditional write decides.
   *
   * If the bid before it was watching, it begins with 2.
   *
   * @returns undefined if another bid watches the lock.
   * @throws the store's error if it is not transient, or if the table never answered; what ended the call.
   */
  async acquire(bid: LineBid): Promise<Tenure | undefined> {
    const { resource } = bid.asker.request;
    for (let inTheWay = retargeted(bid.view.inTheWay, resource); ; ) {
      let seen: ClaimHow["seen"];
      if (inTheWay !== undefined) {
        // One that looks free is claimed again at once.
        if (!inTheWay.every(({ target, row }) => looksFree(this.#session, target, row))) bid.waits();
        bid.withdrawn.throwIfAborted();
        this.#watcher ??= bid;
        if (this.#watcher !== bid) return undefined;
        seen = await resource.kind.watch(resource, inTheWay, bid);
      }
      if (this.isOthersTurn) await this.#turns.standBack(resource, bid);
      this.#asking = bid;
      const result = await this.claim(bid, { seen });
      if (result.kind === "granted") return result.granted;
      inTheWay = result.inTheWay;
    }
  }

  /** One try. It is refused if anybody is ahead. */
  tryAcquire(bid: LineBid): Promise<TryOutcome> {
    return tryClaim(this.#session, bid, () => this.claim(bid));
  }

  /** Whether a lease whose section has ended may pass to the first waiter. @param until how long it may be asked, on `atMost`. */
  mayPass(own: Tenure, until: number): boolean | Promise<boolean> {
    return this.#turns.mayPass(own, until);
  }

  /** Whether the first waiter may go on with a lease of this process. */
  get admitsFirst(): boolean {
    return true;
  }

  /** Called when a waiter has come, or has got a lease. */
  changed(): void {
    // Nothing has to be drawn.
  }

  /** Gives up what no caller needs any more: an empty line is like a new one. @returns whether it is empty. */
  tidy(): boolean {
    if (!this.isEmpty) return false;
    this.capacity = 0;
    this.#view = undefined;
    this.#latest = undefined;
    // The holder that it knows may be gone when the next caller comes.
    this.#asking = undefined;
    return true;
  }

  /** One claim, from the first copy to the last, in the context of the call that it is for. */
  claim(bid: LineBid, { once, ...how }: ClaimHow = {}): Promise<Claimed<Tenure>> {
    const { call, request: asked } = bid.asker;
    const request = once === undefined ? asked : { ...asked, once };
    const open = (): Tenure | undefined => [...this.leases].findLast((own) => own.admits(request));
    return call.inContext(() => request.resource.kind.claim({ ...how, request, bid, open }));
  }

  /** The first waiter whose number is greater than this. */
  firstAfter(number: number): Standing | undefined {
    return this.waiters[this.#indexAfter(number)];
  }

  /** How many waiters have a number greater than this. */
  countAfter(number: number): number {
    return this.waiters.length - this.#indexAfter(number);
  }

  /** How many permits of a semaphore they need in all. */
  weightAfter(number: number): number {
    const after = this.waiters.slice(this.#indexAfter(number));
    return after.reduce((sum, { request }) => sum + request.resource.weight, 0);
  }

  get #firstWithoutBid(): Standing | undefined {
    return this.waiters.find(({ bid }) => bid === undefined);
  }

  /** The watcher looks as often as the waiter with the shortest poll would. */
  get #longestPauseMs(): number {
    let leastMs = Number.POSITIVE_INFINITY;
    for (const { request } of this.waiters) leastMs = Math.min(leastMs, request.resource.settings.poll.maxMs);
    return leastMs;
  }

  /** The index of the first waiter with a greater number. */
  #indexAfter(number: number): number {
    let [low, high] = [0, this.waiters.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.waiters[middle] as Standing).number > number) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

/** The same rows, as a caller that knows the lock by this resource would take them. */
function retargeted(inTheWay: RowsInTheWay | undefined, { settings }: Resource): RowsInTheWay | undefined {
  const rows = inTheWay?.map(({ target, row }) => ({ target: { ...target, settings }, row }));
  return rows as unknown as RowsInTheWay | undefined;
}
