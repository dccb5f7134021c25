import { HeldLock } from "../holding/handle.js";
import type { Lease } from "../holding/lease.js";
import type { LeaseUser } from "../holding/term.js";
import { ExclusiveSide } from "../kinds/exclusive.js";
import { type Kind, type Resource, resourceKey, type Tenure } from "../kinds/kind.js";
import { MutexKind } from "../kinds/mutex.js";
import { SemaphoreKind } from "../kinds/semaphore.js";
import { SharedSide } from "../kinds/shared.js";
import { displayTime } from "../protocol/lease-time.js";
import { awaitShared } from "../session/abort-listening.js";
import { answeredWithin } from "../session/overdue.js";
import type { Session } from "../session/session.js";
import { askFor } from "../taking/bid.js";
import type { Refusal } from "../taking/claim.js";
import { guardOf, uuidsOf } from "../taking/row-lease.js";
import { leaseWasOver, tooSlow } from "../taking/too-slow.js";
import { boundsOf } from "../time/clock.js";
import { FairQueue } from "./fair-queue.js";
import { Line, type LineBid, type Standing, type Waiter } from "./line.js";
import { Turns } from "./turns.js";

/**
 * Up to how many lines there are, one that is empty is kept for the next caller. Without this, a lock in memory takes a fifth more
 * CPU time, in collecting garbage.
 */
const MOST_KEPT = 16;

/**
 * Gives the sections of this process their locks. Each call stands in the line of its lock, and gets a lease that the previous
 * section passed on, which takes no request, or one that a bid of the line has taken from the table.
 *
 * `add` puts a call into its line; `#pump` sends a bid for it, which will `#ask`: `acquire` a lease, which is `#granted` to its
 * waiter, whose section `#begin`s. A lease whose section has ended (`#sectionEnded`), or whose waiter has gone (`#unplaced`), passes to
 * the next waiter or is released.
 */
export class Sections {
  readonly session: Session;
  readonly kinds: Readonly<Record<"mutex" | "semaphore" | "exclusive" | "shared", Kind>>;
  readonly #lines = new Map<string, Line>();
  readonly #fairQueue: FairQueue;
  readonly #turns: Turns;

  constructor(session: Session) {
    this.session = session;
    this.kinds = {
      mutex: new MutexKind(session),
      semaphore: new SemaphoreKind(session),
      exclusive: new ExclusiveSide(session),
      shared: new SharedSide(session),
    };
    this.#turns = new Turns(session);
    this.#fairQueue = new FairQueue(session, this.#turns);
  }

  /** Puts a call into the line of its lock, and settles it with the lock. */
  add(waiter: Waiter): void {
    const { call, request } = waiter;
    const { kind, settings } = request.resource;
    const line = this.#line(request.resource);
    const isBehind = !line.isEmpty;
    const standing = line.add(waiter);
    call.holderNow = () => (standing.bid && line.view.holder) ?? line.holder;
    call.progressNow = () => line.progressOf(standing.bid);
    call.onOverdue = () => line.addOverdue(call);
    call.atEnd((failure) => {
      line.leave(standing, failure);
      // The lease of a served waiter is about to pass, or to be released.
      if (failure === undefined) this.#tidy(line);
      else this.session.detach(this.#pumpLater(line));
    });
    if (isBehind) call.isBlocked();
    // A caller that could share the lease of another, or has to queue, waits for the outcome of that one's claim.
    this.#pump(line, { together: !kind.sectionsShareLease && !settings.fair && !line.isOthersTurn });
    // A bid keeps the process alive by its requests and pauses.
    if (standing.bid === undefined) call.stay();
    line.changed();
  }

  /**
   * One try for a call, which settles it if it gets the lock.
   * @param refused is called with why it does not; the call knows who is in the way.
   */
  try(waiter: Waiter, refused: (why: Refusal) => void): void {
    const line = this.#line(waiter.request.resource);
    const work = async (bid: LineBid): Promise<void> => {
      const why = await this.#tryIn(line, bid);
      if (why !== undefined) refused(why);
    };
    askFor(this.session, waiter, work, line.newView());
  }

  async #tryIn(line: Line, bid: LineBid): Promise<Refusal | undefined> {
    const { call, request } = bid.asker;
    const { resource, once } = request;
    try {
      // A try cannot wait until others have had their turn. A tick runs once, so a try for it keeps nobody out.
      if (once === undefined && line.isOthersTurn) {
        bid.waits(this.#turns.whyStandBack(resource));
        return "held";
      }
      // A try does not overtake callers of its own process that wait, unless they share the lock.
      while (line.isAheadOfTries && (resource.settings.fair || !resource.kind.sectionsShareLease)) {
        const { asking } = line;
        const present = (): Line => this.#lines.get(lineKeyOf(resource)) ?? line;
        call.holderNow = () => bid.view.holder ?? present().holder ?? asking?.view.holder;
        if (!call.isOverdue || call.holder !== undefined) return "held";
        // Nobody knows yet who has the lock, so it may be free: this call shares the try of the one ahead.
        call.progressNow = () => line.progressOf(undefined);
        line.addOverdue(call);
        await awaitShared(bid.withdrawn, line.reviewed());
        if (call.holder !== undefined) return "held";
        call.progressNow = () => bid;
      }
      line.enter(bid);
      return await this.#try(line, bid);
    } finally {
      this.#dismiss(line, bid);
    }
  }

  /** Claims again only for a lease that was over before it could be handed out. */
  async #try(line: Line, bid: LineBid): Promise<Refusal | undefined> {
    const { resource, once } = bid.asker.request;
    for (;;) {
      const result = await line.tryAcquire(bid);
      if (result.kind !== "granted") return result.kind;
      if (await this.#granted(line, result.granted, bid)) return undefined;
      // A tick is granted once: another claim would be told that it is done, although nothing has run.
      const isTooLate = once !== undefined || this.session.clock.atMost() >= bid.until();
      if (isTooLate) throw tooSlow(resource.name, resource.settings);
    }
  }

  /** Sends bids for the waiters that need one. @param together whether a bid may ask although others ask as well. */
  #pump(line: Line, { together }: { readonly together: boolean } = { together: false }): void {
    while (line.needsBid(together)) this.session.detach(this.#ask(line, line.newBid(together)));
  }

  /** A waiter has gone without the lock. Others may go with it, by the same signal, close or answer: nothing is asked for them. */
  async #pumpLater(line: Line): Promise<void> {
    await undefined;
    this.#pump(line);
    line.review();
    this.#tidy(line);
  }

  /** Asks the table until its call has the lock, or another bid watches the lock. Never rejects. */
  async #ask(line: Line, bid: LineBid): Promise<void> {
    const { call } = bid;
    try {
      await call.inContext(() => this.#acquire(line, bid));
    } catch (error) {
      call.fail(error);
    }
    this.#dismiss(line, bid);
  }

  async #acquire(line: Line, bid: LineBid): Promise<void> {
    for (;;) {
      const own = await line.acquire(bid);
      if (own === undefined || (await this.#granted(line, own, bid))) break;
    }
    // Its call may stand behind the watcher, or behind a lease of this process.
    bid.call.stay();
  }

  #dismiss(line: Line, bid: LineBid): void {
    line.dismiss(bid);
    this.#pump(line);
    line.review();
    this.#tidy(line);
  }

  /**
   * A bid was granted a lease, or may join one. It is for the bid's call or, if that has had another answer, for the first waiter, if
   * the lease admits that one.
   * @returns false if the lease was over, and has been given back: then the bid asks again. @throws what ended the call.
   */
  async #granted(line: Line, own: Tenure, bid: LineBid): Promise<boolean> {
    const { lease, resource } = own;
    if (lease.renewals.haveServed) return this.#join(line, own, bid);
    if (!(await lease.renewals.secure(bid, { mayLapse: resource.kind.rowDecides }))) {
      this.session.detach(this.#unplaced(own));
      bid.withdrawn.throwIfAborted();
      for (const uuid of uuidsOf(lease.row)) this.session.sightings.disown(uuid, lease.row.attempt);
      // A lease that was renewed once was not lost because the table is slow.
      if (guardOf(lease.row) === undefined) leaseWasOver(bid, resource);
      await bid.again();
      return false;
    }
    line.keep(own, bid);
    // After a loss, the next section of this process may ask the table at once: a lost lease excludes nobody.
    lease.keep(() => this.#retire(own, false));
    // The bid has its lease: otherwise whoever comes as its waiter is settled would find it asking.
    line.dismiss(bid);
    if (this.#begin(own, bid.asker, lease.row.acquired, lease.row.tick)) this.#advance(line, own);
    else this.session.detach(this.#unplaced(own));
    return true;
  }

  /** The bid's waiter, and those behind it, join a lease that others have begun on. @returns whether they have. */
  #join(line: Line, own: Tenure, bid: LineBid): boolean {
    bid.withdrawn.throwIfAborted();
    if (!line.leases.has(own) || !own.admits(bid.asker.request)) return false;
    line.dismiss(bid);
    this.#begin(own, bid.asker, this.#now);
    this.#advance(line, own);
    return true;
  }

  get #now(): number {
    return displayTime(boundsOf(this.session.clock));
  }

  /** A section begins on a lease. @returns false if its caller has had another answer. */
  #begin(own: Tenure, waiter: Waiter, acquired: number, tick?: number): boolean {
    const { call, request, settle } = waiter;
    // Check and settle in one synchronous step: a lock is either handed out or given back, never forgotten.
    if (call.isSettled) return false;
    const { session } = this;
    const { lease, resource } = own;
    const end = (_ended: Lease, section: LeaseUser) => this.#sectionEnded(own, section);
    const mayHandOff = resource.kind.rowDecides && own.request.flight === undefined;
    const lock = call.inContext(() => {
      const held = new HeldLock({ session, lease, acquired, tick, end, mayHandOff });
      settle(held);
      return held;
    });
    if (request.holdAtLeastMs > 0) lease.exit.holdAtLeast(request.holdAtLeastMs);
    // Report the end of the previous section before the beginning of this one.
    own.before?.tellEnd();
    own.before = undefined;
    call.inContext(() => lock.delivered({ call: call.number, waitedMs: call.waitedMs }));
    return true;
  }

  /** Whether the first waiter can use this lease. */
  #canPass({ leases, waiters: [first] }: Line, own: Tenure): boolean {
    return first !== undefined && leases.has(own) && own.admits(first.request);
  }

  /** Passes a lease to the first waiter, if it can use it and it is its turn. @returns whether a section has begun on it. */
  #pass(line: Line, own: Tenure): boolean {
    if (!this.#beginNext(line, own)) return false;
    this.#advance(line, own);
    return true;
  }

  /**
   * A section has begun on a lease. Where sections share a lease, all callers that asked while it was being taken begin on it at once.
   * Only then the next waiter gets a bid, and those behind it a place.
   */
  #advance(line: Line, own: Tenure): void {
    while (own.resource.kind.sectionsShareLease && this.#beginNext(line, own));
    line.review();
    this.#pump(line);
    line.changed();
  }

  #beginNext(line: Line, own: Tenure): boolean {
    const [first] = line.waiters;
    return this.#canPass(line, own) && line.admitsFirst && this.#begin(own, first as Standing, this.#now);
  }

  /** A section has ended. If it was the last on its lease, that passes to the next caller of this process, or is released. */
  async #sectionEnded(own: Tenure, section: LeaseUser): Promise<void> {
    const { lease, resource } = own;
    // Asked before any look: the lease may end during one, and the turn of this process was over all the same.
    const { stands } = lease;
    const { halfAt } = lease.exit.endingNow();
    if (!lease.endUse(section)) {
      if (lease.lost !== undefined) throw lease.lost;
      return;
    }
    const line = this.#line(resource);
    // After a section there is nobody to share it with: a caller that still waits does not fit, or this process has seen a writer.
    const mayPass = !resource.kind.sectionsShareLease && stands && this.#canPass(line, own);
    if (mayPass && (await line.mayPass(own, halfAt)) && (await this.#passOn(line, own, halfAt, section))) return;
    await this.#leave(own, stands, () => lease.exit.release());
  }

  /** Nobody has begun on a lease that was taken: it passes to the next caller of this process, or is given back. */
  async #unplaced(own: Tenure): Promise<void> {
    const { lease, resource } = own;
    const { stands } = lease;
    const line = this.#line(resource);
    // It passes on or goes back at once: nothing is asked of the table first. During an await, another caller could join a lease
    // that is about to be released.
    if (resource.kind.sectionsShareLease) {
      if (this.#pass(line, own)) return;
    } else if (stands && this.#canPass(line, own) && !this.#turns.isTurnOver(own)) {
      if (await this.#passOn(line, own, lease.exit.endingNow().halfAt)) return;
    }
    await this.#leave(own, stands, () => this.#giveBack(lease));
  }

  /**
   * Gives a lease back that nobody has begun on. The line waits for the release, since its next claim then finds the row free, but not
   * for one whose answer is overdue: whoever asks meanwhile takes the row over. @returns whether it was answered in time.
   */
  async #giveBack({ exit }: Lease): Promise<boolean> {
    const { clock, scheduler } = this.session;
    const answered = exit.giveBack().then(() => true);
    return (await answeredWithin(clock, scheduler.overdueMs, answered)) ?? false;
  }

  /**
   * Passes the lease to the next caller of this process, unless it takes too long: then that caller asks the table.
   * @returns whether a section has begun on it.
   */
  async #passOn(line: Line, own: Tenure, halfAt: number, section?: LeaseUser): Promise<boolean> {
    if (!own.isOpen || !(await own.lease.renewals.renewForNext(halfAt))) return false;
    if (section instanceof HeldLock) own.before = section;
    return this.#pass(line, own);
  }

  /**
   * The lease goes back to the table.
   * @param stands whether it stood when its last section ended. @param out returns false if its release is not answered yet.
   */
  async #leave(own: Tenure, stands: boolean, out: () => Promise<unknown>): Promise<void> {
    const { exit } = own.lease;
    let isFree = false;
    // A lock that no other host has wanted needs no record of turns.
    const endTurn = (): void => {
      if (stands && (!own.isOpen || this.session.contention !== undefined)) this.#turns.end(own);
    };
    // Others can come as soon as the row is free: if that is later than the end, their turn begins anew.
    exit.onLateRelease = endTurn;
    try {
      isFree = (await out()) !== false && stands && exit.hold === undefined;
    } finally {
      endTurn();
      this.#retire(own, isFree);
    }
  }

  /** No further section of this process begins on the lease, so the next caller may ask the table. */
  #retire(own: Tenure, isFree: boolean): void {
    own.resource.kind.ended(own, isFree);
    const line = this.#line(own.resource);
    line.leases.delete(own);
    this.#pump(line);
    this.#tidy(line);
  }

  #line(resource: Resource): Line {
    const { permits, settings } = resource;
    const key = lineKeyOf(resource);
    let line = this.#lines.get(key);
    if (line === undefined) {
      line = settings.fair ? this.#fairQueue.newLine(resource) : new Line(this.session, this.#turns, resource);
      this.#lines.set(key, line);
    }
    // Where fair callers know of different numbers of permits, the largest counts.
    line.capacity = Math.max(line.capacity, permits);
    return line;
  }

  /** Forgets a line that is empty, unless its lock is one of a few: most locks are taken again and again. */
  #tidy(line: Line): void {
    if (!line.tidy() || (this.#lines.size <= MOST_KEPT && !line.resource.settings.fair)) return;
    const key = lineKeyOf(line.resource);
    if (this.#lines.get(key) === line) this.#lines.delete(key);
  }
}

/**
 * Fair callers and other callers of one lock stand in separate lines. So do others that ask for different numbers of permits, as who
 * needs fewer does not wait for who needs more, and those that know of different numbers of them: who knows of fewer does not see that
 * a further one is free.
 */
function lineKeyOf(resource: Resource): string {
  const { permits, settings, weight } = resource;
  return `${settings.fair ? "fair" : `${weight} of ${permits}`}/${resourceKey(resource)}`;
}
