import type { Diagnostics } from "../../../lib/diagnostics.js";

type CallEvent = Extract<keyof Diagnostics, `dynamutex:${"asked" | "acquired" | "missed" | "failed"}`>;

/** Judges what the channels tell of calls: each asks once, and then gets all of its locks, or misses, or fails. */
export class CallJudge {
  /** How many locks of each call are to come, and how many it has asked for. */
  readonly #open = new Map<number, { readonly locks: number; left: number }>();

  /** @returns what is wrong with a message. */
  wrong(name: string, message: object): string | undefined {
    const event = name as CallEvent;
    const { call = 0 } = message as { readonly call?: number };
    const asked = this.#open.get(call);
    switch (event) {
      case "dynamutex:asked": {
        const { locks } = message as Diagnostics["dynamutex:asked"];
        this.#open.set(call, { locks, left: locks });
        return asked === undefined ? undefined : `call ${call} has asked before`;
      }
      case "dynamutex:acquired":
        if (asked === undefined) return `call ${call} gets a lock, and has not asked for it`;
        asked.left -= 1;
        if (asked.left === 0) this.#open.delete(call);
        return undefined;
      case "dynamutex:missed":
      case "dynamutex:failed":
        this.#open.delete(call);
        return asked !== undefined && asked.left === asked.locks
          ? undefined
          : `call ${call} ends, and has ended before`;
      default:
        event satisfies never;
        return undefined;
    }
  }
}
