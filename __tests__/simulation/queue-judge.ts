import type { Waiter } from "../../lib/ticket-store.js";
import type { Coverage } from "./coverage.js";
import type { Process } from "./machine.js";
import type { MemoryTable, Operation, Outcome } from "./memory-store.js";
import type { TicketOperation, TicketResult } from "./memory-tickets.js";
import type { Arrival } from "./network.js";
import { FAIR_NAME } from "./schedule.js";
import type { Scheduler } from "./scheduler.js";

/** The share of its lease for which a watcher cannot have seen a row unchanged, whatever its stopwatch's rate. */
const UNWATCHED = 0.99;

/** For how long somebody who was shown that nobody waits may take the lock on it: as long as a try lasts. */
const SHOWN_FOR_MS = 13_000;

/** What is known of a waiter's row. */
interface Written {
  /** The how-manieth row of all it was. */
  readonly place: number;
  /** Until when everybody had to respect it without a break, in virtual ms. */
  until: number;
  /** Whether its process has heard that it is there. */
  heard: boolean;
}

/** What a process has been told about its own places. */
interface Told {
  readonly places: Map<string, bigint>;
  /** When it was shown that nobody waits, since it has drawn a ticket. */
  shown: number | undefined;
  /** How many of its calls want the lock now. */
  calls: number;
  /** Whether only one of them has since the first: nobody can tell from outside which of several sends what. */
  isAlone: boolean;
}

/** Watches the queue of one name that only fair mutexes use. Tells what is wrong, or nothing. */
export class QueueJudge {
  readonly #scheduler: Scheduler;
  readonly #table: MemoryTable;
  readonly #coverage: Coverage;
  readonly #epoch: number;
  readonly #written = new Map<string, Written>();
  readonly #told = new WeakMap<Process, Told>();
  /** Acquisitions that overtook somebody. */
  readonly #overtook = new Map<string, string>();
  /** Claims that may be those of a section that was shown that nobody waits: it comes before who waits since. */
  readonly #straight = new Set<string>();
  readonly #enqueued = new Set<string>();
  readonly #strays = new Set<string>();
  #places = 0;

  constructor(scheduler: Scheduler, table: MemoryTable, coverage: Coverage, epoch: number) {
    this.#coverage = coverage;
    this.#scheduler = scheduler;
    this.#table = table;
    this.#epoch = epoch;
  }

  /** Rows that a late copy made: whoever left them there has heard of the first, and has given it up since. */
  get strays(): ReadonlySet<string> {
    return this.#strays;
  }

  /** What arrived at the table, and was done. @returns who has lost its place to it. */
  arrived({ operation, outcome, duplicate }: Arrival): string | undefined {
    if (operation.kind === "take" && outcome.kind === "granted") this.#taken(operation);
    if (operation.kind !== "ticket" || outcome.kind !== "ticket" || outcome.result.kind !== "applied") return undefined;
    const { name, ticket } = operation;
    if (ticket.kind === "enqueue") {
      const { uuid } = ticket.waiter;
      if (duplicate || this.#enqueued.has(uuid)) this.#strays.add(uuid);
      this.#enqueued.add(uuid);
      if (name !== FAIR_NAME) return undefined;
      this.#places += 1;
      // Nobody waits on a stray, and others may have watched it before it came back.
      const until = this.#strays.has(uuid) ? 0 : this.#respectedUntil(ticket.waiter);
      this.#written.set(uuid, { place: this.#places, until, heard: this.#written.get(uuid)?.heard ?? false });
    }
    if (ticket.kind === "renew" && name === FAIR_NAME) {
      const { place } = ticket;
      const written = this.#written.get(place.uuid);
      const waiter = this.#table.tickets.of(FAIR_NAME).get(place.ticket);
      // A renewal that comes when it was over for others does not make it whole again.
      if (written === undefined || waiter === undefined || written.until <= this.#scheduler.now) return undefined;
      written.until = this.#respectedUntil(waiter);
    }
    if (ticket.kind !== "sweep" || (this.#written.get(ticket.seen.uuid)?.until ?? 0) <= this.#scheduler.now)
      return undefined;
    return `${ticket.seen.uuid} is swept although it waits`;
  }

  /** A section begins. @returns whom it has overtaken. */
  took(uuid: string): string | undefined {
    return this.#overtook.get(uuid);
  }

  /** A reply that a process has heard. */
  heard(process: Process, operation: Operation, outcome: Outcome): void {
    if (operation.name !== FAIR_NAME || operation.kind !== "ticket" || outcome.kind !== "ticket") return;
    this.#hear(this.#toldTo(process), operation.ticket, outcome.result);
  }

  /** What a process sends. @returns what it should have known better. */
  sent(process: Process, operation: Operation): string | undefined {
    if (operation.name !== FAIR_NAME) return undefined;
    const told = this.#toldTo(process);
    if (operation.kind === "ticket" && operation.ticket.kind === "draw" && told.isAlone) told.shown = undefined;
    if (operation.kind === "ticket" && operation.ticket.kind === "leave")
      told.places.delete(operation.ticket.place.uuid);
    if (operation.kind !== "take") return undefined;
    if (told.shown !== undefined && this.#scheduler.now - told.shown < SHOWN_FOR_MS) {
      this.#straight.add(operation.claim.uuid);
      return undefined;
    }
    if (told.places.size > 0) return undefined;
    return `${operation.claim.uuid} is claimed by somebody without a place`;
  }

  /** A call begins to want a lock; the answer says that it has it, or wants it no more. */
  asks(process: Process, name: string): () => void {
    if (name !== FAIR_NAME) return () => undefined;
    const told = this.#toldTo(process);
    told.isAlone = told.calls === 0;
    told.calls += 1;
    let open = true;
    return () => {
      if (open) told.calls -= 1;
      open = false;
    };
  }

  #toldTo(process: Process): Told {
    const known = this.#told.get(process);
    if (known !== undefined) return known;
    const told = { places: new Map<string, bigint>(), shown: undefined, calls: 0, isAlone: false };
    this.#told.set(process, told);
    return told;
  }

  #hear(told: Told, ticket: TicketOperation, result: TicketResult): void {
    const { places } = told;
    if (ticket.kind === "enqueue") {
      const { uuid, ticket: number } = ticket.waiter;
      const isThere = result.kind === "applied" || (result.kind === "refused" && result.waiter?.uuid === uuid);
      if (!isThere) return;
      places.set(uuid, number);
      const written = this.#written.get(uuid);
      if (written !== undefined) written.heard = true;
    }
    if (ticket.kind === "renew" && result.kind === "refused" && result.waiter?.uuid !== ticket.place.uuid) {
      places.delete(ticket.place.uuid);
    }
    if (ticket.kind !== "page" || result.kind !== "page" || !ticket.consistent) return;
    const { request } = ticket;
    const { waiters, next } = result.page;
    if (request.from === "front") {
      // A look that goes on past the dead ends with its last page.
      if (!waiters.some((waiter) => this.#isRespected(waiter))) told.shown = this.#scheduler.now;
      return;
    }
    for (const [uuid, number] of places) {
      const isInRange = (request.before === undefined || number < request.before) && number >= (next ?? 0n);
      if (isInRange && !waiters.some((waiter) => waiter.uuid === uuid)) places.delete(uuid);
    }
  }

  /** The lock's row is written for somebody: who waited, and who was before him? */
  #taken({ name, claim: { uuid, owner } }: Extract<Operation, { kind: "take" }>): void {
    if (name !== FAIR_NAME || this.#straight.has(uuid)) return;
    const waiting = [...this.#table.tickets.of(FAIR_NAME).values()];
    const own = waiting.filter((waiter) => waiter.owner === owner && this.#written.get(waiter.uuid)?.heard === true);
    const others = waiting.filter((waiter) => waiter.owner !== owner && this.#isRespected(waiter));
    // Which of several sections of one process it is for, only the process knows: the last of them, at best.
    const last = Math.max(...own.map((waiter) => this.#placeOf(waiter)));
    const first = Math.min(...own.map((waiter) => this.#placeOf(waiter)));
    const overtaken = others.filter((waiter) => this.#placeOf(waiter) < first);
    if (own.length === 0) return;
    this.#coverage.count("turns in a queue");
    if (others.length > 0) this.#coverage.count("turns with others behind");
    if (overtaken.length === 0) return;
    this.#overtook.set(uuid, `${uuid} of place ${first} to ${last} overtook ${overtaken.map(({ uuid }) => uuid)}`);
  }

  #isRespected({ uuid }: Waiter): boolean {
    return (this.#written.get(uuid)?.until ?? 0) > this.#scheduler.now;
  }

  #placeOf({ uuid }: Waiter): number {
    return this.#written.get(uuid)?.place ?? 0;
  }

  /** By either rule of a takeover. */
  #respectedUntil({ expires, ttlMs }: Waiter): number {
    return Math.min(expires - this.#epoch, this.#scheduler.now + ttlMs * UNWATCHED);
  }
}
