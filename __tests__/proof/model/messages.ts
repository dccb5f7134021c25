import type { Check, Remove, Renew, Take, Transfer, Vacate } from "../../../lib/protocol/writes.js";
import type { Who } from "./state.js";

/** The writes that are modelled. */
export type Sent = Take | Renew | Transfer | Vacate | Check | Remove;

/** A write on its way to the table. Two that say the same are one: the network may repeat either. */
export interface Message {
  readonly id: number;
  readonly from: Who;
  readonly write: Sent;
  /** Of a guard: the section that it belongs to. Of a removal: the acquisition. */
  readonly section: number;
}

/** Gives equal messages the same number, in one exploration. */
export class Messages {
  readonly #known = new Map<string, Message>();

  of(from: Who, write: Sent, section = 0): Message {
    const key = JSON.stringify([from, section, write], (_, part) => (typeof part === "bigint" ? String(part) : part));
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const message = { id: this.#known.size, from, write, section };
    this.#known.set(key, message);
    return message;
  }
}

/** All messages that were ever sent, with this one among them. */
export function withMessage(network: readonly Message[], message: Message): readonly Message[] {
  if (network.includes(message)) return network;
  return [...network, message].sort((one, other) => one.id - other.id);
}
