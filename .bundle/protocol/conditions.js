export const NO_ITEM = { kind: "noItem" };
export const missing = (attribute) => ({ kind: "missing", attribute });
export const isString = (attribute) => ({ kind: "type", attribute, type: "string" });
export const isNumber = (attribute) => ({ kind: "type", attribute, type: "number" });
export const isMap = (attribute) => ({ kind: "type", attribute, type: "map" });
export const within = (attribute, range) => ({ kind: "within", attribute, range });
export const equal = (attribute, to) => ({ kind: "equal", attribute, to });
export const less = (attribute, to) => ({ kind: "less", attribute, to });
export const greater = (attribute, to) => ({
    kind: "greater",
    attribute,
    to,
});
export const all = (...of) => ({ kind: "all", of });
export const any = (...of) => ({ kind: "any", of });
export function holds(condition, item, values = {}) {
    switch (condition.kind) {
        case "noItem":
            return item === undefined;
        case "missing":
            return valueIn(item, condition.attribute) === undefined;
        case "type":
            return typeOf(valueIn(item, condition.attribute)) === condition.type;
        case "equal":
        case "less":
        case "greater": {
            const { kind, attribute, to } = condition;
            return compares(kind, valueIn(item, attribute), typeof to === "object" ? values[to.value] : to);
        }
        case "within": {
            const { attribute, range } = condition;
            const value = valueIn(item, attribute);
            return typeOf(value) === "number" && value >= range.least && value <= range.most;
        }
        case "all":
            return condition.of.every((part) => holds(part, item, values));
        case "any":
            return condition.of.some((part) => holds(part, item, values));
        default:
            return condition;
    }
}
function valueIn(item, path) {
    const dot = path.indexOf(".");
    if (dot < 0)
        return item?.[path];
    const map = item?.[path.slice(0, dot)];
    return typeOf(map) === "map" ? map[path.slice(dot + 1)] : undefined;
}
function compares(how, value, to) {
    if (to === undefined || typeOf(value) !== typeOf(to))
        return false;
    const operand = value;
    if (how === "less")
        return operand < to;
    if (how === "greater")
        return operand > to;
    return !(operand < to) && !(operand > to);
}
function typeOf(value) {
    if (typeof value === "string")
        return "string";
    if (typeof value === "number" || typeof value === "bigint")
        return "number";
    if (typeof value !== "object" || value === null)
        return undefined;
    return Array.isArray(value) || value instanceof Set || value instanceof Uint8Array ? undefined : "map";
}
