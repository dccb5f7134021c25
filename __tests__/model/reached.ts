import { mayTake } from "../../lib/protocol/may-take.js";
import type { State } from "./state.js";
import type { Event } from "./step.js";
import { rowOf } from "./watching.js";

/** How many transitions were of each kind: an exploration that never took a row over proves little. */
export class Reached {
  readonly #counts = new Map<string, number>();

  count(event: Event, before: State): void {
    const what = nameOf(event, before);
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + 1);
  }

  get names(): readonly string[] {
    return [...this.#counts.keys()].sort();
  }
}

function nameOf(event: Event, before: State): string {
  switch (event.kind) {
    case "time passes":
      return event.suspended === undefined ? "time passes" : "a host is suspended";
    case "hears":
    case "sees the flags":
      return event.meaning;
    case "sends":
      return `sends ${event.message.write.kind}`;
    case "arrives": {
      const { write } = event.message;
      const which = event.late ? "late " : "";
      if (!event.applied) return `${which}${write.kind} refused`;
      const row = before.rows[write.at.sort];
      if (write.kind !== "take" || row?.uuid === undefined) return `${which}${write.kind} applied`;
      const byTime = mayTake(rowOf(row), { earliest: write.knowledge.earliest });
      return `${which}take applied: takeover ${byTime ? "by the time" : "by watching"}`;
    }
    default:
      return event.kind;
  }
}
