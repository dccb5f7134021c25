import { holds } from "./conditions.js";
import { askedBy, leftBy, next } from "./rules.js";
export function apply(item, write) {
    const { condition, values } = askedBy(write);
    if (!holds(condition, item, values))
        return { kind: "refused", by: item };
    return { kind: "applied", before: item, after: changed(item, leftBy(write)) };
}
function changed(item, effect) {
    switch (effect.kind) {
        case "nothing":
            return item;
        case "delete":
            return undefined;
        case "put":
            return present(effect.attributes);
        case "update": {
            const { set, remove, count } = effect;
            const counted = count && { [count.attribute]: next(item?.[count.attribute], count.seed) };
            const removed = Object.fromEntries(remove.map((attribute) => [attribute, undefined]));
            return present({ ...item, ...present(set), ...counted, ...removed });
        }
        default:
            return effect;
    }
}
function present(attributes) {
    return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined));
}
