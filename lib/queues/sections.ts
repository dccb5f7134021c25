import { HeldLock } from "../holding/handle.js";
import { Lease } from "../holding/lease.js";
import type { LockData, LockInfo } from "../lock-info.js";
import { displayTime } from "../protocol/lease-time.js";
import { infoOf } from "../protocol/row.js";
import { attemptMs, sendOnce } from "../session/requests.js";
import type { Session } from "../session/session.js";
import { giveBack } from "../taking/abandoned-claims.js";
import type { Acquisition, Target } from "../taking/acquisition.js";
import { claim, tryClaim } from "../taking/claim.js";
import type { Once } from "../taking/known-time.js";
import { tooSlow } from "../taking/too-slow.js";
import { Wait } from "../taking/wait.js";
import { isWanted, watch } from "../taking/watch.js";
import { boundsOf } from "../time/clock.js";
import { FairQueue, type SectionTry } from "./fair-queue.js";
import { LocalLine } from "./local-line.js";

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

/** After a process found that another host waits, it asks for the lock again only after so many of the longest polls. */
const STAND_BACK_POLLS = 2;

/**
 * Gives the sections of this process their locks: through the local line of the name, either with a lease that the
 * section before passed on, which takes no request, or with one that is taken from the table.
 *
 * So that other hosts get their turn, a passed lease is looked at every `handOverMs`: if another host has marked its
 * row as wanted, it is released, and this process stands back for a moment. Fair mutexes do none of this: each of their
 * sections has a place in the queue that all hosts share.
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
    const handOut = (acquisition: Acquisition) => this.#handOut(acquisition, request, wait, deliver);
    if (target.settings.fair) return await this.#fairQueue.acquire({ target, data, wait, handOut });
    const line = this.#line(target.at.name);
    if (line.front !== undefined) wait.sawLocally(() => infoOfFront(line.front, wait, this.session.owner));
    let standBackUntil: number | undefined;
    try {
      for (;;) {
        const turn = await line.turn(wait, (lease) => fits(lease, request));
        if (turn.kind === "lead") {
          standBackUntil = turn.standBackUntil;
          await this.#standBack(standBackUntil, wait);
          while (!(await handOut(await this.#acquire(target, data, wait)))) wait.throwIfEnough();
          return;
        }
        const acquired = displayTime(boundsOf(this.session.clock));
        if (turn.lease.stands && this.#deliver(turn.lease, acquired, wait, deliver)) return;
        // The caller is gone, or the lease was lost meanwhile: it goes to the next section, or is released.
        this.session.detach(this.#end(turn.lease));
        wait.throwIfEnough();
      }
    } finally {
      // If this call gives up, the next one stands back in its place.
      line.leave(wait, standBackUntil);
      this.#tidy(target.at.name);
    }
  }

  /** One try. @returns whether a lock was delivered; if not, why, and the wait knows who is in the way. */
  async tryServe(request: SectionRequest, wait: Wait, deliver: Deliver): Promise<"delivered" | "held" | "done"> {
    const { target, once } = request;
    const line = this.#line(target.at.name);
    if (!target.settings.fair && !line.tryTurn(wait)) {
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
      this.#tidy(target.at.name);
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
  async #acquire(target: Target, data: LockData | undefined, wait: Wait): Promise<Acquisition> {
    for (;;) {
      const result = await claim(this.session, target, wait, { data });
      if (result.kind === "granted") return result.granted;
      await watch(this.session, result.inTheWay[0], wait);
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
      this.#line(target.at.name).settle(wait, lease);
      // After a loss, the next section of this process may ask the table at once: a lost lease excludes nobody.
      lease.keep(() => this.#leave(lease));
      lease.holdAtLeast(holdAtLeastMs);
      if (this.#deliver(lease, lease.row.acquired, wait, deliver, acquisition.tick)) return true;
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
    const line = this.#line(lease.row.at.name);
    let standBackUntil: number | undefined;
    if (lease.stands && line.canPass(lease)) {
      lease.endSection();
      const isWanted = await this.#isWantedElsewhere(lease);
      if (!isWanted && (await lease.renewForNext()) && line.pass(lease)) return;
      const standBackMs = STAND_BACK_POLLS * lease.settings.poll.maxMs;
      if (isWanted) standBackUntil = this.session.clock.atLeast() + standBackMs;
    }
    try {
      await lease.release();
    } finally {
      this.#leave(lease, standBackUntil);
    }
  }

  /** One look at the row every `handOverMs`: half a read unit, and nothing where no lease is passed on. */
  async #isWantedElsewhere(lease: Lease): Promise<boolean> {
    const { clock, store } = this.session;
    const now = clock.atLeast();
    if (now - (this.#lookedAt.get(lease) ?? lease.takenAt) < lease.settings.handOverMs) return false;
    this.#lookedAt.set(lease, now);
    const { at } = lease.row;
    const look = { kind: "read", attemptMs: attemptMs(lease.settings.ttlMs) } as const;
    try {
      const row = await sendOnce(this.session, look, (signal) => store.read(at, { consistent: false }, signal));
      // Somebody who took our uuid off the row by force wants it, too.
      return row !== undefined && (row.uuid === undefined || isWanted(row, clock.wall()));
    } catch {
      // Unknown. The lease is kept: if the table is out of reach, its renewals find out.
      return false;
    }
  }

  async #standBack(until: number | undefined, wait: Wait): Promise<void> {
    const { clock } = this.session;
    if (until !== undefined && clock.atLeast() < until) await clock.sleep(until - clock.atLeast(), wait.enough);
  }

  #leave(lease: Lease, standBackUntil?: number): void {
    const { name } = lease.row.at;
    this.#lines.get(name)?.leave(lease, standBackUntil);
    this.#tidy(name);
  }

  #line(name: string): LocalLine<Lease> {
    const line = this.#lines.get(name) ?? new LocalLine<Lease>();
    this.#lines.set(name, line);
    return line;
  }

  /** Forgets a line that is empty. */
  #tidy(name: string): void {
    if (this.#lines.get(name)?.front === undefined) this.#lines.delete(name);
  }
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
