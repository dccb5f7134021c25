import { inspect } from "node:util";
export const SHOWN = Symbol.for("nodejs.util.inspect.custom");
export function shownAs(kind, json, options) {
    return `${kind} ${inspect(json, options)}`;
}
