import { LockStoreError } from "../errors.js";
import { HeldLock } from "../holding/handle.js";
import { Lease } from "../holding/lease.js";
import type { LockData, LockInfo } from "../lock-info.js";
import { attemptMs, timeForPeople } from "../protocol/lease-time.js";
import { isWanted } from "../protocol/row.js";
import { bounded } from "../session/retry.js";
import type { Host } from "../session/session.js";
import { withdraw } from "../taking/abandoned-claims.js";
import type { Grant, Once, Target } from "../taking/grant.js";
import { Wait } from "../taking/wait.js";
import { acquire, tryAcquire } from "../taking/watch.js";
import { Turns } from "./fair-queue.js";
import { LocalQueue } from "./local-line.js";

/** What a section wants of its lock. */
export interface Request {
  readonly target: Target;
  readonly data: LockData | undefined;
  /** For how long the lock stays taken at least; 0 for no longer than the section runs. */
  readonly holdAtLeastMs: number;
  /** In a try alone: a section that waits runs when its turn has come, whatever ran before. */
  readonly once?: Once | undefined;
}

/** Gives the caller its lock; false if the caller has had another answer in between. */
type Deliver = (lock: HeldLock) => boolean;

/** How many of the longest polls a process stands back for, after it found that another host waits. */
const STAND_BACK_POLLS = 2;

/**
 * Gives the sections of this process their locks: through the local queue of the name, either with a lease that the
 * section before passed on, which takes no request, or with one that is taken from the table.
 *
 * So that other hosts get their turn, a passed lease is looked at every `handOverMs`: if another host has marked its
 * row as wanted, it is released, and this process stands back for a moment.
 *
 * A fair mutex has no part in this: each of its sections stands in the queue that all hosts share.
 */
export class Sections {
  readonly host: Host;
  readonly #queues = new Map<string, LocalQueue<Lease>>();
  /** When a lease that is passed on was last looked at for a mark, on `atLeast`. */
  readonly #lookedAt = new WeakMap<Lease, number>();

  readonly #turns: Turns;

  constructor(host: Host) {
    this.host = host;
    this.#turns = new Turns(host);
  }

  /** Waits for a lock and delivers it. @throws what ended the wait. */
  async serve(request: Request, wait: Wait, deliver: Deliver): Promise<void> {
    const { target } = request;
    if (target.settings.fair) {
      const handOut = (grant: Grant) => this.#handOut(grant, request, wait, deliver);
      return await this.#turns.acquire({ ...request, wait, handOut });
    }
    const queue = this.#queue(target.name);
    if (queue.occupant !== undefined) wait.sawLocally(() => infoOfOccupant(queue.occupant, wait, this.host.owner));
    let standBackUntil: number | undefined;
    try {
      for (;;) {
        const turn = await queue.turn(wait, (lease) => fits(lease, request));
        if (turn.kind === "lease") {
          if (turn.lease.stands && this.#hand(turn.lease, timeForPeople(this.host.clock), deliver)) return;
          // Nobody waits for it any more, or it was lost on the way: it goes on to the next, or back.
          this.host.detach(this.#end(turn.lease));
          wait.throwIfEnough();
          continue;
        }
        standBackUntil = turn.standBackUntil;
        await this.#standBack(standBackUntil, wait);
        wait.asksNow(turn.silentSince);
        for (;;) {
          const grant = await acquire(this.host, target, request.data, wait);
          if (await this.#handOut(grant, request, wait, deliver)) return;
        }
      }
    } finally {
      // Whoever gives up meanwhile leaves it to the next one to let the others in.
      queue.vacate(wait, { standBackUntil, silentSince: wait.silentSince });
      this.#tidy(target.name);
    }
  }

  /** One try. @returns whether a lock was delivered; if not, why, and the wait knows who is in the way. */
  async tryServe(request: Request, wait: Wait, deliver: Deliver): Promise<"delivered" | "held" | "done"> {
    const { target, data, once } = request;
    const { fair } = target.settings;
    const queue = this.#queue(target.name);
    if (!fair && !queue.tryTurn(wait)) {
      wait.sawLocally(() => infoOfOccupant(queue.occupant, wait, this.host.owner));
      return "held";
    }
    try {
      for (;;) {
        const result = fair
          ? await this.#turns.tryAcquire({ target, data, once, wait })
          : await tryAcquire(this.host, target, data, wait, { once });
        if (result.kind !== "granted") return result.kind;
        if (await this.#handOut(result, request, wait, deliver)) return "delivered";
        // A tick is granted once. Asked for again it would be done, and nothing has run.
        if (once !== undefined || this.host.clock.atMost() >= wait.until()) throw tooSlow(target);
      }
    } finally {
      queue.vacate(wait, { silentSince: wait.silentSince });
      this.#tidy(target.name);
    }
  }

  /**
   * Delivers a lock that was taken, if its lease still stands and the caller still waits; otherwise it is taken back.
   * @returns whether it was delivered. @throws what ended the wait.
   */
  async #handOut(grant: Grant, { target, holdAtLeastMs }: Request, wait: Wait, deliver: Deliver): Promise<boolean> {
    const lease = new Lease(this.host, target, grant);
    if ((lease.isSecure || (await lease.secure())) && !wait.isOver) {
      const queue = this.#queue(target.name);
      queue.settle(wait, lease);
      // A section that runs on a lost lease is in nobody's way but its own.
      lease.keep(() => this.#leave(lease));
      lease.holdAtLeast(holdAtLeastMs);
      if (this.#hand(lease, lease.acquired, deliver, grant.tick)) return true;
      // Nothing has run on it.
      lease.holdAtLeast(0);
      this.host.detach(this.#end(lease));
    } else {
      const { uuid } = lease;
      this.host.detach(withdraw(this.host, target, { ...grant, uuid }, { certain: true }));
    }
    wait.throwIfEnough();
    return false;
  }

  #hand(lease: Lease, acquired: number, deliver: Deliver, tick?: number): boolean {
    const { host } = this;
    return deliver(new HeldLock({ host, lease, owner: host.owner, acquired, tick, end: (ended) => this.#end(ended) }));
  }

  /** A section is over: its lease goes to the next of this process, or back to the table. */
  async #end(lease: Lease): Promise<void> {
    const queue = this.#queue(lease.name);
    let isWanted = false;
    if (lease.stands && queue.canPass(lease)) {
      lease.endSection();
      isWanted = await this.#isWantedElsewhere(lease);
      if (!isWanted && (await lease.renewForNext()) && queue.pass(lease)) return;
    }
    try {
      await lease.release();
    } finally {
      const standBackMs = STAND_BACK_POLLS * lease.settings.poll.maxMs;
      this.#leave(lease, isWanted ? this.host.clock.atLeast() + standBackMs : undefined);
    }
  }

  /** One look at the row every `handOverMs`: half a read unit, and nothing where no lease is passed on. */
  async #isWantedElsewhere(lease: Lease): Promise<boolean> {
    const { clock, store } = this.host;
    const now = clock.atLeast();
    if (now - (this.#lookedAt.get(lease) ?? lease.takenAt) < lease.settings.handOverMs) return false;
    this.#lookedAt.set(lease, now);
    try {
      const row = await bounded(clock, attemptMs(lease.settings.ttlMs), (signal) =>
        store.read(lease.name, { consistent: false }, signal),
      );
      // Somebody who took our uuid off the row by force wants it, too.
      return row !== undefined && (row.uuid === undefined || isWanted(row, clock.wall()));
    } catch {
      // Whether somebody waits is not known; the lease is, and its renewals tell when the table is out of reach.
      return false;
    }
  }

  async #standBack(until: number | undefined, wait: Wait): Promise<void> {
    const { clock } = this.host;
    if (until !== undefined && clock.atLeast() < until) await clock.sleep(until - clock.atLeast(), wait.enough);
  }

  #leave(lease: Lease, standBackUntil?: number): void {
    this.#queues.get(lease.name)?.vacate(lease, { standBackUntil });
    this.#tidy(lease.name);
  }

  #queue(name: string): LocalQueue<Lease> {
    const existing = this.#queues.get(name);
    if (existing !== undefined) return existing;
    const queue = new LocalQueue<Lease>();
    this.#queues.set(name, queue);
    return queue;
  }

  /** A queue that nobody stands in is forgotten. */
  #tidy(name: string): void {
    if (this.#queues.get(name)?.occupant === undefined) this.#queues.delete(name);
  }
}

/**
 * Whether a section may run on a lease that another took: it would keep it in the same way, with no data of its own,
 * and neither the section before nor this one holds the lock for longer than it runs.
 */
function fits(lease: Lease, { target, data, holdAtLeastMs }: Request): boolean {
  if (data !== undefined || lease.mayHaveData || holdAtLeastMs > 0 || lease.isHolding) return false;
  const [ours, its] = [target.settings, lease.settings];
  return (
    ours.ttlMs === its.ttlMs &&
    ours.renewEveryMs === its.renewEveryMs &&
    ours.safetyMarginMs === its.safetyMarginMs &&
    ours.autoRenew === its.autoRenew &&
    ours.maxHoldMs === its.maxHoldMs &&
    ours.releaseWithinMs === its.releaseWithinMs &&
    ours.handOverMs === its.handOverMs &&
    ours.fencing === its.fencing
  );
}

/** Who holds the lock, as whoever is at the front knows it: a section of this process, or who is in the way of its wait. */
function infoOfOccupant(occupant: object | undefined, asking: Wait, owner: string): LockInfo | undefined {
  if (occupant instanceof Wait) return occupant === asking ? undefined : occupant.holder;
  if (!(occupant instanceof Lease)) return undefined;
  const { name, uuid, data, tick } = occupant;
  const { ttlMs } = occupant.settings;
  const [acquired, expires] = [new Date(occupant.acquired), new Date(occupant.expires)];
  return { name, uuid, owner, acquired, expires, ttlMs, data, tick };
}

function tooSlow({ name, settings }: Target): LockStoreError {
  return new LockStoreError(
    `Lock ${JSON.stringify(name)}: the table's answers take longer than a lease of ${settings.ttlMs} ms lasts; raise ttlMs`,
    { transient: true },
  );
}
