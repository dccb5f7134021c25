import { holds } from "./conditions.js";
import type { Attributes } from "./row.js";
import { askedBy, leftBy, next } from "./rules.js";
import type { Effect, Write } from "./writes.js";

/** What the table did: what was there before and what is there after, or what refused. */
export type Applied =
  | { readonly kind: "applied"; readonly before: Attributes | undefined; readonly after: Attributes | undefined }
  | { readonly kind: "refused"; readonly by: Attributes | undefined };

/** What a table does with a write, at one instant and whatever the time is. */
export function apply(item: Attributes | undefined, write: Write): Applied {
  const { condition, values } = askedBy(write);
  if (!holds(condition, item, values)) return { kind: "refused", by: item };
  return { kind: "applied", before: item, after: changed(item, leftBy(write)) };
}

function changed(item: Attributes | undefined, effect: Effect): Attributes | undefined {
  switch (effect.kind) {
    case "nothing":
      return item;
    case "delete":
      return undefined;
    case "put":
      return present(effect.attributes);
    case "update": {
      const { set, remove, count } = effect;
      const counted = count && { [count.attribute]: next(item?.[count.attribute], count) };
      const removed = Object.fromEntries(remove.map((attribute) => [attribute, undefined]));
      return present({ ...item, ...present(set), ...counted, ...removed });
    }
    default:
      return effect satisfies never;
  }
}

function present(attributes: Attributes): Attributes {
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined));
}
