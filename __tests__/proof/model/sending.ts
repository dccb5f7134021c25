import type { Memory } from "../../../lib/protocol/row.js";
import type { TokenDraw, Vacate } from "../../../lib/protocol/writes.js";
import type { Host, Limits } from "./limits.js";
import { type Sent, withMessage } from "./messages.js";
import { type Claimant, type State, type Who, withClaimant } from "./state.js";
import type { Model, Step } from "./step.js";
import { addressOf } from "./watching.js";

/** The first copy leaves: the stopwatch is read now. */
export function sends(model: Model, state: State, who: Who, write: Sent, sender: Claimant): Step {
  const message = model.messages.of(who, write);
  const sentAt = write.kind === "vacate" ? 0 : model.rules.leaseWatch(state.time, sender);
  const request = { message, sentAt, repeated: false, phase: "sent", answer: undefined, applied: false } as const;
  const network = withMessage(state.network, message);
  return { what: "sends", who, message, next: withClaimant({ ...state, network }, who, { ...sender, request }) };
}

/** What the rows of an exploration remember. */
export const memoryIn = ({ fenced }: Limits): Memory => (fenced ? "fence" : "nothing");

/** A token of the model counts up from what the row has: its hosts' clocks tell nothing of it. */
export const tokenIn = ({ fenced }: Limits): TokenDraw | undefined =>
  fenced ? { least: 0, seed: 0, isBehind: false } : undefined;

export const releaseOf = (limits: Limits, { side }: Host, uuid: string): Vacate => {
  return { kind: "vacate", at: addressOf(side, uuid), uuid, leaves: { kind: "free" }, remembers: memoryIn(limits) };
};
