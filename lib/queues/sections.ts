import { HeldLock } from "../holding/handle.js";
import type { Lease } from "../holding/lease.js";
import type { Section } from "../holding/term.js";
import { ExclusiveSide } from "../kinds/exclusive.js";
import { type Kind, type OwnLease, type Resource, resourceKey, type SectionRequest } from "../kinds/kind.js";
import { MutexKind } from "../kinds/mutex.js";
import { SemaphoreKind } from "../kinds/semaphore.js";
import { SharedSide } from "../kinds/shared.js";
import { displayTime } from "../protocol/lease-time.js";
import type { Session } from "../session/session.js";
import { type Claimed, type Refusal, tryClaim } from "../taking/claim.js";
import { guardOf, uuidsOf } from "../taking/row-lease.js";
import { leaseWasOver, tooSlow } from "../taking/too-slow.js";
import type { Wait } from "../taking/wait.js";
import { blockedFromNow } from "../taking/watch.js";
import { boundsOf } from "../time/clock.js";
import { type Call, type ClaimHow, fits } from "./call.js";
import { FairLine } from "./fair-line.js";
import { FairQueue } from "./fair-queue.js";
import { LocalLine } from "./local-line.js";
import { Turns } from "./turns.js";

/** Gives the caller its lock; false if the caller has had another answer in between. */
type Deliver = (lock: HeldLock) => boolean;

interface SectionCall extends Call {
  readonly deliver: Deliver;
}

/**
 * Gives the sections of this process their locks. Each call goes through the local line of its lock, and gets a lease that the
 * previous section passed on, which takes no request, or one that is taken from the table. If the lock is fair, the
 * {@link FairQueue} decides whose turn it is; otherwise {@link Turns} lets other hosts in.
 */
export class Sections {
  readonly session: Session;
  readonly kinds: Readonly<Record<"mutex" | "semaphore" | "exclusive" | "shared", Kind>>;
  readonly #lines = new Map<string, LocalLine<OwnLease>>();
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
    this.#fairQueue = new FairQueue(session);
    this.#turns = new Turns(session);
  }

  /** Waits for a lock and delivers it. @throws what ended the wait. */
  async serve(request: SectionRequest, wait: Wait, deliver: Deliver): Promise<void> {
    const { resource } = request;
    const call = this.#callFor(request, wait, deliver);
    if (!this.#line(resource).isEmpty) this.#sawLocally(resource, wait);
    try {
      if (this.#mayClaimAtOnce(resource) && (await this.#claimAtOnce(call))) return;
      const line = this.#line(resource);
      const leads = line.waitToLead(call);
      if (line instanceof FairLine) this.#fairQueue.drawForUnserved(line);
      await leads;
      await this.#lead(call);
    } finally {
      this.#line(resource).leave(call);
      this.#tidy(resource);
    }
  }

  /** One try. @returns whether a lock was delivered; if not, why, and the wait knows who is in the way. */
  async tryServe(request: SectionRequest, wait: Wait, deliver: Deliver): Promise<"delivered" | Refusal> {
    const { resource, once } = request;
    const call = this.#callFor(request, wait, deliver);
    // A try cannot wait until others have had their turn. A tick runs once, so a try for it keeps nobody out.
    if (once === undefined && this.#isOthersTurn(resource)) return "held";
    const line = this.#line(resource);
    // A try does not overtake callers of its own process that wait, unless they share the lock.
    const isBehind = line.first !== undefined || line.isFull;
    if (isBehind && (resource.settings.fair || !resource.kind.sectionsShareLease)) {
      this.#sawLocally(resource, wait);
      // The answer to the claim ahead tells who has the lock, for an error that names the holder.
      if (wait.namesHolder && wait.holder === undefined) await line.asking?.answered;
      return "held";
    }
    line.beginClaim();
    try {
      return await line.asks(wait, this.#tryClaims(line, call));
    } finally {
      line.endClaim();
      this.#tidy(resource);
    }
  }

  /** Claims again only for a lease that was over before it could be handed out. */
  async #tryClaims(line: LocalLine<OwnLease>, call: SectionCall): Promise<"delivered" | Refusal> {
    const { resource, wait, once } = call;
    for (;;) {
      const claim = () => tryClaim(wait, () => call.claim());
      const result = await (line instanceof FairLine ? this.#fairQueue.tryAcquire(line, call) : claim());
      if (result.kind !== "granted") return result.kind;
      if (await call.handOut(result.granted)) return "delivered";
      // A tick is granted once: another claim would be told that it is done, although nothing has run.
      const isTooLate = once !== undefined || this.session.clock.atMost() >= wait.until();
      if (isTooLate) throw tooSlow(resource.name, resource.settings);
    }
  }

  #callFor(request: SectionRequest, wait: Wait, deliver: Deliver): SectionCall {
    const { resource } = request;
    const fitting = (own: OwnLease): boolean => fits(own, request);
    const open = (): OwnLease | undefined => [...this.#line(resource).leases].findLast(fitting);
    const call: SectionCall = {
      ...request,
      ...{ wait, deliver, fits: fitting },
      take: (own) => own.lease.stands && this.#deliver(own, displayTime(boundsOf(this.session.clock)), call),
      claim: (how) => resource.kind.claim({ ...how, ...request, wait, open }),
      handOut: (own) => this.#handOut(own, call),
    };
    return call;
  }

  /** Whether a caller may claim without standing in line: nobody else waits, and no other caller could share its lease. */
  #mayClaimAtOnce(resource: Resource): boolean {
    if (resource.kind.sectionsShareLease || resource.settings.fair) return false;
    const line = this.#line(resource);
    return line.first === undefined && !line.isFull && !this.#isOthersTurn(resource);
  }

  #isOthersTurn({ at }: Resource): boolean {
    return this.session.contention?.othersTurnOf(at) !== undefined;
  }

  /**
   * Claims without standing in line, and leads the line if the claim is refused.
   * @returns false if another caller of this process leads.
   */
  async #claimAtOnce(call: SectionCall): Promise<boolean> {
    const line = this.#line(call.resource);
    let refused: Claimed<OwnLease> | undefined;
    let goesOn = false;
    const claim = async (): Promise<boolean> => {
      const result = await call.claim();
      if (result.kind === "granted") return await call.handOut(result.granted);
      refused = result;
      return false;
    };
    line.beginClaim();
    try {
      if (await line.asks(call.wait, claim())) return true;
      goesOn = true;
    } finally {
      if (!goesOn) line.endClaim();
    }
    if (!line.endClaimAndLead(call)) return false;
    await this.#lead(call, refused);
    return true;
  }

  /**
   * Waits until the lock is taken, for the call that leads the line.
   *
   * 1. Try to take it. A refusal shows the row, so nothing needs to be read.
   * 2. Watch it until it looks free; go on with 1. A read is a hint: the conditional write decides.
   *
   * @param refused the outcome of a claim that has just failed.
   * @throws the store's error if it is not transient, or if the table never answered; what ended the wait.
   */
  async #lead(call: SectionCall, refused?: Claimed<OwnLease>): Promise<void> {
    const { resource, wait } = call;
    await this.#turns.standBack(resource, wait);
    const line = this.#line(resource);
    if (line instanceof FairLine) return await this.#fairQueue.lead(line, call);
    for (let result = refused, seen: ClaimHow["seen"]; ; result = undefined) {
      result ??= await call.claim({ seen });
      seen = undefined;
      if (result.kind === "granted") {
        if (await call.handOut(result.granted)) return;
        wait.endSignal.throwIfAborted();
        continue;
      }
      line.blocked ??= blockedFromNow(this.session);
      seen = await resource.kind.watch(resource, result.inTheWay, wait, line.blocked);
      await this.#turns.standBack(resource, wait);
    }
  }

  /**
   * Delivers a lock that was taken or joined, if its lease stands. If the caller has stopped waiting, the lease passes to the next
   * caller of this process. @returns whether it was delivered; if not, it has been given back. @throws what ended the wait.
   */
  async #handOut(own: OwnLease, call: SectionCall): Promise<boolean> {
    const { lease, resource } = own;
    const { wait } = call;
    const line = this.#line(resource);
    if (lease.renewals.haveServed) {
      wait.endSignal.throwIfAborted();
      if (lease.stands) line.settle(call, own);
      if (!call.take(own)) return false;
      this.#share(own);
      return true;
    }
    const isSecure = await lease.renewals.secure(wait, { mayLapse: resource.kind.rowDecides });
    if (isSecure && (!wait.endSignal.aborted || line.isAwaited(call))) {
      line.settle(call, own);
      // After a loss, the next section of this process may ask the table at once: a lost lease excludes nobody.
      lease.keep(() => this.#retire(own, false));
      own.isFlight = call.flight !== undefined;
      if (this.#deliver(own, lease.row.acquired, call, lease.row.tick)) {
        this.#share(own);
        return true;
      }
    }
    this.session.detach(this.#end(own));
    wait.endSignal.throwIfAborted();
    for (const uuid of uuidsOf(lease.row)) wait.sightings.abandon(uuid, lease.row.attempt);
    // A lease that was renewed once was not lost because the table is slow.
    if (guardOf(lease.row) === undefined) leaseWasOver(wait, resource);
    await wait.pacing.again();
    return false;
  }

  /**
   * Where sections share a lease, all callers that asked while it was being taken begin on it at once. It is released when the
   * last of their sections ends.
   * @returns whether a section has begun.
   */
  #share(own: OwnLease): boolean {
    let hasBegun = false;
    while (own.resource.kind.sectionsShareLease && this.#line(own.resource).pass(own)) hasBegun = true;
    return hasBegun;
  }

  #deliver(own: OwnLease, acquired: number, call: SectionCall, tick?: number): boolean {
    const { resource, wait, deliver, holdAtLeastMs } = call;
    const { lease } = own;
    const end = (_ended: Lease, section: Section) => this.#end(own, section);
    const mayHandOff = resource.kind.rowDecides && !own.isFlight;
    const lock = new HeldLock({ session: this.session, lease, acquired, tick, end, mayHandOff });
    const isDelivered = deliver(lock);
    if (isDelivered) {
      if (holdAtLeastMs > 0) lease.exit.holdAtLeast(holdAtLeastMs);
      // Report the end of the previous section before the beginning of this one.
      own.before?.tellEnd();
      own.before = undefined;
      lock.delivered(wait);
    } else {
      lease.endSection(lock);
    }
    const line = this.#line(resource);
    if (line instanceof FairLine) {
      // A place may not be needed any more, or the callers behind it may need one.
      line.tidy();
      this.#fairQueue.drawForUnserved(line);
    }
    return isDelivered;
  }

  /** A section has ended, or never began: its lease passes to the next caller of this process, or goes back to the table. */
  async #end(own: OwnLease, section?: Section): Promise<void> {
    const { lease } = own;
    const { stands } = lease;
    if (section !== undefined && !lease.endSection(section)) {
      if (lease.lost !== undefined) throw lease.lost;
      return;
    }
    // Share before any await: during one, another caller could join a lease that is about to be released. After a section there
    // is nobody to share it with: a caller that still waits does not fit, or this process has seen a writer.
    if (section === undefined && this.#share(own)) return;
    if (!own.resource.kind.sectionsShareLease && (await this.#passOn(own, section))) return;
    let isFree = false;
    try {
      await (section === undefined ? lease.exit.giveBack() : lease.exit.release());
      isFree = stands && lease.exit.hold === undefined;
    } finally {
      // A lock that no other host has wanted needs no record of turns.
      if (stands && (own.isClosed || this.session.contention !== undefined)) this.#turns.end(own);
      this.#retire(own, isFree);
    }
  }

  /**
   * Passes the lease to the next caller of this process, unless other hosts go first. @returns whether a section has begun on it.
   */
  async #passOn(own: OwnLease, section: Section | undefined): Promise<boolean> {
    const line = this.#line(own.resource);
    if (!line.canPass(own)) return false;
    if (!(await this.#mayPass(line, own, section)) || own.isClosed) return false;
    if (!(await own.lease.renewals.renewForNext())) return false;
    if (section instanceof HeldLock) own.before = section;
    return line.pass(own);
  }

  /** A lease on which no section has begun passes on or goes back at once: nothing is asked of the table first. */
  #mayPass(line: LocalLine<OwnLease>, own: OwnLease, section: Section | undefined): boolean | Promise<boolean> {
    if (section === undefined) return !this.#turns.isOver(own);
    return line instanceof FairLine ? this.#fairQueue.mayPass(line, own) : this.#turns.mayPass(own);
  }

  /** No further section of this process begins on the lease, so the next caller may ask the table. */
  #retire(own: OwnLease, isFree: boolean): void {
    own.resource.kind.ended(own, isFree);
    this.#line(own.resource).leave(own);
    this.#tidy(own.resource);
  }

  #line(resource: Resource): LocalLine<OwnLease> {
    const { permits, settings } = resource;
    const key = lineKeyOf(resource);
    let line = this.#lines.get(key);
    if (line === undefined) {
      line = settings.fair ? this.#fairQueue.newLine(resource) : new LocalLine<OwnLease>(permits);
      this.#lines.set(key, line);
    }
    // Where callers know of different numbers of permits, the largest counts.
    line.capacity = Math.max(line.capacity, permits);
    return line;
  }

  /** Forgets a line that is empty. */
  #tidy(resource: Resource): void {
    const key = lineKeyOf(resource);
    if (this.#lines.get(key)?.tidy()) this.#lines.delete(key);
  }

  /**
   * Tells the wait who has the lock, as this process knows it: from its own latest lease, or from the row that the leader has seen.
   */
  #sawLocally(resource: Resource, wait: Wait): void {
    const line = this.#line(resource);
    wait.blocker.sawLocally(() => {
      const { leader, leases, asking } = this.#lines.get(lineKeyOf(resource)) ?? line;
      const own = [...leases].at(-1);
      if (own !== undefined) return own.lease.info;
      const ahead = [leader?.caller.wait, asking?.wait].filter((other) => other !== undefined && other !== wait);
      return ahead.map((other) => other?.seen).find((holder) => holder !== undefined);
    });
  }
}

/** Fair callers and other callers of one lock stand in separate lines. */
const lineKeyOf = (resource: Resource): string => `${resource.settings.fair ? "fair/" : ""}${resourceKey(resource)}`;
