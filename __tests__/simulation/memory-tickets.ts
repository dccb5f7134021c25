import type { Row } from "../../lib/store.js";
import type { Page, PageRequest, Place, TicketOutcome, TicketStore, Waiter } from "../../lib/ticket-store.js";

/** What a message asks of the queue of one name: plain data, as for the lock's own row. */
export type TicketOperation =
  | { readonly kind: "draw"; readonly seed: number }
  | { readonly kind: "enqueue"; readonly waiter: Waiter }
  | { readonly kind: "renew"; readonly place: Place; readonly expires: number }
  | { readonly kind: "leave"; readonly place: Place }
  | { readonly kind: "sweep"; readonly seen: Place & { readonly expires: number } }
  | { readonly kind: "page"; readonly request: PageRequest; readonly consistent: boolean };

export type TicketResult =
  | TicketOutcome
  | { readonly kind: "drawn"; readonly ticket: bigint }
  | { readonly kind: "page"; readonly page: Page };

/** The waiters' rows of every name, and what the writes do to them: each at one instant. */
export class MemoryTickets {
  readonly #counters = new Map<string, bigint>();
  readonly #queues = new Map<string, ReadonlyMap<bigint, Waiter>>();

  /** Of which locks there ever was a queue. */
  get names(): readonly string[] {
    return [...this.#queues.keys()];
  }

  /** The rows of one queue, by ticket. A change makes a new map, so whoever keeps one keeps what was. */
  of(name: string): ReadonlyMap<bigint, Waiter> {
    return this.#queues.get(name) ?? new Map();
  }

  /** A waiter as some other host left it. */
  plant(waiter: Waiter): void {
    this.#set(waiter.name, waiter.ticket, waiter);
  }

  /** Undefined is what DynamoDB's TTL feature may do to a counter that nobody has used for a week. */
  plantCounter(name: string, last: bigint | undefined): void {
    if (last === undefined) this.#counters.delete(name);
    else this.#counters.set(name, last);
  }

  apply(name: string, operation: TicketOperation, row: Row | undefined): TicketResult {
    switch (operation.kind) {
      case "draw": {
        const ticket = (this.#counters.get(name) ?? BigInt(operation.seed)) + 1n;
        this.#counters.set(name, ticket);
        return { kind: "drawn", ticket };
      }
      case "enqueue": {
        const waiter = this.of(name).get(operation.waiter.ticket);
        if (waiter !== undefined) return { kind: "refused", waiter };
        this.plant(operation.waiter);
        return { kind: "applied" };
      }
      case "renew": {
        const { ticket, uuid } = operation.place;
        const waiter = this.of(name).get(ticket);
        if (waiter?.uuid !== uuid || waiter.expires >= operation.expires) return { kind: "refused", waiter };
        this.plant({ ...waiter, expires: operation.expires });
        return { kind: "applied" };
      }
      case "leave":
        return this.#remove(operation.place, (waiter) => waiter.uuid === operation.place.uuid);
      case "sweep": {
        const { uuid, expires } = operation.seen;
        return this.#remove(operation.seen, (waiter) => waiter.uuid === uuid && waiter.expires === expires);
      }
      case "page":
        return { kind: "page", page: pageOf(this.of(name), operation.request, row) };
      default:
        return operation satisfies never;
    }
  }

  #remove({ name, ticket }: Place, matches: (waiter: Waiter) => boolean): TicketOutcome {
    const waiter = this.of(name).get(ticket);
    if (waiter === undefined || !matches(waiter)) return { kind: "refused", waiter: undefined };
    this.#set(name, ticket, undefined);
    return { kind: "applied" };
  }

  #set(name: string, ticket: bigint, waiter: Waiter | undefined): void {
    const queue = new Map(this.of(name));
    if (waiter === undefined) queue.delete(ticket);
    else queue.set(ticket, waiter);
    this.#queues.set(name, queue);
  }
}

/** What a query over these rows shows. */
export function pageOf(queue: ReadonlyMap<bigint, Waiter>, request: PageRequest, row: Row | undefined): Page {
  const inOrder = [...queue.values()].sort((one, other) => (one.ticket < other.ticket ? -1 : 1));
  if (request.from === "end") {
    const { before, limit } = request;
    const waiters = inOrder.filter(({ ticket }) => before === undefined || ticket < before).reverse();
    return cut(undefined, waiters, limit);
  }
  const { after, limit } = request;
  const waiters = inOrder.filter(({ ticket }) => after === undefined || ticket > after);
  return cut(after === undefined ? row : undefined, waiters, limit);
}

/** As a query does, the page names where it ends whenever it is full, even if nothing follows. */
function cut(row: Row | undefined, waiters: readonly Waiter[], limit: number): Page {
  const shown = waiters.slice(0, limit - (row === undefined ? 0 : 1));
  const isFull = shown.length + (row === undefined ? 0 : 1) === limit;
  return { row, waiters: shown, next: isFull ? (shown.at(-1)?.ticket ?? -1n) : undefined };
}

/** The port's queue, over whatever carries its messages. */
export function ticketStoreOver(
  send: (name: string, operation: TicketOperation, signal: AbortSignal) => Promise<TicketResult>,
): TicketStore {
  const ask = async <Kind extends TicketResult["kind"]>(
    name: string,
    operation: TicketOperation,
    signal: AbortSignal,
  ) => (await send(name, operation, signal)) as Extract<TicketResult, { kind: Kind }>;
  type Write = "applied" | "refused";
  return {
    draw: async (name, seed, signal) => (await ask<"drawn">(name, { kind: "draw", seed }, signal)).ticket,
    enqueue: (waiter, signal) => ask<Write>(waiter.name, { kind: "enqueue", waiter }, signal),
    renew: (place, expires, signal) => ask<Write>(place.name, { kind: "renew", place, expires }, signal),
    leave: (place, signal) => ask<Write>(place.name, { kind: "leave", place }, signal),
    sweep: (seen, signal) => ask<Write>(seen.name, { kind: "sweep", seen }, signal),
    page: async (name, request, { consistent }, signal) =>
      (await ask<"page">(name, { kind: "page", request, consistent }, signal)).page,
  };
}
