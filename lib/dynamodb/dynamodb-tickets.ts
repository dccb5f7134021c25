import {
  DeleteItemCommand,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import type { Page, PageRequest, Place, TicketOutcome, TicketStore, Waiter } from "../ticket-store.js";
import { isRefusal } from "./failures.js";
import { LOCK_SORT, rowOf } from "./items.js";
import { drawnTicketOf, foreignCounter, type QueueLayout, ticketOf, waiterOf } from "./ticket-items.js";
import { TicketRequests } from "./ticket-requests.js";
import type { ItemCommand, Transport } from "./transport.js";

const APPLIED: TicketOutcome = { kind: "applied" };

/** The queue on a DynamoDB table that has a sort key. */
export class DynamoDbTickets implements TicketStore {
  readonly #transport: Transport;
  readonly #layout: QueueLayout;
  readonly #requests: TicketRequests;

  constructor(transport: Transport, layout: QueueLayout) {
    this.#transport = transport;
    this.#layout = layout;
    this.#requests = new TicketRequests(layout);
  }

  async draw(name: string, seed: number, signal: AbortSignal): Promise<bigint> {
    try {
      const reply = await this.#transport.ask(new UpdateItemCommand(this.#requests.draw(name, seed)), signal);
      return drawnTicketOf(this.#layout, reply?.Attributes);
    } catch (error) {
      throw isRefusal(error) ? foreignCounter(this.#layout, error.Item) : error;
    }
  }

  async enqueue(waiter: Waiter, signal: AbortSignal): Promise<TicketOutcome> {
    return await this.#write(new PutItemCommand(this.#requests.enqueue(waiter)), waiter, signal);
  }

  async renew(place: Place, expires: number, signal: AbortSignal): Promise<TicketOutcome> {
    return await this.#write(new UpdateItemCommand(this.#requests.renew(place, expires)), place, signal);
  }

  async leave(place: Place, signal: AbortSignal): Promise<TicketOutcome> {
    return await this.#remove(new DeleteItemCommand(this.#requests.leave(place)), signal);
  }

  async sweep(seen: Place & { readonly expires: number }, signal: AbortSignal): Promise<TicketOutcome> {
    return await this.#remove(new DeleteItemCommand(this.#requests.sweep(seen)), signal);
  }

  async page(
    name: string,
    request: PageRequest,
    options: { readonly consistent: boolean },
    signal: AbortSignal,
  ): Promise<Page> {
    const command = new QueryCommand(this.#requests.page(name, request, options.consistent));
    const { Items = [], LastEvaluatedKey } = (await this.#transport.ask(command, signal)) ?? {};
    const { sort } = this.#layout;
    const own = Items.find((item) => item[sort]?.S === LOCK_SORT);
    return {
      row: own && rowOf(this.#layout, own),
      // What else an application keeps in between is none of ours.
      waiters: Items.filter((item) => ticketOf(this.#layout, item) !== undefined).map((item) =>
        waiterOf(this.#layout, item),
      ),
      // After the lock's own row, which stands before all tickets, the queue begins.
      next: LastEvaluatedKey && (ticketOf(this.#layout, LastEvaluatedKey) ?? -1n),
    };
  }

  /** A write whose refusal tells by which row: that of the engine's reply, or of one read more. */
  async #write(command: ItemCommand, place: Place, signal: AbortSignal): Promise<TicketOutcome> {
    try {
      await this.#transport.ask(command, signal);
      return APPLIED;
    } catch (error) {
      if (!isRefusal(error)) throw error;
      const item = error.Item ?? (await this.#get(place, signal));
      return { kind: "refused", waiter: item && waiterOf(this.#layout, item) };
    }
  }

  async #remove(command: DeleteItemCommand, signal: AbortSignal): Promise<TicketOutcome> {
    try {
      await this.#transport.ask(command, signal);
      return APPLIED;
    } catch (error) {
      if (!isRefusal(error)) throw error;
      return { kind: "refused", waiter: undefined };
    }
  }

  async #get({ name, ticket }: Place, signal: AbortSignal) {
    return (await this.#transport.ask(new GetItemCommand(this.#requests.get(name, ticket)), signal))?.Item;
  }
}
