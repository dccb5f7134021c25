import type { WaiterInfo } from "../lock-info.js";
import { ask } from "../operations/admin-request.js";
import { earliestOf } from "../protocol/row.js";
import { LONGEST_ATTEMPT_MS } from "../session/retry.js";
import type { Host } from "../session/session.js";
import type { Row } from "../store.js";
import type { Target } from "../taking/grant.js";
import type { Wait } from "../taking/wait.js";
import type { Page, PageRequest, Place, Waiter } from "../ticket-store.js";
import { Sweeper } from "./sweeper.js";

/** How many rows are read at once where dead ones are in the way: less than 40 KB. */
const PAGE_ROWS = 100;

/** A waiter's row always has a uuid. */
const WHOEVER = { holders: true };

/** A page, and what the clocks showed before it was asked for: its rows are at least as new as that, and may be no newer. */
interface Look extends Page {
  /** What `expires` may be compared with. */
  readonly earliest: number;
  /** On `atLeast`. */
  readonly at: number;
}

/** What somebody without a ticket finds. */
export interface Front {
  /** The lock's own row. */
  readonly row: Row | undefined;
  /** The first waiter who is alive. */
  readonly first: Waiter | undefined;
}

/** What a waiter finds around its own row. */
export interface Surroundings {
  /** Whether its own row is there. */
  readonly present: boolean;
  /** Whether somebody alive has a later ticket. Only looked for from the end. */
  readonly later: boolean;
  /** The nearest waiter ahead who is alive. */
  readonly ahead: Waiter | undefined;
}

/**
 * The queue of one name, as one call sees it. Waiters whose lease is over are skipped and removed, each on the
 * condition that its row is still exactly as it was seen: one that was renewed in between stays.
 */
export class TicketQueue {
  readonly #host: Host;
  readonly #target: Target;
  readonly #wait: Wait;
  readonly #sweeper: Sweeper;

  constructor(host: Host, target: Target, wait: Wait) {
    this.#host = host;
    this.#target = target;
    this.#wait = wait;
    this.#sweeper = new Sweeper(host, target);
  }

  /** The lock's own row and whoever is first, consistent: one request, unless dead waiters are in the way. */
  async front(): Promise<Front> {
    let row: Row | undefined;
    for await (const page of this.#pages({ from: "front", limit: 2 }, true)) {
      row ??= page.row;
      const first = this.#firstAlive(page.waiters, page);
      if (first !== undefined) return { row, first };
    }
    return { row, first: undefined };
  }

  /**
   * What is around a waiter, consistent.
   *
   * @param from `end`: the whole queue behind it too, which a waiter needs to see once, right after it has written its
   * row; `own`: from its own row on.
   */
  async around(own: Place, from: "end" | "own"): Promise<Surroundings> {
    const before = from === "own" ? own.ticket + 1n : undefined;
    let present = false;
    for await (const look of this.#pages({ from: "end", before, limit: 2 }, true)) {
      const { waiters } = look;
      present ||= waiters.some(({ ticket, uuid }) => ticket === own.ticket && uuid === own.uuid);
      const later =
        this.#firstAlive(
          waiters.filter(({ ticket }) => ticket > own.ticket),
          look,
        ) !== undefined;
      if (later) return { present, later, ahead: undefined };
      const ahead = this.#firstAlive(
        waiters.filter(({ ticket }) => ticket < own.ticket),
        look,
      );
      if (ahead !== undefined) return { present, later, ahead };
    }
    return { present, later: false, ahead: undefined };
  }

  /** The nearest waiter ahead who is alive, as a hint: half a read unit however long the queue is. */
  async ahead(own: Place): Promise<Waiter | undefined> {
    for await (const look of this.#pages({ from: "end", before: own.ticket, limit: 1 }, false)) {
      const ahead = this.#firstAlive(look.waiters, look);
      if (ahead !== undefined) return ahead;
    }
    return undefined;
  }

  /** Milliseconds until this waiter, which has been seen, is dead if nothing is done to its row. */
  untilDead(waiter: Waiter): number {
    const { settings } = this.#target;
    const bounds = settings.takeover === "unchanged" ? undefined : this.#host.clock.wall();
    const unchanged = this.#host.waiters.untilUnchanged(keyOf(waiter), WHOEVER);
    return bounds === undefined ? unchanged : Math.min(unchanged, waiter.expires + 1 - bounds.earliest);
  }

  /** All rows from there on: a small page first, because the first row is mostly all that is needed. */
  async *#pages(first: PageRequest, consistent: boolean): AsyncGenerator<Look> {
    for (let request: PageRequest | undefined = first; request !== undefined; ) {
      const asked: PageRequest = request;
      const page = await this.#wait.persist(LONGEST_ATTEMPT_MS, this.#wait.until, async (signal) => {
        // A reply may take its time, and a waiter that it shows may have been renewed since it left the table.
        const [earliest, at] = [this.#earliest(), this.#host.clock.atLeast()];
        return { ...(await this.#host.tickets.page(this.#target.name, asked, { consistent }, signal)), earliest, at };
      });
      yield page;
      request = nextOf(asked, page);
    }
  }

  /** The first of these, in their order, whose lease runs; the others are removed. */
  #firstAlive(waiters: readonly Waiter[], look: Look): Waiter | undefined {
    for (const waiter of waiters) this.#host.waiters.note(keyOf(waiter), rowOf(waiter));
    const dead = waiters.filter((waiter) => this.#isDead(waiter, look));
    this.#sweeper.add(dead);
    return waiters.find((waiter) => !dead.includes(waiter));
  }

  #earliest(): number {
    return earliestOf(this.#target.settings.takeover === "unchanged" ? undefined : this.#host.clock.wall());
  }

  /** By the two rules of a takeover: its end has passed on the table's clock, or it was watched for its whole lease. */
  #isDead(waiter: Waiter, { earliest, at }: Look): boolean {
    if (waiter.expires < earliest) return true;
    const seen = this.#host.waiters.unchanged(keyOf(waiter), { ...WHOEVER, at });
    return seen !== undefined && seen.uuid === waiter.uuid && seen.expires === waiter.expires;
  }
}

/** All who wait for a lock and are alive as far as the clock knows, in order; eventually consistent. @throws the store's error. */
export async function listWaiters(host: Host, name: string): Promise<WaiterInfo[]> {
  const { clock, tickets } = host;
  const listed: WaiterInfo[] = [];
  for (
    let request: PageRequest | undefined = { from: "front", after: -1n, limit: PAGE_ROWS };
    request !== undefined;
  ) {
    const asked: PageRequest = request;
    const page = await ask(host, (signal) => tickets.page(name, asked, { consistent: false }, signal));
    const earliest = earliestOf(clock.wall());
    listed.push(...page.waiters.filter(({ expires }) => expires >= earliest).map(infoOf));
    request = nextOf(asked, page);
  }
  return listed;
}

function infoOf({ ticket, uuid, owner, acquired, expires }: Waiter): WaiterInfo {
  return { ticket, uuid, owner, since: new Date(acquired), expires: new Date(expires) };
}

function nextOf(asked: PageRequest, { next }: Page): PageRequest | undefined {
  if (next === undefined) return undefined;
  return asked.from === "end"
    ? { from: "end", before: next, limit: PAGE_ROWS }
    : { from: "front", after: next, limit: PAGE_ROWS };
}

function keyOf({ name, ticket }: Place): string {
  return `${name}#${ticket}`;
}

/** As what is observed of a lock's own row. */
function rowOf({ ticket: _, ...waiter }: Waiter): Row {
  return { ...waiter, data: undefined, wanted: undefined, fence: undefined, tick: undefined };
}
