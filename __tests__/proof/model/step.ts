import type { Applied } from "../../../lib/protocol/apply.js";
import type { Attributes } from "../../../lib/protocol/row.js";
import type { Limits } from "./limits.js";
import type { Message, Messages } from "./messages.js";
import type { Rules } from "./rules.js";
import type { StepOf } from "./search.js";
import type { State, Who } from "./state.js";

/** The promises. A step that breaks one names it. */
export type Invariant =
  | "one holder"
  | "no more holders than permits"
  | "readers or one writer"
  | "expires never moves back under one uuid"
  | "an ended uuid stays ended"
  | "a guard commits for its section alone"
  | "a token is resumed once"
  | "a release tells the truth"
  | "an own write is recognised";

/** What an answer means to the claimant that has waited for it. */
export type Meaning =
  | "a section begins"
  | "too late for a section"
  | "its flag stands"
  | "a reader gives way"
  | "a writer waits"
  | "a dead reader is removed"
  | "a dead writer is passed by"
  | "a dead writer is removed"
  | "handed off"
  | "the token is spent"
  | "somebody else has it"
  | "renewed"
  | "unknown"
  | "lost"
  | "released"
  | "a loss is reported";

/** What happens at one moment, to whom, and with which message. */
export interface Step extends StepOf<State> {
  readonly who?: Who;
  readonly message?: Message;
  readonly broken?: Invariant | undefined;
}

/** One exploration: by which rules, and how far. */
export interface Model {
  readonly rules: Rules;
  readonly limits: Limits;
  readonly messages: Messages;
  /** What the table has done with each message that met each row. */
  readonly outcomes: Map<Attributes | undefined, Applied[]>;
}
