import { permitOf } from "../../../lib/protocol/addresses.js";
import type { Message } from "../../support/message.js";
import { acquiresOf } from "./message.js";

/** Which rows are those of one lock: of several permits, which come and go together. */
export class Companions {
  readonly #all = new Map<string, readonly string[]>();

  sent(message: Message): void {
    const writes = acquiresOf(message);
    if (message.kind === "writeAll") {
      // The locks of a set are each held by themselves.
      if (writes.some(({ at }) => permitOf(at.sort) === undefined)) return;
      this.#are(writes.map(({ uuid }) => uuid));
      return;
    }
    for (const write of writes) {
      // A further copy says nothing new.
      if (!("from" in write) || !this.#all.has(write.from) || this.#all.has(write.uuid)) continue;
      this.#are(this.of(write.from).map((uuid) => (uuid === write.from ? write.uuid : uuid)));
    }
  }

  /** The uuids on the rows of the lock that has this one, itself among them. */
  of(uuid: string): readonly string[] {
    return this.#all.get(uuid) ?? [uuid];
  }

  #are(uuids: readonly string[]): void {
    for (const uuid of uuids) this.#all.set(uuid, uuids);
  }
}
