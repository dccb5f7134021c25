import { HeldLock } from "../holding/handle.js";
import type { Lease, Section } from "../holding/lease.js";
import { ExclusiveSide } from "../kinds/exclusive.js";
import { keyOf, type OwnLease, type Resource, type ResourceClaim } from "../kinds/kind.js";
import { MutexKind } from "../kinds/mutex.js";
import { SemaphoreKind } from "../kinds/semaphore.js";
import { SharedSide } from "../kinds/shared.js";
import type { LockData, LockInfo } from "../lock-info.js";
import { permitOf } from "../protocol/addresses.js";
import { displayTime } from "../protocol/lease-time.js";
import type { OthersTurn } from "../session/contention.js";
import type { Session } from "../session/session.js";
import { type Claimed, tryClaim } from "../taking/claim.js";
import type { Once } from "../taking/known-time.js";
import { tooSlow } from "../taking/too-slow.js";
import { Wait } from "../taking/wait.js";
import { keptOutFrom } from "../taking/watch.js";
import { boundsOf } from "../time/clock.js";
import { FairQueue } from "./fair-queue.js";
import { LocalLine, type Taker } from "./local-line.js";
import { look, standBack } from "./stand-back.js";

/** What a section asks of its lock. */
export interface SectionRequest {
  readonly resource: Resource;
  readonly data: LockData | undefined;
  /** For how long the lock stays taken at least; 0 for no longer than the section runs. */
  readonly holdAtLeastMs: number;
  /** In a try alone: a section that waits runs when its turn has come, whatever ran before. */
  readonly once?: Once | undefined;
}

/** Gives the caller its lock; false if the caller has had another answer in between. */
type Deliver = (lock: HeldLock) => boolean;

/** A call, and what it does with what it gets. */
interface Call {
  readonly request: SectionRequest;
  readonly wait: Wait;
  readonly deliver: Deliver;
}

/** What is known of the lock that is claimed, and whether its caller goes on waiting. */
type ClaimHow = Pick<ResourceClaim, "seen" | "ahead" | "until" | "waits">;

/**
 * Gives the sections of this process their locks: through the local line of the lock, either with a lease that the
 * section before passed on, which takes no request, or with one that is taken from the table. Where the lock is fair, the
 * {@link FairQueue} says when it is whose turn.
 *
 * Where it is not: so that other hosts get their turn, this process learns of their marks, whatever its sections ask for: each release shows
 * the row as it was, and a passed lease, which is not released, is looked at every `handOverMs`. After its turn (see
 * `session/contention.ts`) the lease is released, and this process stands back for a moment.
 */
export class Sections {
  readonly session: Session;
  readonly kinds: {
    readonly mutex: MutexKind;
    readonly semaphore: SemaphoreKind;
    readonly exclusive: ExclusiveSide;
    readonly shared: SharedSide;
  };
  readonly #lines = new Map<string, LocalLine<OwnLease>>();
  readonly #fairQueue: FairQueue;

  constructor(session: Session) {
    this.session = session;
    this.kinds = {
      mutex: new MutexKind(session),
      semaphore: new SemaphoreKind(session),
      exclusive: new ExclusiveSide(session),
      shared: new SharedSide(session),
    };
    this.#fairQueue = new FairQueue(session);
  }

  /** Waits for a lock and delivers it. @throws what ended the wait. */
  async serve(request: SectionRequest, wait: Wait, deliver: Deliver): Promise<void> {
    const { resource } = request;
    const call: Call = { request, wait, deliver };
    const taker: Taker<OwnLease> = {
      fits: (own) => fits(own, request),
      take: (own) => this.#begin(own, call),
    };
    if (!this.#line(resource).isEmpty) this.#sawLocally(resource, wait);
    try {
      if (this.#mayClaimAtOnce(resource) && (await this.#claimAtOnce(call, taker))) return;
      const line = this.#line(resource);
      if (line.tryLead(wait, taker)) return await this.#lead(call);
      const turn = line.waitToLead(wait, taker);
      if (resource.settings.fair) this.#fairQueue.attend(resource);
      await turn;
      await this.#lead(call);
    } finally {
      this.#line(resource).leave(wait);
      this.#tidy(resource);
    }
  }

  /** One try. @returns whether a lock was delivered; if not, why, and the wait knows who is in the way. */
  async tryServe(request: SectionRequest, wait: Wait, deliver: Deliver): Promise<"delivered" | "held" | "done"> {
    const { resource, once } = request;
    const call: Call = { request, wait, deliver };
    // A try cannot wait until others have had their turn. A tick comes but once, and so keeps nobody out.
    if (once === undefined && this.#othersTurnOf(resource) !== undefined) return "held";
    const line = this.#line(resource);
    // It overtakes nobody of its own process, unless they share the lock.
    const isBehind = line.first !== undefined || line.isFull;
    if (isBehind && (resource.settings.fair || !resource.kind.isJoined)) {
      this.#sawLocally(resource, wait);
      return "held";
    }
    const claim = (how: Omit<ClaimHow, "waits"> = {}) => this.#tryClaim(call, { ...how, waits: false });
    line.enter();
    try {
      for (;;) {
        const { fair } = resource.settings;
        const result = await (fair ? this.#fairQueue.tryAcquire({ resource, once, wait, claim }) : claim());
        if (result.kind !== "granted") return result.kind;
        if (await this.#handOut(result.granted, call)) return "delivered";
        // A tick is granted once. Asked for again it would be done, and nothing has run.
        const isTooLate = once !== undefined || this.session.clock.atMost() >= wait.until();
        if (isTooLate) throw tooSlow(resource.name, resource.settings);
      }
    } finally {
      line.exit();
      this.#tidy(resource);
    }
  }

  /** Whether a caller need not stand in line: nobody has to wait, and no other can begin on what it takes. */
  #mayClaimAtOnce(resource: Resource): boolean {
    if (resource.kind.isJoined || resource.settings.fair) return false;
    const line = this.#line(resource);
    return line.first === undefined && !line.isFull && this.#othersTurnOf(resource) === undefined;
  }

  /** Asks without standing in line, and leads where that was in vain. @returns false if another of this process leads. */
  async #claimAtOnce(call: Call, taker: Taker<OwnLease>): Promise<boolean> {
    const line = this.#line(call.request.resource);
    let result: Claimed<OwnLease> | undefined;
    let isDelivered = false;
    line.enter();
    try {
      result = await this.#claim(call, { waits: true });
      if (result.kind === "granted") isDelivered = await this.#handOut(result.granted, call);
    } catch (error) {
      line.exit();
      throw error;
    }
    if (isDelivered) {
      line.exit();
      return true;
    }
    if (!line.exitToLead(call.wait, taker)) return false;
    await this.#lead(call, result.kind === "granted" ? undefined : result);
    return true;
  }

  /**
   * Waits until the lock is taken, for the call that leads the line.
   *
   * 1. Try to take it. A refusal shows the row, so nothing needs to be read.
   * 2. Watch it until it looks free; go on with 1. A read is a hint: the conditional write decides.
   *
   * @param refused what a claim has come to just before.
   * @throws the store's error if it is not transient, or if the table never answered; what ended the wait.
   */
  async #lead(call: Call, refused?: Claimed<OwnLease>): Promise<void> {
    const { request, wait } = call;
    const { resource } = request;
    await this.#standBack(resource, wait);
    if (resource.settings.fair) {
      const claim = (how: Omit<ClaimHow, "waits">) => this.#tryClaim(call, { ...how, waits: true });
      const handOut = (own: OwnLease) => this.#handOut(own, call);
      return await this.#fairQueue.lead({ resource, wait, claim, handOut });
    }
    const line = this.#line(resource);
    for (let result = refused, how: ClaimHow = { waits: true }; ; result = undefined) {
      result ??= await this.#claim(call, how);
      how = { waits: true };
      if (result.kind === "granted") {
        if (await this.#handOut(result.granted, call)) return;
        wait.throwIfEnough();
        continue;
      }
      line.keptOut ??= keptOutFrom(this.session);
      how = { waits: true, seen: await resource.kind.watch(resource, result.inTheWay, wait, line.keptOut) };
      await this.#standBack(resource, wait);
    }
  }

  #othersTurnOf(resource: Resource): OthersTurn | undefined {
    return this.session.contention?.othersTurnOf(resource.at);
  }

  async #standBack(resource: Resource, wait: Wait): Promise<void> {
    const othersTurn = this.#othersTurnOf(resource);
    if (othersTurn !== undefined) await standBack(this.session, resource.settings, wait, othersTurn);
  }

  /** Claims once more where a refusal itself shows that the lock is free. */
  async #tryClaim(call: Call, how: ClaimHow): Promise<Claimed<OwnLease>> {
    return await tryClaim(this.session, call.wait, () => this.#claim(call, how));
  }

  async #claim({ request, wait }: Call, how: ClaimHow): Promise<Claimed<OwnLease>> {
    const { resource, data, once } = request;
    const open = (): OwnLease | undefined =>
      [...this.#line(resource).leases].findLast((own) => own.lease.stands && fits(own, request));
    return await resource.kind.claim({ ...how, resource, wait, data, once, open });
  }

  /**
   * Delivers a lock that was taken or joined, if it stands. What its caller does not want any more goes to those who wait
   * behind it. @returns whether it was delivered; if not, it has been given back. @throws what ended the wait.
   */
  async #handOut(own: OwnLease, call: Call): Promise<boolean> {
    const { lease, resource } = own;
    const { request, wait } = call;
    const line = this.#line(resource);
    if (lease.renewals.haveServed) {
      wait.throwIfEnough();
      if (lease.stands) line.settle(wait, own);
      if (!this.#begin(own, call)) return false;
      this.#share(own);
      return true;
    }
    const isSecure = await lease.renewals.secure(wait, { mayLapse: resource.kind.rowDecides });
    if (isSecure && (!wait.isOver || line.isAwaited(wait))) {
      this.session.contention?.begins(lease.row.at, lease.takenAt);
      line.settle(wait, own);
      // After a loss, the next section of this process may ask the table at once: a lost lease excludes nobody.
      lease.keep(() => this.#leave(own, false));
      lease.exit.holdAtLeast(request.holdAtLeastMs);
      if (this.#deliver(own, lease.row.acquired, call, lease.row.tick)) {
        this.#share(own);
        return true;
      }
      // Nothing has run on it.
      lease.exit.holdAtLeast(0);
      this.session.detach(this.#end(own));
    } else {
      resource.kind.left(own, false);
      this.session.detach(lease.exit.giveBack());
    }
    wait.throwIfEnough();
    // One that was renewed is lost for another reason than a slow table.
    if (lease.row.guard === undefined) wait.failures.leaseWasOver(resource);
    await wait.pacing.again();
    return false;
  }

  /** Begins one more section on a lease that others run on, or the next one on a lease that the section before has left. */
  #begin(own: OwnLease, call: Call): boolean {
    return own.lease.stands && this.#deliver(own, displayTime(boundsOf(this.session.clock)), call);
  }

  /**
   * Where sections share a lease, all who asked while it was on its way in begin on it at once: it goes with the last of them.
   * @returns whether one has.
   */
  #share(own: OwnLease): boolean {
    let hasBegun = false;
    while (own.resource.kind.isJoined && this.#pass(own)) hasBegun = true;
    return hasBegun;
  }

  #deliver(own: OwnLease, acquired: number, { request, wait, deliver }: Call, tick?: number): boolean {
    const { lease } = own;
    const { resource } = request;
    const end = (_ended: Lease, section: Section) => this.#end(own, section);
    const { rowDecides: mayHandOff } = resource.kind;
    const lock = new HeldLock({ session: this.session, lease, acquired, tick, end, mayHandOff });
    if (deliver(lock)) {
      // The section before tells of its end before this one tells of its beginning.
      own.before?.passedOn();
      own.before = undefined;
      lock.delivered(wait);
    } else {
      lease.endSection(lock);
    }
    // A place may be needed no longer, or those behind it need one.
    if (resource.settings.fair) {
      this.#fairQueue.tidy(resource);
      this.#fairQueue.attend(resource);
    }
    return lock.isDelivered;
  }

  /** A section is over, or has not begun: its lease goes to the next of this process, or back to the table. */
  async #end(own: OwnLease, section?: Section): Promise<void> {
    const { lease, resource } = own;
    const { settings, stands } = lease;
    if (section !== undefined && !lease.endSection(section)) {
      if (lease.lost !== undefined) throw lease.lost;
      return;
    }
    let isForced = false;
    // Where the lock is fair, the queue says whose turn it is.
    const isOver = (): boolean => !settings.fair && (isForced || this.#isTurnOver(lease));
    // At once: while something is awaited, a further caller could join a lease that is about to be released. After a section,
    // a caller that still waits did not fit, or its process has seen a writer.
    if (section === undefined && this.#share(own)) return;
    if (stands && !resource.kind.isJoined && this.#line(resource).canPass(own)) {
      // A lease that no section began on goes on at once, or back: the table is asked for nothing first.
      if (section !== undefined && !settings.fair) isForced = await this.#look(own);
      const mayPass = section !== undefined && settings.fair ? await this.#fairQueue.mayPass(own) : !isOver();
      if (mayPass && (await lease.renewals.renewForNext())) {
        if (section instanceof HeldLock) own.before = section;
        if (this.#pass(own)) return;
      }
    }
    let isFree = false;
    try {
      await lease.exit.release();
      isFree = stands && lease.exit.hold === undefined;
    } finally {
      if (stands && isOver()) this.session.contended().giveTurn(lease.row.at, settings.poll.maxMs);
      this.#leave(own, isFree);
    }
  }

  /**
   * One look for marks every `handOverMs`: half a read unit, and nothing where no lease is passed on.
   * @returns whether our uuid was taken off the row by force: whoever did that wants it, too.
   */
  async #look(own: OwnLease): Promise<boolean> {
    const { row, settings } = own.lease;
    const now = this.session.clock.atLeast();
    if (now - own.lookedAt < settings.handOverMs) return false;
    if (this.#isTurnOver(own.lease)) return false;
    own.lookedAt = now;
    const seen = await look(this.session, row);
    if (seen.row?.wanted !== undefined) this.session.contended().sees(seen.row);
    return seen.row !== undefined && seen.row.uuid === undefined;
  }

  #isTurnOver({ row, settings }: Lease): boolean {
    return this.session.contention?.isTurnOver(row.at, settings.handOverMs) ?? false;
  }

  /** Passes the lease to the first who waits, where it is that one's turn. @returns whether a section has begun on it. */
  #pass(own: OwnLease): boolean {
    const { lease, resource } = own;
    const isTurn = (): boolean => !resource.settings.fair || this.#fairQueue.waiters(resource).isTurn;
    return lease.stands && this.#line(resource).pass(own, isTurn);
  }

  /** No section of this process begins on the lease any more: another may ask the table. */
  #leave(own: OwnLease, isFree: boolean): void {
    own.resource.kind.left(own, isFree);
    this.#line(own.resource).leave(own);
    this.#tidy(own.resource);
  }

  /** Fair sections stand in another line than those of the same lock that are not. */
  #line(resource: Resource): LocalLine<OwnLease> {
    const { permits, settings } = resource;
    const key = keyOf(resource);
    const line = settings.fair
      ? this.#fairQueue.waiters(resource).line
      : (this.#lines.get(key) ?? new LocalLine<OwnLease>(permits));
    if (!settings.fair) this.#lines.set(key, line);
    // Where callers know of different numbers of permits, the largest counts.
    line.capacity = Math.max(line.capacity, permits);
    return line;
  }

  /** Forgets a line that is empty. */
  #tidy(resource: Resource): void {
    const key = keyOf(resource);
    if (resource.settings.fair) this.#fairQueue.tidy(resource);
    else if (this.#lines.get(key)?.isEmpty) this.#lines.delete(key);
  }

  #sawLocally(resource: Resource, wait: Wait): void {
    wait.blocker.sawLocally(() => this.#holderIn(this.#line(resource), wait));
  }

  /** Who has the lock, as the line knows it: by the lease that it has taken last, or by the row that the leader has seen. */
  #holderIn({ leader, leases }: LocalLine<OwnLease>, asking: Wait): LockInfo | undefined {
    const own = [...leases].at(-1);
    if (own !== undefined) return own.lease.row.info;
    return leader?.who instanceof Wait && leader.who !== asking ? leader.who.holder : undefined;
  }
}

/**
 * Whether a section may run on a lease that another took: it would keep it in the same way, with no data of its own,
 * and neither the section before nor this one holds the lock for longer than it runs.
 */
function fits({ lease, isClosed }: OwnLease, { resource, data, holdAtLeastMs }: SectionRequest): boolean {
  const { settings, kind, permits } = resource;
  if (isClosed) return false;
  if (data !== undefined || lease.row.mayHaveData || holdAtLeastMs > 0 || lease.exit.hold !== undefined) return false;
  if ((permitOf(lease.row.at.sort) ?? 0) >= permits) return false;
  // One that joins others would lose the lock with the first of them.
  if (kind.isJoined && settings.maxHoldMs !== Number.POSITIVE_INFINITY) return false;
  return KEPT_BY.every((option) => settings[option] === lease.settings[option]);
}

/** What a lease is kept by. */
const KEPT_BY = [
  ...(["ttlMs", "renewEveryMs", "safetyMarginMs", "autoRenew", "maxHoldMs"] as const),
  ...(["releaseWithinMs", "handOverMs", "fencing"] as const),
];
