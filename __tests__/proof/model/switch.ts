import { apply } from "../../../lib/protocol/apply.js";
import type { Attributes } from "../../../lib/protocol/row.js";
import type { Write } from "../../../lib/protocol/writes.js";
import type { Limits } from "./limits.js";
import type { Rules } from "./rules.js";
import type { Stage } from "./stages.js";
import type { Invariant } from "./step.js";

/** A rule that is switched off: by other inputs or outputs of the library's functions, or another use of them. */
export interface Switch<Bounds, Ways, Promised extends string> {
  /** The rules of the pages that it is, by their ids: see page-rules.ts of the seeded defects. */
  readonly takesOut: readonly string[];
  /** What it takes beyond the small bounds of its stage. */
  readonly more?: Partial<Bounds>;
  /** Nothing within these bounds, where another rule covers for it. */
  readonly breaks: Promised | "nothing";
  readonly off: Partial<Ways>;
}

/** Rules by what is done without them, each in the stage where it is looked for. */
export type Switches<Stages extends string, Bounds, Ways, Promised extends string> = {
  readonly [Each in Stages]?: Readonly<Record<string, Switch<Bounds, Ways, Promised>>>;
};

export type ClaimantSwitches = Switches<Stage, Limits, Rules, Invariant>;

/** The table applies another write than was sent. */
export const applies = <Kind extends Write>(
  kind: Kind["kind"],
  change: (write: Kind, row: Attributes) => { readonly write?: Write; readonly row?: Attributes },
): Partial<Rules> => ({
  apply: (row, sent) => {
    if (sent.kind !== kind || row === undefined) return apply(row, sent);
    const { write = sent, row: met = row } = change(sent as Kind, row);
    return apply(met, write);
  },
});

/** The uuid on a row: what a write names that asks for none. */
export const uuidOn = (row: Attributes, otherwise: string): string =>
  typeof row.uuid === "string" ? row.uuid : otherwise;
