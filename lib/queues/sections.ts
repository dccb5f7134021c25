import type { Ending } from "../holding/exit.js";
import { HeldLock } from "../holding/handle.js";
import type { Lease } from "../holding/lease.js";
import type { Section } from "../holding/term.js";
import { ExclusiveSide } from "../kinds/exclusive.js";
import { type Kind, type OwnLease, type Resource, resourceKey } from "../kinds/kind.js";
import { MutexKind } from "../kinds/mutex.js";
import { SemaphoreKind } from "../kinds/semaphore.js";
import { SharedSide } from "../kinds/shared.js";
import { displayTime } from "../protocol/lease-time.js";
import { awaitShared } from "../session/abort-listening.js";
import type { Session } from "../session/session.js";
import type { Refusal } from "../taking/claim.js";
import { guardOf, uuidsOf } from "../taking/row-lease.js";
import { leaseWasOver, tooSlow } from "../taking/too-slow.js";
import { boundsOf } from "../time/clock.js";
import { FairQueue } from "./fair-queue.js";
import { fits } from "./fits.js";
import { type Agent, Line, type Standing, type Waiter } from "./line.js";
import { Turns } from "./turns.js";

/**
 * Up to how many lines there are, one that is empty is kept for the next caller. Without this, a lock in memory takes a fifth more
 * CPU time, in collecting garbage.
 */
const MOST_KEPT = 16;

/**
 * Gives the sections of this process their locks. Each call stands in the line of its lock, and gets a lease that the previous
 * section passed on, which takes no request, or one that an agent of the line has taken from the table.
 *
 * `add` puts a call into its line; `#pump` sends an agent for it, which will `#ask`: `acquire` a lease, and `#handOut` that lease to
 * its waiter, whose section `#begin`s. When a section ends, `#end` passes its lease on or releases it.
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
    call.holderNow = () => standing.agent?.seen ?? line.holder;
    call.progressNow = () => line.progressOf(standing.agent);
    call.onOverdue = () => line.addOverdue(call);
    call.atEnd((failure) => {
      line.leave(standing, failure);
      this.#tidy(line);
    });
    if (isBehind) call.isBlocked();
    // A caller that could share the lease of another, or has to queue, waits for the outcome of that one's claim.
    this.#pump(line, { together: !kind.sectionsShareLease && !settings.fair && !line.isOthersTurn });
    // An agent keeps the process alive by its requests and pauses.
    if (standing.agent === undefined) call.stay();
    line.changed();
  }

  /** One try, which settles its call if it gets the lock. @returns otherwise why not; the call knows who is in the way. */
  async try(agent: Agent): Promise<Refusal | undefined> {
    const { call, request } = agent.asker;
    const { resource, once } = request;
    const line = this.#line(resource);
    try {
      // A try cannot wait until others have had their turn. A tick runs once, so a try for it keeps nobody out.
      if (once === undefined && line.isOthersTurn) {
        agent.waits(this.#turns.whyStandBack(resource));
        return "held";
      }
      // A try does not overtake callers of its own process that wait, unless they share the lock.
      while (line.isAheadOfTries && (resource.settings.fair || !resource.kind.sectionsShareLease)) {
        const { asking } = line;
        call.holderNow = () => agent.seen ?? (this.#lines.get(lineKeyOf(resource)) ?? line).holder ?? asking?.seen;
        if (!call.isOverdue || call.holder !== undefined) return "held";
        // Nobody knows yet who has the lock, so it may be free: this call shares the try of the one ahead.
        call.progressNow = () => line.progressOf(undefined);
        line.addOverdue(call);
        await awaitShared(agent.endSignal, line.reviewed());
        if (call.holder !== undefined) return "held";
        call.progressNow = () => agent;
      }
      line.enter(agent);
      return await this.#try(line, agent);
    } finally {
      this.#dismiss(line, agent);
    }
  }

  /** Claims again only for a lease that was over before it could be handed out. */
  async #try(line: Line, agent: Agent): Promise<Refusal | undefined> {
    const { resource, once } = agent.asker.request;
    for (;;) {
      const result = await line.tryAcquire(agent);
      if (result.kind !== "granted") return result.kind;
      if (await this.#handOut(line, result.granted, agent)) return undefined;
      // A tick is granted once: another claim would be told that it is done, although nothing has run.
      const isTooLate = once !== undefined || this.session.clock.atMost() >= agent.until();
      if (isTooLate) throw tooSlow(resource.name, resource.settings);
    }
  }

  /** Sends agents for the waiters that need one. @param together whether an agent may ask although others ask as well. */
  #pump(line: Line, { together }: { readonly together: boolean } = { together: false }): void {
    while (line.needsAgent(together)) this.session.detach(this.#ask(line, line.newAgent(together)));
  }

  /**
   * Asks the table until a waiter has its lock. A failure is that of the waiter which was asked for when the attempt began: if that
   * one has gone meanwhile, the agent asks again for the present one. Never rejects.
   */
  async #ask(line: Line, agent: Agent): Promise<void> {
    for (let isDone = false; !isDone && !agent.endSignal.aborted; ) {
      const { asker } = agent;
      try {
        isDone = await asker.call.inContext(() => this.#acquire(line, agent));
      } catch (error) {
        if (!agent.endSignal.aborted && agent.asker === asker) asker.call.fail(error);
      }
    }
    this.#dismiss(line, agent);
  }

  /** @returns whether the agent is done. */
  async #acquire(line: Line, agent: Agent): Promise<boolean> {
    const own = await line.acquire(agent);
    if (own !== undefined) return await this.#handOut(line, own, agent);
    // Another agent watches the lock: its waiter stands behind that agent's.
    agent.call.stay();
    return true;
  }

  #dismiss(line: Line, agent: Agent): void {
    line.dismiss(agent);
    this.#pump(line);
    line.review();
    this.#tidy(line);
  }

  /**
   * Gives a lease that was taken or joined to the waiter that it was taken for. If that one has gone, the lease passes to the next
   * waiter, or goes back.
   * @returns whether the agent is done: false if the lease was over, and has been given back. @throws what ended the wait.
   */
  async #handOut(line: Line, own: OwnLease, agent: Agent): Promise<boolean> {
    const { lease, resource } = own;
    if (lease.renewals.haveServed) return this.#join(line, own, agent);
    const within = { endSignal: agent.endSignal, until: agent.requestEnds() };
    const isSecure = await lease.renewals.secure(within, { mayLapse: resource.kind.rowDecides });
    if (isSecure) {
      line.keep(own);
      // After a loss, the next section of this process may ask the table at once: a lost lease excludes nobody.
      lease.keep(() => this.#retire(own, false));
      const { asker } = agent;
      // The agent has its lease: otherwise whoever comes as its waiter is settled would find it asking.
      line.dismiss(agent);
      // If its waiter went as the lease was secured, the agent asks for another one, whom the lease may not fit.
      const hasBegun = asker.request === own.request && this.#begin(own, asker, lease.row.acquired, lease.row.tick);
      if (hasBegun) this.#advance(line, own);
      else this.session.detach(this.#end(own));
      // It may ask for another waiter already.
      asker.call.stay();
      return true;
    }
    this.session.detach(this.#end(own));
    agent.endSignal.throwIfAborted();
    for (const uuid of uuidsOf(lease.row)) this.session.sightings.abandon(uuid, lease.row.attempt);
    // A lease that was renewed once was not lost because the table is slow.
    if (guardOf(lease.row) === undefined) leaseWasOver(agent, resource);
    await agent.again();
    return false;
  }

  /** The agent's waiter, and those behind it, join a lease that others have begun on. @returns whether the agent is done. */
  #join(line: Line, own: OwnLease, agent: Agent): boolean {
    agent.endSignal.throwIfAborted();
    const { asker } = agent;
    if (!line.leases.has(own) || !fits(own, asker.request)) return false;
    line.dismiss(agent);
    this.#begin(own, asker, this.#now);
    this.#advance(line, own);
    return true;
  }

  get #now(): number {
    return displayTime(boundsOf(this.session.clock));
  }

  /** A section begins on a lease. @returns false if its caller has had another answer. */
  #begin(own: OwnLease, waiter: Waiter, acquired: number, tick?: number): boolean {
    const { call, request, settle } = waiter;
    // Check and settle in one synchronous step: a lock is either handed out or given back, never forgotten.
    if (call.isSettled) return false;
    const { session } = this;
    const { lease, resource } = own;
    const end = (_ended: Lease, section: Section) => this.#end(own, section);
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
  #canPass({ leases, waiters: [first] }: Line, own: OwnLease): boolean {
    return first !== undefined && leases.has(own) && fits(own, first.request);
  }

  /** Passes a lease to the first waiter, if it can use it and it is its turn. @returns whether a section has begun on it. */
  #pass(line: Line, own: OwnLease): boolean {
    if (!this.#beginNext(line, own)) return false;
    this.#advance(line, own);
    return true;
  }

  /**
   * A section has begun on a lease. Where sections share a lease, all callers that asked while it was being taken begin on it at once.
   * Only then the next waiter gets an agent, and those behind it a place.
   */
  #advance(line: Line, own: OwnLease): void {
    while (own.resource.kind.sectionsShareLease && this.#beginNext(line, own));
    this.#pump(line);
    line.review();
    line.changed();
  }

  #beginNext(line: Line, own: OwnLease): boolean {
    const [first] = line.waiters;
    return this.#canPass(line, own) && line.admitsFirst && this.#begin(own, first as Standing, this.#now);
  }

  /** A section has ended, or never began: its lease passes to the next caller of this process, or goes back to the table. */
  async #end(own: OwnLease, section?: Section): Promise<void> {
    const { lease } = own;
    const { stands } = lease;
    const ending = lease.exit.endingNow();
    if (section !== undefined && !lease.endSection(section)) {
      if (lease.lost !== undefined) throw lease.lost;
      return;
    }
    const line = this.#line(own.resource);
    const isShared = own.resource.kind.sectionsShareLease;
    // Share before any await: during one, another caller could join a lease that is about to be released. After a section there
    // is nobody to share it with: a caller that still waits does not fit, or this process has seen a writer.
    if (isShared && section === undefined && this.#pass(line, own)) return;
    if (!isShared && (await this.#passOn(line, own, ending, section))) return;
    let isFree = false;
    // A lock that no other host has wanted needs no record of turns.
    const endTurn = (): void => {
      if (stands && (own.admitsNobody || this.session.contention !== undefined)) this.#turns.end(own);
    };
    // Others can come as soon as the row is free: if that is later than the end, their turn begins anew.
    lease.exit.onLateRelease = endTurn;
    try {
      await (section === undefined ? lease.exit.giveBack() : lease.exit.release());
      isFree = stands && lease.exit.hold === undefined;
    } finally {
      endTurn();
      this.#retire(own, isFree);
    }
  }

  /**
   * Passes the lease to the next caller of this process, unless other hosts go first, or it takes too long: then that caller asks
   * the table. @returns whether a section has begun on it.
   */
  async #passOn(line: Line, own: OwnLease, { halfAt }: Ending, section: Section | undefined): Promise<boolean> {
    if (!this.#canPass(line, own) || !own.lease.stands) return false;
    // A lease on which no section has begun passes on or goes back at once: nothing is asked of the table first.
    const mayPass = section === undefined ? !this.#turns.isOver(own) : await line.mayPass(own, halfAt);
    if (!mayPass || own.admitsNobody) return false;
    if (!(await own.lease.renewals.renewForNext(halfAt))) return false;
    if (section instanceof HeldLock) own.before = section;
    return this.#pass(line, own);
  }

  /** No further section of this process begins on the lease, so the next caller may ask the table. */
  #retire(own: OwnLease, isFree: boolean): void {
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
