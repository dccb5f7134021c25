import type { Write } from "../../lib/protocol/writes.js";
import type { Who } from "./state.js";

/** A write on its way to the table. Two that say the same are one: the network may repeat either. */
export interface Message {
  readonly id: number;
  readonly from: Who;
  readonly write: Write;
  /** Of a guard: the section that it belongs to. Of a removal: the acquisition. */
  readonly section: number;
}

/** Gives equal messages the same number, in one exploration. */
export class Messages {
  readonly #known = new Map<string, Message>();

  of(from: Who, write: Write, section = 0): Message {
    const key = `${from} ${section} ${textOf(write)}`;
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

/** What differs between two writes of one exploration. */
function textOf(write: Write): string {
  switch (write.kind) {
    case "take": {
      const { uuid, expires, ttlMs, knowledge } = write;
      const { earliest, unchanged } = knowledge;
      return `take ${uuid},${expires},${ttlMs},${earliest},${unchanged?.uuid},${unchanged?.expires}`;
    }
    case "renew":
      return `renew ${write.uuid},${write.expires}`;
    case "reissue":
      return `reissue ${write.from},${write.uuid},${write.expires}`;
    case "vacate":
      return `vacate ${write.uuid}`;
    case "check":
      return `check ${write.uuid},${write.after},${write.fence}`;
    case "remove":
      return `remove ${write.at.sort},${write.seenUuid},${write.seenExpires}`;
    case "transfer":
      return `transfer ${write.from},${write.after},${write.uuid},${write.expires},${write.ttlMs}`;
    case "put-result":
    case "record":
    case "want":
    case "draw":
      throw new Error(`The model sends no ${write.kind}`);
    default:
      return write satisfies never;
  }
}
