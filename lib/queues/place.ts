import { publish } from "../diagnostics.js";
import { LockStoreError } from "../errors.js";
import { attemptMs, leaseEnd, stampNow } from "../protocol/lease-time.js";
import { isTransient, persist, RENEW_AGAIN_MS } from "../session/retry.js";
import type { Host } from "../session/session.js";
import type { Target } from "../taking/grant.js";
import { lookOut } from "../taking/look-out.js";
import type { Wait } from "../taking/wait.js";
import type { Place, Waiter } from "../ticket-store.js";

/** How many numbers may prove to be taken: more show a counter that somebody has set back. */
const MOST_TAKEN = 5;

/** Why a ticket is worth nothing any more. */
export type TicketLoss = "expired" | "deleted";

/**
 * A waiter's own place in the queue: its row, kept alive by a renewal every half of its lease.
 *
 * Like a lock, it ends for its owner before it ends for anybody else: who skips it does so later than `lost` says so.
 */
export class Ticket implements Place {
  readonly name: string;
  readonly ticket: bigint;
  readonly uuid: string;
  readonly #host: Host;
  readonly #target: Target;
  #lastStamp: number;
  /** When the request that made the current stamp was first sent, on `atMost`. */
  #sentAt: number;
  /** Until when others certainly respect the row, on `atMost`; the safety margin is off it already. */
  #end: number;
  #lost: TicketLoss | undefined;
  #left = false;
  #renewing: Promise<void> | undefined;
  readonly #enough = new AbortController();
  #cancelRenewal: () => void = () => undefined;

  /** Made by {@link takeTicket}. */
  constructor(host: Host, target: Target, waiter: Waiter, sentAt: number) {
    this.name = waiter.name;
    this.ticket = waiter.ticket;
    this.uuid = waiter.uuid;
    this.#host = host;
    this.#target = target;
    this.#lastStamp = waiter.expires;
    this.#sentAt = sentAt;
    this.#end = this.#endFor(waiter.expires, sentAt);
    this.#armRenewal();
  }

  /** Until when the ticket counts if no renewal gets through any more, on `atMost`. */
  readonly until = (): number => (this.#lost === undefined ? this.#end : Number.NEGATIVE_INFINITY);

  /** Looked for whenever somebody asks, because a process may have been suspended. */
  get lost(): TicketLoss | undefined {
    this.#look();
    return this.#lost;
  }

  /** The row has been seen to be gone, or the lease has ended. */
  lose(reason: TicketLoss): void {
    if (this.#lost !== undefined || this.#left) return;
    this.#lost = reason;
    this.#stop();
    const { name, ticket, uuid } = this;
    publish("dynamutex:ticket-lost", { name, ticket, uuid, reason });
  }

  /** Gives the place up. Never throws: a row that cannot be removed ends by itself. */
  async leave(): Promise<void> {
    this.#left = true;
    this.#stop();
    // Renewal and removal never overlap: the attempt under way is awaited, no other follows.
    await this.#renewing;
    await removePlace(this.#host, this.#target, this, this.#end);
  }

  #look(): void {
    if (this.#host.clock.atMost() >= this.#end) this.lose("expired");
  }

  #stop(): void {
    this.#enough.abort();
    this.#cancelRenewal();
  }

  #armRenewal(atLeastMs = 0): void {
    const dueIn = this.#sentAt + this.#target.settings.ttlMs / 2 - this.#host.clock.atMost();
    this.#cancelRenewal = this.#host.clock.alarm(Math.max(atLeastMs, dueIn), () => {
      this.#renewing = this.#renew();
      this.#host.detach(this.#renewing);
    });
  }

  async #renew(): Promise<void> {
    try {
      const leaveLane = await this.#host.lanes.enter(this.#end, this.#enough.signal);
      const renewed = await this.#sendRenewal().finally(leaveLane);
      if (this.lost === undefined && !this.#left) this.#armRenewal(renewed ? 0 : RENEW_AGAIN_MS);
    } catch {
      // No answer, and no time left for another attempt, or nobody who wants one.
      this.#look();
    }
  }

  /** @returns whether the row has the new stamp. */
  async #sendRenewal(): Promise<boolean> {
    const { clock, tickets, random } = this.#host;
    const { ttlMs } = this.#target.settings;
    const { expires } = stampNow(clock, ttlMs, this.#lastStamp);
    this.#lastStamp = expires;
    // Read the stopwatch before the first copy leaves: a watcher may count the ttl from there.
    const sentAt = clock.atMost();
    const outcome = await persist(
      this.#host,
      {
        kind: "renewal",
        until: this.until,
        attemptMs: attemptMs(ttlMs),
        enough: this.#enough.signal,
        worthRetrying: () => true,
        onFailure: (cause) => publish("dynamutex:wait-failed", { name: this.name, cause }),
        random,
      },
      (signal) => tickets.renew(this, expires, signal),
    );
    // The refusing row with our uuid and exactly this stamp: an earlier copy got there, its reply was lost.
    const isOurs = outcome.kind === "applied" || outcome.waiter?.uuid === this.uuid;
    const isStamped = outcome.kind === "applied" || (isOurs && outcome.waiter?.expires === expires);
    if (!isOurs) this.lose("deleted");
    // No reply brings a lease back that is over.
    if (!isStamped || this.lost !== undefined) return false;
    this.#sentAt = sentAt;
    this.#end = this.#endFor(expires, sentAt);
    return true;
  }

  #endFor(expires: number, sentAt: number): number {
    const { ttlMs, safetyMarginMs } = this.#target.settings;
    return leaseEnd(this.#host.clock, expires, ttlMs, sentAt) - safetyMarginMs;
  }
}

/**
 * Draws a number and writes the waiter's row under it.
 *
 * @throws the store's error; what ended the wait. Then no row is left: what a request under way may still write is
 * looked for in the background, and removed.
 */
export async function takeTicket(host: Host, target: Target, since: number, wait: Wait): Promise<Ticket> {
  for (let taken = 0; taken < MOST_TAKEN; ) {
    wait.throwIfEnough();
    const number = await drawNumber(host, target, wait);
    wait.throwIfEnough();
    const ticket = await enqueue(host, target, number, since, wait);
    if (ticket instanceof Ticket) return ticket;
    if (ticket === "taken") taken += 1;
  }
  throw new LockStoreError(
    `Lock ${JSON.stringify(target.name)}: its counter gives numbers that others have already; somebody has set back the ` +
      'item "tickets" of this lock: delete it, and it will start again behind them',
  );
}

async function drawNumber(host: Host, { name, settings }: Target, wait: Wait): Promise<bigint> {
  const { clock, tickets } = host;
  return await wait.persist(attemptMs(settings.ttlMs), wait.until, (signal) => {
    // The table's own time in ms: no run of draws overtakes it, so a counter that was purged never goes back.
    const seed = Math.ceil(clock.wall()?.latest ?? clock.guess());
    return tickets.draw(name, seed, signal);
  });
}

/** @returns the ticket, or why there is none: another row has the key, or nobody knows whether ours will be there. */
async function enqueue(
  host: Host,
  target: Target,
  ticket: bigint,
  since: number,
  wait: Wait,
): Promise<Ticket | "taken" | "unanswered"> {
  const { clock, tickets, owner } = host;
  const { ttlMs, safetyMarginMs } = target.settings;
  const sentAt = clock.atMost();
  const { expires } = stampNow(clock, ttlMs);
  const waiter = { name: target.name, ticket, uuid: host.uuid(), expires, ttlMs, owner, acquired: since };
  const until = (): number => Math.min(sentAt + ttlMs - safetyMarginMs, wait.until());
  let sent = 0;
  try {
    const outcome = await wait.persist(attemptMs(ttlMs), until, (signal) => {
      sent += 1;
      return tickets.enqueue(waiter, signal);
    });
    // Our own uuid refuses us: an earlier copy was applied and its reply lost.
    const isOurs = outcome.kind === "applied" || outcome.waiter?.uuid === waiter.uuid;
    return isOurs ? new Ticket(host, target, waiter, sentAt) : "taken";
  } catch (error) {
    if (isTransient(error) || sent > 1) host.detach(removeUncertain(host, target, waiter, sentAt));
    wait.throwIfEnough();
    if (!isTransient(error) || clock.atMost() >= wait.until()) throw error;
    // A place that we do not know to have is none: another number, behind those who have queued meanwhile.
    return "unanswered";
  }
}

/** Removes a row that may not have arrived yet: what is not there now is looked for again, for a while. */
async function removeUncertain(host: Host, target: Target, waiter: Waiter, sentAt: number): Promise<void> {
  const { tickets, random } = host;
  const { name, uuid, expires, ttlMs } = waiter;
  const request = { from: "end", before: waiter.ticket + 1n, limit: 1 } as const;
  try {
    await lookOut(host, target.settings, { expires, sentAt }, async (until) => {
      const persistence = { kind: "read", until, attemptMs: attemptMs(ttlMs), random } as const;
      const { waiters } = await persist(host, persistence, (signal) =>
        tickets.page(name, request, { consistent: true }, signal),
      );
      if (waiters[0]?.uuid !== uuid) return false;
      await removePlace(host, target, waiter, sentAt + ttlMs);
      return true;
    });
  } catch (cause) {
    publish("dynamutex:release-failed", { name, uuid, cause });
  }
}

/** Deletes a waiter's row where it is still its own. Never throws. */
async function removePlace(host: Host, target: Target, place: Place, leaseEnds: number): Promise<void> {
  const { clock, random } = host;
  const { ttlMs, releaseWithinMs } = target.settings;
  const leftMs = Math.max(leaseEnds - clock.atMost(), attemptMs(ttlMs));
  const until = host.untilClosed(leftMs, releaseWithinMs);
  try {
    const persistence = { kind: "release", until, attemptMs: attemptMs(ttlMs), random } as const;
    await persist(host, persistence, (signal) => host.tickets.leave(place, signal));
  } catch (cause) {
    publish("dynamutex:release-failed", { name: place.name, uuid: place.uuid, cause });
  }
}
