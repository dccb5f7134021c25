import { HeldLock } from "../holding/handle.js";
import { Lease, type Section } from "../holding/lease.js";
import type { LockData, LockInfo } from "../lock-info.js";
import { permitOf, SHARED_MUTEX_QUEUE } from "../protocol/addresses.js";
import { displayTime } from "../protocol/lease-time.js";
import type { OthersTurn } from "../session/contention.js";
import type { Session } from "../session/session.js";
import { type Claimed, tryClaim } from "../taking/claim.js";
import type { Resource, ResourceClaim } from "../taking/kind.js";
import type { Once } from "../taking/known-time.js";
import { tooSlow } from "../taking/too-slow.js";
import { Wait } from "../taking/wait.js";
import { keptOutFrom } from "../taking/watch.js";
import { boundsOf } from "../time/clock.js";
import { FairQueue } from "./fair-queue.js";
import { LocalLine, type Taker } from "./local-line.js";
import { type ReadersLeft, readersLeave, WAITING_WRITER } from "./readers-leave.js";
import { SharedLeases } from "./shared-leases.js";
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

/** What is known of the lock that is claimed. */
type ClaimHow = Pick<ResourceClaim, "seen" | "ahead" | "until">;

interface Waiting {
  /** Whether a writer waits for the readers to leave. */
  readonly waits: boolean;
}

/** Of how many locks it is remembered which row this process has released last. */
const MOST_GUESSES = 1_000;

/** Where one caller of a process asks at a time, no other has a row or asks for it. */
const NOBODY: Set<string> = new Set();

/** A try takes nothing that others leave: it has its answer at once. */
const TAKES_NOTHING: Taker<Lease> = { fits: () => false, take: () => false };

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
  readonly #lines = new Map<string, LocalLine<Lease>>();
  readonly #sharedLeases: SharedLeases;
  /** What a lease was taken for. */
  readonly #resources = new WeakMap<Lease, Resource>();
  /** The section that has just left a lease which goes on to the next. */
  readonly #passing = new WeakMap<Lease, HeldLock>();
  /** When a lease that is passed on was last looked at for a mark, on `atLeast`. */
  readonly #lookedAt = new WeakMap<Lease, number>();
  /** The rows that callers of this process have, or ask for, by lock. */
  readonly #busy = new Map<string, { readonly rows: Set<string>; claims: number }>();
  /** The row that was released last, by lock. */
  readonly #guesses = new Map<string, string>();
  readonly #fairQueue: FairQueue;

  constructor(session: Session) {
    this.session = session;
    this.#sharedLeases = new SharedLeases(session);
    this.#fairQueue = new FairQueue(session);
  }

  /** Waits for a lock and delivers it. @throws what ended the wait. */
  async serve(request: SectionRequest, wait: Wait, deliver: Deliver): Promise<void> {
    const { resource } = request;
    const call: Call = { request, wait, deliver };
    const taker: Taker<Lease> = {
      fits: (lease) => this.#fits(lease, request),
      take: (lease) => this.#goOn(lease, call),
    };
    if (!this.#line(resource).isEmpty) this.#sawLocally(resource, wait);
    try {
      // Those that ask one at a time stand in line at once, in the order of their calls.
      if (this.#mayClaimAtOnce(resource) && (await this.#claimAtOnce(call, taker))) return;
      const line = this.#line(resource);
      if (line.tryTurn(wait, taker)) return await this.#lead(call);
      const turn = line.turn(wait, taker);
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
    if (!this.#mayTry(resource, wait)) {
      this.#sawLocally(resource, wait);
      return "held";
    }
    const claim = (how: ClaimHow = {}) => this.#tryClaim(call, { ...how, waits: false });
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
      this.#line(resource).leave(wait);
      this.#tidy(resource);
    }
  }

  /** Where several may have the lock, a try goes beside callers of this process that do not have to wait. */
  #mayTry(resource: Resource, wait: Wait): boolean {
    const { kind, settings } = resource;
    const line = this.#line(resource);
    // Nobody is overtaken in a fair line, not even by who would leave enough for those before.
    if (kind.id === "shared") return !settings.fair || !line.isLed;
    if (kind.isParallel) return !line.isFull && !line.isLed;
    return line.tryTurn(wait, TAKES_NOTHING);
  }

  /** Where callers may ask in parallel, and nobody has to wait. */
  #mayClaimAtOnce(resource: Resource): boolean {
    if (!resource.kind.isParallel || resource.settings.fair) return false;
    const line = this.#line(resource);
    return line.first === undefined && !line.isFull && this.#othersTurnOf(resource) === undefined;
  }

  /** Asks without standing in line, and leads where that was in vain. @returns false if another of this process leads. */
  async #claimAtOnce(call: Call, taker: Taker<Lease>): Promise<boolean> {
    const line = this.#line(call.request.resource);
    let result: Claimed<Lease> | undefined;
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
  async #lead(call: Call, refused?: Claimed<Lease>): Promise<void> {
    const { request, wait } = call;
    const { resource } = request;
    await this.#standBack(resource, wait);
    if (resource.settings.fair) {
      const claim = (how: ClaimHow) => this.#tryClaim(call, { ...how, waits: true });
      const handOut = (lease: Lease) => this.#handOut(lease, call);
      return await this.#fairQueue.lead({ resource, wait, claim, handOut });
    }
    const line = this.#line(resource);
    for (let result = refused, how: ClaimHow = {}; ; result = undefined) {
      result ??= await this.#claim(call, { ...how, waits: true });
      how = {};
      if (result.kind === "granted") {
        if (await this.#handOut(result.granted, call)) return;
        wait.throwIfEnough();
        continue;
      }
      line.keptOut ??= keptOutFrom(this.session);
      how = { seen: await resource.kind.watch(this.session, resource, result.inTheWay, wait, line.keptOut) };
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
  async #tryClaim(call: Call, how: ClaimHow & Waiting): Promise<Claimed<Lease>> {
    return await tryClaim(this.session, call.wait, () => this.#claim(call, how));
  }

  /** Takes a lease, or joins one. */
  async #claim({ request, wait }: Call, { waits, ...how }: ClaimHow & Waiting): Promise<Claimed<Lease>> {
    const { resource, data, once } = request;
    const { kind } = resource;
    if (kind.id === "shared") {
      const hasLooked = how.seen !== undefined;
      const fits = (lease: Lease): boolean => this.#fits(lease, request);
      const joined = await this.#sharedLeases.join(resource, wait, fits, { hasLooked });
      if (joined !== undefined) return joined;
    }
    const key = keyOf(resource);
    const claim = (busy: Set<string>) =>
      kind.claim(this.session, resource, wait, { ...how, data, once, busy, guess: this.#guesses.get(key) });
    const claimed = await (kind.isParallel ? this.#beside(key, claim) : claim(NOBODY));
    if (claimed.kind !== "granted") return claimed;
    const lease = new Lease(this.session, claimed.granted);
    this.#resources.set(lease, resource);
    return kind.id === "exclusive"
      ? await this.#withoutReaders(lease, wait, waits)
      : { kind: "granted", granted: lease };
  }

  /** The lease once no reader is left. It is given back at once if the wait ends first, or does not wait for them. */
  async #withoutReaders(lease: Lease, wait: Wait, waits: boolean): Promise<Claimed<Lease>> {
    const resource = this.#resourceOf(lease);
    let left: ReadersLeft | undefined;
    try {
      left = await readersLeave(this.session, resource, lease, wait, { waits });
    } finally {
      if (left === undefined || left.kind === "there") this.#giveBack(lease);
    }
    if (left.kind !== "there") return { kind: "granted", granted: lease };
    const { row } = left;
    return { kind: "held", inTheWay: [{ target: { at: row, settings: resource.settings }, row }] };
  }

  /** Delivers a lock that was taken, if it stands and the caller still waits; else gives it back. @throws what ended the wait. */
  async #handOut(lease: Lease, call: Call): Promise<boolean> {
    const { request, wait } = call;
    const { resource } = request;
    if (lease.hasServed) return this.#joins(lease, call);
    // Nobody else may be let in while a lease lapses, and where readers and writers look at one another, somebody might be.
    const isSecured = await lease.secure(wait, { mayLapse: resource.kind.queue !== SHARED_MUTEX_QUEUE });
    const line = this.#line(resource);
    // A caller that was served meanwhile leaves what it has taken to those behind it.
    const isWanted =
      !wait.isOver || (resource.kind.isParallel && line.first !== undefined && line.leader?.who !== wait);
    if (isSecured && isWanted) {
      this.session.contention?.begins(lease.row.at, lease.takenAt);
      line.settle(wait, lease);
      // After a loss, the next section of this process may ask the table at once: a lost lease excludes nobody.
      lease.keep(() => this.#leave(lease));
      lease.holdAtLeast(request.holdAtLeastMs);
      if (this.#deliver(lease, lease.row.acquired, call, lease.row.tick)) {
        if (resource.kind.id === "shared" && this.#fits(lease, request)) this.#sharedLeases.add(resource, lease);
        this.#share(lease, resource);
        return true;
      }
      // Nothing has run on it.
      lease.holdAtLeast(0);
      this.session.detach(this.#end(lease));
    } else {
      this.#giveBack(lease);
    }
    wait.throwIfEnough();
    // A writer may have lost what it has held for long, waiting for the readers: then there is nothing wrong with the table.
    const hadNoTime = lease.row.guard === undefined && (lease.lost === undefined || lease.lost.reason === "expired");
    if (resource.kind.id !== "exclusive" || hadNoTime) wait.leaseWasOver(resource);
    await wait.pacing.again();
    return false;
  }

  /** Begins one more section on a lease that others run on. */
  #joins(lease: Lease, call: Call): boolean {
    call.wait.throwIfEnough();
    if (!lease.stands) return false;
    const { resource } = call.request;
    this.#line(resource).settle(call.wait, lease);
    if (!this.#deliver(lease, displayTime(boundsOf(this.session.clock)), call)) return false;
    this.#share(lease, resource);
    return true;
  }

  /**
   * A reader's row has come in, or was joined, and no writer was seen: all who have asked meanwhile begin on it as well, at
   * once, because it goes with the last section on it.
   */
  #share(lease: Lease, resource: Resource): void {
    while (resource.kind.id === "shared" && this.#pass(lease, resource)) void 0;
  }

  /** Begins the next section on a lease that the section before has left. */
  #goOn(lease: Lease, call: Call): boolean {
    return lease.stands && this.#deliver(lease, displayTime(boundsOf(this.session.clock)), call);
  }

  #deliver(lease: Lease, acquired: number, { request, wait, deliver }: Call, tick?: number): boolean {
    const { resource } = request;
    const end = (ended: Lease, section: Section) => this.#end(ended, section);
    const isAlone = resource.kind.queue !== SHARED_MUTEX_QUEUE;
    const lock = new HeldLock({ session: this.session, lease, acquired, tick, end, mayHandOff: isAlone });
    lease.endSection(WAITING_WRITER);
    if (deliver(lock)) {
      // The section before tells of its end before this one tells of its beginning.
      this.#passing.get(lease)?.passedOn();
      this.#passing.delete(lease);
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

  /** A section is over: its lease goes to the next of this process, or back to the table. */
  async #end(lease: Lease, section?: Section): Promise<void> {
    const { settings, stands } = lease;
    const resource = this.#resourceOf(lease);
    if (section !== undefined && resource.kind.id === "shared" && !lease.endSection(section)) {
      if (lease.lost !== undefined) throw lease.lost;
      return;
    }
    const { at } = lease.row;
    const line = this.#line(resource);
    let isForced = false;
    // Where the lock is fair, the queue says whose turn it is.
    const isOver = (): boolean => !settings.fair && (isForced || this.#isTurnOver(lease));
    // A caller of the shared side that still waits did not fit, or its process has seen a writer.
    if (stands && resource.kind.id !== "shared" && line.canPass(lease)) {
      if (section !== undefined) lease.endSection(section);
      if (!settings.fair) isForced = await this.#look(lease);
      const mayPass = settings.fair ? await this.#fairQueue.mayPass(lease, resource) : !isOver();
      if (mayPass && (await lease.renewForNext()) && this.#pass(lease, resource, section)) return;
    }
    try {
      await lease.release();
      // One that was handed off, or stays taken for a while, is a bad guess.
      if (resource.kind.isParallel && stands && !lease.hasMinimumHold) this.#noteGuess(keyOf(resource), at.sort);
    } finally {
      if (stands && isOver()) this.session.contended().giveTurn(at, settings.poll.maxMs);
      this.#leave(lease);
    }
  }

  /**
   * One look for marks every `handOverMs`: half a read unit, and nothing where no lease is passed on.
   * @returns whether our uuid was taken off the row by force: whoever did that wants it, too.
   */
  async #look(lease: Lease): Promise<boolean> {
    const { clock } = this.session;
    const { row, settings, takenAt } = lease;
    const now = clock.atLeast();
    if (now - (this.#lookedAt.get(lease) ?? takenAt) < settings.handOverMs) return false;
    if (this.#isTurnOver(lease)) return false;
    this.#lookedAt.set(lease, now);
    const seen = await look(this.session, row);
    if (seen.row?.wanted !== undefined) this.session.contended().sees(seen.row);
    return seen.row !== undefined && seen.row.uuid === undefined;
  }

  #isTurnOver({ row, settings }: Lease): boolean {
    return this.session.contention?.isTurnOver(row.at, settings.handOverMs) ?? false;
  }

  #pass(lease: Lease, resource: Resource, before?: Section): boolean {
    const isTurn = (): boolean => !resource.settings.fair || this.#fairQueue.party(resource).isTurn;
    if (!isTurn()) return false;
    if (before instanceof HeldLock) this.#passing.set(lease, before);
    return lease.stands && this.#line(resource).pass(lease, isTurn);
  }

  /** The lease serves no section of this process any more. */
  #leave(lease: Lease): void {
    const resource = this.#resourceOf(lease);
    const { sort } = lease.row.at;
    const line = this.#line(resource);
    if (resource.kind.id === "shared") this.#sharedLeases.leave(lease);
    // One that was lost has left before, and another of this process may have its row since.
    if (line.leases.has(lease)) this.#busy.get(keyOf(resource))?.rows.delete(sort);
    line.leave(lease);
    this.#tidy(resource);
  }

  /** Nobody has begun on it, and nobody will. */
  #giveBack(lease: Lease): void {
    this.#sharedLeases.leave(lease);
    this.#busy.get(keyOf(this.#resourceOf(lease)))?.rows.delete(lease.row.at.sort);
    this.session.detach(lease.giveBack());
  }

  /** Fair sections stand in another line than those of the same lock that are not. */
  #line(resource: Resource): LocalLine<Lease> {
    const { kind, settings } = resource;
    const key = keyOf(resource);
    const capacity = kind.capacity?.(resource) ?? 1;
    const line = settings.fair
      ? this.#fairQueue.party(resource).line
      : (this.#lines.get(key) ?? new LocalLine<Lease>(capacity));
    if (!settings.fair) this.#lines.set(key, line);
    // Where callers know of different numbers of permits, the largest counts.
    line.capacity = Math.max(line.capacity, capacity);
    return line;
  }

  /** Forgets a line that is empty. */
  #tidy(resource: Resource): void {
    const key = keyOf(resource);
    if (resource.settings.fair) this.#fairQueue.tidy(resource);
    else if (this.#lines.get(key)?.isEmpty) this.#lines.delete(key);
    const busy = this.#busy.get(key);
    if (busy?.claims === 0 && busy.rows.size === 0) this.#busy.delete(key);
  }

  /** Claims beside other callers of this process, with the rows that they have, or ask for. */
  async #beside<T>(key: string, claim: (busy: Set<string>) => Promise<T>): Promise<T> {
    const busy = this.#busy.get(key) ?? { rows: new Set(), claims: 0 };
    this.#busy.set(key, busy);
    busy.claims += 1;
    try {
      return await claim(busy.rows);
    } finally {
      busy.claims -= 1;
    }
  }

  #noteGuess(key: string, sort: string): void {
    this.#guesses.delete(key);
    this.#guesses.set(key, sort);
    const [oldest = ""] = this.#guesses.keys();
    if (this.#guesses.size > MOST_GUESSES) this.#guesses.delete(oldest);
  }

  #resourceOf(lease: Lease): Resource {
    return this.#resources.get(lease) as Resource;
  }

  #sawLocally(resource: Resource, wait: Wait): void {
    wait.sawLocally(() => this.#holderIn(this.#line(resource), wait));
  }

  /** Who has the lock, as the line knows it: by the lease that it has taken last, or by the row that the leader has seen. */
  #holderIn({ leader, leases }: LocalLine<Lease>, asking: Wait): LockInfo | undefined {
    const lease = [...leases].at(-1);
    if (lease === undefined)
      return leader?.who instanceof Wait && leader.who !== asking ? leader.who.holder : undefined;
    return lease.row.info;
  }

  /**
   * Whether a section may run on a lease that another took: it would keep it in the same way, with no data of its own,
   * and neither the section before nor this one holds the lock for longer than it runs.
   */
  #fits(lease: Lease, { resource, data, holdAtLeastMs }: SectionRequest): boolean {
    const { settings, kind, permits } = resource;
    if (data !== undefined || lease.row.mayHaveData || holdAtLeastMs > 0 || lease.hasMinimumHold) return false;
    if ((permitOf(lease.row.at.sort) ?? 0) >= permits) return false;
    // One that joins others would lose the lock with the first of them.
    if (kind.id === "shared" && settings.maxHoldMs !== Number.POSITIVE_INFINITY) return false;
    return KEPT_BY.every((option) => settings[option] === lease.settings[option]);
  }
}

const keyOf = ({ kind, name }: Resource): string => `${kind.id}/${name}`;

/** What a lease is kept by. */
const KEPT_BY = [
  ...(["ttlMs", "renewEveryMs", "safetyMarginMs", "autoRenew", "maxHoldMs"] as const),
  ...(["releaseWithinMs", "handOverMs", "fencing"] as const),
];
