import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Diagnostics } from "../index.js";

/** Subscriptions that end together. */
export class Listening {
  readonly #ends: (() => void)[] = [];

  on<Name extends keyof Diagnostics>(channel: Name, hear: (message: Diagnostics[Name]) => void): void {
    const listener = (message: unknown): void => hear(message as Diagnostics[Name]);
    subscribe(channel, listener);
    this.#ends.push(() => unsubscribe(channel, listener));
  }

  end(): void {
    for (const end of this.#ends.splice(0)) end();
  }
}
