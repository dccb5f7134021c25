import { type InspectOptions, inspect } from "node:util";

/** The method by which `console.log()` and `util.inspect()` have an object describe itself. */
export const SHOWN: unique symbol = Symbol.for("nodejs.util.inspect.custom") as typeof SHOWN;

/** The text of an object for {@link SHOWN}: its kind, and what its `toJSON()` gives. */
export function shownAs(kind: string, json: object, options: InspectOptions): string {
  return `${kind} ${inspect(json, options)}`;
}
