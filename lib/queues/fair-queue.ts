import type { LockData } from "../lock-info.js";
import { timeForPeople } from "../protocol/lease-time.js";
import { isDone } from "../protocol/row.js";
import { isTransient, LONGEST_ATTEMPT_MS } from "../session/retry.js";
import type { Host } from "../session/session.js";
import type { Row } from "../store.js";
import { looksFree, type Refused } from "../taking/claim.js";
import type { Grant, Once, Target } from "../taking/grant.js";
import { tickNow } from "../taking/tick.js";
import type { Wait } from "../taking/wait.js";
import { tryAcquire, watch } from "../taking/watch.js";
import type { Waiter } from "../ticket-store.js";
import { LocalQueue } from "./local-line.js";
import { type Ticket, takeTicket } from "./place.js";
import { TicketQueue } from "./waiters.js";

/** For how long it may be relied on that nobody was waiting: one attempt of the claim. */
const FRESH_MS = LONGEST_ATTEMPT_MS;

/** How often a waiter gives way to one whose row may have been there first. More would starve it in a storm. */
const MOST_GIVING_WAY = 10;

/** The longest pause after the first giving way, which doubles with every further one: so a crowd gets apart. */
const GIVING_WAY_MS = 20;
const LONGEST_GIVING_WAY_MS = 2_000;

/** What one call wants. */
export interface Try {
  readonly target: Target;
  readonly data: LockData | undefined;
  readonly once?: Once | undefined;
  readonly wait: Wait;
}

/** What a call that waits does with what it gets. */
export interface Wish extends Try {
  /** @returns whether the lock was delivered; if not, it has been given back. @throws what ended the wait. */
  readonly handOut: (grant: Grant) => Promise<boolean>;
}

/** A wish that stands in the queue. */
interface Standing extends Wish {
  readonly queue: TicketQueue;
  readonly ticket: Ticket;
}

type Straight = Grant | { readonly kind: Refused["kind"] | "unanswered" };

/**
 * Takes locks in turn: first come, first served, among all hosts.
 *
 * Order comes from the queue, and exclusion from the lock's own row alone: it is taken by the ordinary claim. Who stands
 * in the queue enters on one consistent query that shows its own row, and nobody alive before it.
 *
 * Tickets are numbers, drawn before the row is written; what counts is the order of the rows. A row that comes late is
 * in front of later tickets whose rows were there first. So each waiter looks at the whole end of the queue once, after
 * it has written its row and before it may enter: if somebody alive has a later ticket, it gives way, with a new ticket.
 */
export class Turns {
  readonly #host: Host;
  /** By name: who of this process has asked and neither has the lock nor stands in the queue. */
  readonly #doorways = new Map<string, LocalQueue<never>>();

  constructor(host: Host) {
    this.#host = host;
  }

  /**
   * Waits for the lock's turn.
   *
   * 1. Nobody waits and the lock looks free: claim it. Else:
   * 2. Draw a ticket, write a row, look whether it is the last.
   * 3. Poll for the nearest waiter ahead until there is none: half a read unit each, however long the queue is.
   * 4. Watch the lock's row until it looks free.
   * 5. Look whether the own row is still there and nobody is before it, consistent; claim; remove the own row.
   *
   * @throws the store's error if it is not transient, or if the table never answered; what ended the wait.
   */
  async acquire(wish: Wish): Promise<void> {
    const { target, wait } = wish;
    const queue = new TicketQueue(this.#host, target, wait);
    for (let mayTake = true; ; mayTake = false) {
      const found = await this.#inDoorway(wish, async () => {
        const result = mayTake ? await this.#straight(wish, queue) : undefined;
        return result?.kind === "granted" ? result : await this.#lineUp(wish, queue);
      });
      if ("kind" in found) {
        if (await wish.handOut(found)) return;
        continue;
      }
      const { ticket, ahead } = found;
      try {
        if (await this.#wait({ ...wish, queue, ticket }, ahead)) return;
      } finally {
        this.#host.detach(ticket.leave());
      }
      // The ticket is lost: whoever came after it may be served by now, so there is no way back to its place.
      wait.throwIfEnough();
    }
  }

  /** One try: nothing if anybody is ahead, and then no ticket is drawn. */
  async tryAcquire(wish: Try): Promise<Grant | { readonly kind: Refused["kind"] }> {
    const queue = new TicketQueue(this.#host, wish.target, wish.wait);
    // Somebody of this process is about to take it, or to line up for it.
    while (!this.#doorways.has(wish.target.name)) {
      const result = await this.#straight(wish, queue);
      if (result.kind === "granted") return result;
      if (result.kind !== "unanswered") return { kind: result.kind };
      wish.wait.throwIfEnough();
    }
    return { kind: "held" };
  }

  /** The sections of one process come to the queue one at a time: in the order of asking, and in nobody's way. */
  async #inDoorway<T>({ target: { name }, wait }: Try, pass: () => Promise<T>): Promise<T> {
    wait.throwIfEnough();
    const doorway = this.#doorways.get(name) ?? new LocalQueue<never>();
    this.#doorways.set(name, doorway);
    const turn = await doorway.turn(wait, () => false);
    try {
      if (turn.kind === "lead") wait.asksNow(turn.silentSince);
      return await pass();
    } finally {
      doorway.vacate(wait, { silentSince: wait.silentSince });
      if (doorway.occupant === undefined) this.#doorways.delete(name);
    }
  }

  /** Takes the lock without a ticket, if nobody waits and it looks free. */
  async #straight({ target, data, once, wait }: Try, queue: TicketQueue): Promise<Straight> {
    const { row, first } = await queue.front();
    const lookedAt = this.#host.clock.atMost();
    wait.throwIfEnough();
    this.#host.observations.note(target.name, row);
    if (row !== undefined) wait.saw(row);
    if (first !== undefined) {
      const tick = once && (await tickNow(this.#host, target.name, once, wait));
      return { kind: row !== undefined && isDone(row, tick) ? "done" : "held" };
    }
    // Whether a tick is done, the claim tells.
    if (once === undefined && row !== undefined && !looksFree(this.#host, target, row)) return { kind: "held" };
    // A claim that is sent again and again would one day pass those who have queued meanwhile. One for a tick is not
    // given up for another: that one would find the tick taken, by nobody who runs.
    const until = once === undefined ? (): number => Math.min(lookedAt + FRESH_MS, wait.until()) : wait.until;
    try {
      return await tryAcquire(this.#host, target, data, wait, { once, until });
    } catch (error) {
      wait.throwIfEnough();
      if (once !== undefined || !isTransient(error) || this.#host.clock.atMost() >= wait.until()) throw error;
      return { kind: "unanswered" };
    }
  }

  /** Gets a ticket whose row was written after those of all who are before it. */
  async #lineUp(
    { target, wait }: Try,
    queue: TicketQueue,
  ): Promise<{ readonly ticket: Ticket; readonly ahead: Waiter | undefined }> {
    const since = timeForPeople(this.#host.clock);
    for (let givenWay = 0; ; givenWay += 1) {
      const ticket = await takeTicket(this.#host, target, since, wait);
      let stands = false;
      try {
        wait.throwIfEnough();
        const { later, ahead } = await queue.around(ticket, givenWay < MOST_GIVING_WAY ? "end" : "own");
        wait.throwIfEnough();
        stands = !later;
        if (stands) return { ticket, ahead };
      } finally {
        if (!stands) await ticket.leave();
      }
      const longest = Math.min(LONGEST_GIVING_WAY_MS, GIVING_WAY_MS * 2 ** givenWay);
      await this.#host.clock.sleep(longest * this.#host.random(), wait.enough);
    }
  }

  /** @returns whether the lock was delivered; false if the ticket was lost. */
  async #wait(standing: Standing, first: Waiter | undefined): Promise<boolean> {
    const { clock, random } = this.#host;
    const { queue, ticket, wait } = standing;
    const { minMs, maxMs } = standing.target.settings.poll;
    let interval = minMs;
    for (let ahead = first; ticket.lost === undefined; ahead = await queue.ahead(ticket)) {
      wait.throwIfEnough();
      if (ahead === undefined) {
        const delivered = await this.#enter(standing);
        if (delivered !== undefined) return delivered;
      } else {
        const jittered = interval * (0.75 + random() / 2);
        await clock.sleep(Math.min(jittered, Math.max(1, queue.untilDead(ahead))), wait.enough);
        interval = Math.min(maxMs, interval * 1.5);
      }
    }
    return false;
  }

  /**
   * In front, as far as is known: takes the lock when it is free.
   * @returns whether it was delivered; false if the ticket was lost, undefined if somebody is before us after all.
   */
  async #enter({ target, data, wait, handOut, queue, ticket }: Standing): Promise<boolean | undefined> {
    const host = this.#host;
    const goOn = (): boolean => ticket.lost === undefined;
    let row = await this.#read(target, wait);
    for (;;) {
      if (row !== undefined) {
        await watch(host, target, row, wait, { goOn, markAfterMs: target.settings.handOverMs });
      }
      wait.throwIfEnough();
      if (!goOn()) return false;
      const { present, ahead } = await queue.around(ticket, "own");
      if (!present) ticket.lose("deleted");
      wait.throwIfEnough();
      if (!goOn()) return false;
      if (ahead !== undefined) return undefined;
      const result = await this.#claim(target, data, wait, ticket);
      if (result === undefined) return false;
      if (result.kind === "granted" && (await handOut(result))) return true;
      row = result.kind === "granted" ? undefined : result.row;
    }
  }

  /** The ordinary claim, for as long as the ticket lasts. @returns undefined if the ticket has not lasted. */
  async #claim(target: Target, data: LockData | undefined, wait: Wait, ticket: Ticket) {
    const until = (): number => Math.min(ticket.until(), wait.until());
    try {
      return await tryAcquire(this.#host, target, data, wait, { until });
    } catch (error) {
      wait.throwIfEnough();
      if (isTransient(error) && ticket.lost !== undefined) return undefined;
      throw error;
    }
  }

  /** The lock's row, as a hint. */
  async #read({ name }: Target, wait: Wait): Promise<Row | undefined> {
    const row = await wait.persist(LONGEST_ATTEMPT_MS, wait.until, (signal) =>
      this.#host.store.read(name, { consistent: false }, signal),
    );
    this.#host.observations.note(name, row);
    return row;
  }
}
