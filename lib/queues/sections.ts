import { HeldLock } from "../holding/handle.js";
import { Lease } from "../holding/lease.js";
import type { LockData, LockInfo } from "../lock-info.js";
import { displayTime } from "../protocol/lease-time.js";
import { infoOf } from "../protocol/row.js";
import type { Session } from "../session/session.js";
import { giveBack } from "../taking/abandoned-claims.js";
import type { Acquisition, Target } from "../taking/acquisition.js";
import { claim, tryClaim } from "../taking/claim.js";
import type { Once } from "../taking/known-time.js";
import { tooSlow } from "../taking/too-slow.js";
import { Wait } from "../taking/wait.js";
import { keptOutFrom, watch } from "../taking/watch.js";
import { boundsOf } from "../time/clock.js";
import { FairQueue, type SectionTry } from "./fair-queue.js";
import { LocalLine } from "./local-line.js";
import { look, standBack } from "./stand-back.js";

/** What a section asks of its lock. */
export interface SectionRequest {
  readonly target: Target;
  readonly data: LockData | undefined;
  /** For how long the lock stays taken at least; 0 for no longer than the section runs. */
  readonly holdAtLeastMs: number;
  /** In a try alone: a section that waits runs when its turn has come, whatever ran before. */
  readonly once?: Once | undefined;
}

/** Gives the caller its lock; false if the caller has had another answer in between. */
type Deliver = (lock: HeldLock) => boolean;

/**
 * Gives the sections of this process their locks: through the local line of the name, either with a lease that the
 * section before passed on, which takes no request, or with one that is taken from the table. Where the mutex is fair, the
 * {@link FairQueue} says when it is whose turn.
 *
 * Where it is not: so that other hosts get their turn, this process learns of their marks, whatever its sections ask for: each release shows
 * the row as it was, and a passed lease, which is not released, is looked at every `handOverMs`. After its turn (see
 * `session/contention.ts`) the lease is released, and this process stands back for a moment.
 */
export class Sections {
  readonly session: Session;
  readonly #lines = new Map<string, LocalLine<Lease>>();
  /** When a lease that is passed on was last looked at for a mark, on `atLeast`. */
  readonly #lookedAt = new WeakMap<Lease, number>();
  readonly #fairQueue: FairQueue;

  constructor(session: Session) {
    this.session = session;
    this.#fairQueue = new FairQueue(session);
  }

  /** Waits for a lock and delivers it. @throws what ended the wait. */
  async serve(request: SectionRequest, wait: Wait, deliver: Deliver): Promise<void> {
    const { target, data } = request;
    const { fair } = target.settings;
    const handOut = (acquisition: Acquisition) => this.#handOut(acquisition, request, wait, deliver);
    let line = this.#line(target);
    if (line.front !== undefined) wait.sawLocally(() => infoOfFront(line.front, wait, this.session.owner));
    try {
      for (;;) {
        // Where the lease was lost on its way, the line may have emptied, and been forgotten.
        line = this.#line(target);
        const coming = line.turn(wait, (lease) => fits(lease, request));
        if (fair) this.#fairQueue.attend(target);
        const turn = await coming;
        if (turn.kind === "lead") {
          const othersTurn = this.session.contention?.othersTurnOf(target.at.name);
          if (othersTurn !== undefined) await standBack(this.session, target, wait, othersTurn);
          if (fair) return await this.#fairQueue.lead({ target, data, wait, handOut });
          while (!(await handOut(await this.#acquire(request, wait)))) wait.throwIfEnough();
          return;
        }
        const acquired = displayTime(boundsOf(this.session.clock));
        const isDelivered = turn.lease.stands && this.#deliver(turn.lease, acquired, wait, deliver);
        if (fair) this.#begun(target);
        if (isDelivered) return;
        // The caller is gone, or the lease was lost meanwhile: it goes to the next section, or is released.
        this.session.detach(this.#end(turn.lease));
        wait.throwIfEnough();
      }
    } finally {
      line.leave(wait);
      this.#tidy(target);
    }
  }

  /** One try. @returns whether a lock was delivered; if not, why, and the wait knows who is in the way. */
  async tryServe(request: SectionRequest, wait: Wait, deliver: Deliver): Promise<"delivered" | "held" | "done"> {
    const { target, once } = request;
    const { name } = target.at;
    // A try cannot wait until others have had their turn. A tick comes but once, and so keeps nobody out.
    const isOthersTurn = once === undefined && this.session.contention?.othersTurnOf(name) !== undefined;
    if (isOthersTurn) return "held";
    const line = this.#line(target);
    if (!line.tryTurn(wait)) {
      wait.sawLocally(() => infoOfFront(line.front, wait, this.session.owner));
      return "held";
    }
    try {
      for (;;) {
        const result = await this.#tryClaim(request, wait);
        if (result.kind !== "granted") return result.kind;
        if (await this.#handOut(result.granted, request, wait, deliver)) return "delivered";
        // A tick is granted once. Asked for again it would be done, and nothing has run.
        if (once !== undefined || this.session.clock.atMost() >= wait.until()) throw tooSlow(target);
      }
    } finally {
      line.leave(wait);
      this.#tidy(target);
    }
  }

  /**
   * Waits until the row is taken.
   *
   * 1. Try to take it. A refusal shows the row, so nothing needs to be read.
   * 2. Watch it until it looks free; go on with 1. A read is a hint: the conditional write decides.
   *
   * @throws the store's error if it is not transient, or if the table never answered; what ended the wait.
   */
  async #acquire({ target, data }: SectionRequest, wait: Wait): Promise<Acquisition> {
    const line = this.#line(target);
    for (;;) {
      const result = await claim(this.session, target, wait, { data });
      if (result.kind === "granted") return result.granted;
      line.keptOut ??= keptOutFrom(this.session);
      await watch(this.session, result.inTheWay[0], wait, { keptOut: line.keptOut });
    }
  }

  async #tryClaim({ target, data, once }: SectionRequest, wait: Wait): Promise<SectionTry> {
    if (target.settings.fair) return await this.#fairQueue.tryAcquire({ target, data, once, wait });
    return await tryClaim(this.session, wait, () => claim(this.session, target, wait, { data, once }));
  }

  /** Delivers a lock that was taken, if it stands and the caller still waits; else gives it back. @throws what ended the wait. */
  async #handOut(
    acquisition: Acquisition,
    { target, holdAtLeastMs }: SectionRequest,
    wait: Wait,
    deliver: Deliver,
  ): Promise<boolean> {
    const lease = new Lease(this.session, acquisition);
    if ((await lease.secure()) && !wait.isOver) {
      this.session.contention?.begins(target.at.name, lease.takenAt);
      this.#line(target).settle(wait, lease);
      // After a loss, the next section of this process may ask the table at once: a lost lease excludes nobody.
      lease.keep(() => this.#leave(lease));
      lease.holdAtLeast(holdAtLeastMs);
      const isDelivered = this.#deliver(lease, lease.row.acquired, wait, deliver, acquisition.tick);
      if (target.settings.fair) this.#begun(target);
      if (isDelivered) return true;
      // Nothing has run on it.
      lease.holdAtLeast(0);
      this.session.detach(this.#end(lease));
    } else {
      this.session.detach(giveBack(this.session, acquisition));
    }
    wait.throwIfEnough();
    wait.leaseWasOver(target);
    return false;
  }

  #deliver(lease: Lease, acquired: number, wait: Wait, deliver: Deliver, tick?: number): boolean {
    const end = (ended: Lease) => this.#end(ended);
    const lock = new HeldLock({ session: this.session, lease, acquired, tick, end });
    if (!deliver(lock)) return false;
    lock.delivered(wait);
    return true;
  }

  /** A section is over: its lease goes to the next of this process, or back to the table. */
  async #end(lease: Lease): Promise<void> {
    const { settings, stands } = lease;
    const { name } = lease.row.at;
    const line = this.#line(targetOf(lease));
    let isForced = false;
    // Where the mutex is fair, the queue says whose turn it is.
    const isOver = (): boolean => !settings.fair && (isForced || this.#isTurnOver(lease));
    if (stands && line.canPass(lease)) {
      lease.endSection();
      if (!settings.fair) isForced = await this.#look(lease);
      const mayPass = settings.fair ? await this.#fairQueue.mayPass(lease) : !isOver();
      if (mayPass && (await lease.renewForNext()) && this.#pass(lease)) return;
    }
    try {
      await lease.release();
    } finally {
      if (stands && isOver()) this.session.contended().giveTurn(name, settings.poll.maxMs);
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
    return this.session.contention?.isTurnOver(row.at.name, settings.handOverMs) ?? false;
  }

  /** The first who waits may have gone meanwhile, and it may not be the turn of the one behind. */
  #pass(lease: Lease): boolean {
    const target = targetOf(lease);
    if (target.settings.fair && !this.#fairQueue.party(target).isTurn) return false;
    return this.#line(target).pass(lease);
  }

  #leave(lease: Lease): void {
    const target = targetOf(lease);
    this.#line(target).leave(lease);
    this.#tidy(target);
  }

  /** A fair section has begun, or its caller was gone: its place is needed no longer, or those behind it need one. */
  #begun(target: Target): void {
    this.#fairQueue.tidy(target.at.name);
    this.#fairQueue.attend(target);
  }

  /** Fair sections stand in another line than those of mutexes of the name that are not. */
  #line(target: Target): LocalLine<Lease> {
    const { name } = target.at;
    if (target.settings.fair) return this.#fairQueue.party(target).line;
    const line = this.#lines.get(name) ?? new LocalLine<Lease>();
    this.#lines.set(name, line);
    return line;
  }

  /** Forgets a line that is empty. */
  #tidy({ at: { name }, settings: { fair } }: Target): void {
    if (fair) this.#fairQueue.tidy(name);
    else if (this.#lines.get(name)?.front === undefined) this.#lines.delete(name);
  }
}

function targetOf({ row: { at }, settings }: Lease): Target {
  return { at, settings };
}

/** What a lease is kept by. */
const KEPT_BY = [
  ...(["ttlMs", "renewEveryMs", "safetyMarginMs", "autoRenew", "maxHoldMs"] as const),
  ...(["releaseWithinMs", "handOverMs", "fencing"] as const),
];

/**
 * Whether a section may run on a lease that another took: it would keep it in the same way, with no data of its own,
 * and neither the section before nor this one holds the lock for longer than it runs.
 */
function fits(lease: Lease, { target, data, holdAtLeastMs }: SectionRequest): boolean {
  if (data !== undefined || lease.row.mayHaveData || holdAtLeastMs > 0 || lease.hasMinimumHold) return false;
  return KEPT_BY.every((option) => target.settings[option] === lease.settings[option]);
}

/** Who holds the lock, as the front of the line knows it: by its own lease, or by the row that its wait has seen. */
function infoOfFront(front: object | undefined, asking: Wait, owner: string): LockInfo | undefined {
  if (front instanceof Wait) return front === asking ? undefined : front.holder;
  if (!(front instanceof Lease)) return undefined;
  const { at, uuid, data, tick, acquired, expires, settings } = front.row;
  return infoOf({ ...at, uuid, owner, acquired, expires, ttlMs: settings.ttlMs, data, tick });
}
