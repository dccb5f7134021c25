import * as z from "zod/mini";
import { LockConfigError } from "../errors.js";
import { MAX_TIMER_MS } from "../time/clock.js";
import { aliasOf, clientOptionNear, elsewhere, nearest, withoutSecrets } from "./near-miss.js";
export const NONE = Object.freeze({});
export function lazily(make) {
    let made;
    return () => {
        made ??= make();
        return made;
    };
}
export function exactly() {
    return (shape) => shape;
}
export function optionsCheck(takers, shape, remedies = {}) {
    const shapeOf = lazily(shape);
    TAKERS.push({ takers, names: () => Object.keys(shapeOf()) });
    const check = valueCheck(() => objectOf(shapeOf(), remedies), "options");
    return (options = {}) => {
        if (options !== NONE)
            check(options);
        return options;
    };
}
const isObject = (value) => Object.prototype.toString.call(value) === "[object Object]";
export const strings = () => z.custom((value) => isObject(value) && Object.values(value).every((member) => typeof member === "string"), "must be an object whose values are strings");
export function objectOf(shape, remedies = {}) {
    const known = Object.keys(shape);
    return z
        .custom(isObject, { error: () => `must be an object with options${requiredOf(shape)}`, abort: true })
        .check(({ value, issues }) => {
        const given = Object.entries(value).filter(([, option]) => option !== undefined);
        const [unknown] = given.find(([name]) => !known.includes(name)) ?? [];
        if (unknown !== undefined) {
            const message = Object.hasOwn(remedies, unknown) ? remedies[unknown] : unknownOption(unknown, known);
            issues.push({ code: "custom", input: value, path: [unknown], message });
        }
        for (const [name, schema] of Object.entries(shape)) {
            const { error } = schema.safeParse(value[name]);
            const missing = error !== undefined && value[name] === undefined ? "is required, and " : "";
            for (const { message, path } of error?.issues ?? []) {
                issues.push({ code: "custom", input: value, path: [name, ...path], message: `${missing}${message}` });
            }
        }
    });
}
function requiredOf(shape) {
    const required = Object.entries(shape).filter(([, schema]) => !schema.safeParse(undefined).success);
    return required.length === 0 ? "" : `, of which ${required.map(([name]) => name).join(" and ")} is required`;
}
const TAKERS = [];
function unknownOption(name, here) {
    const meant = here.find((option) => option === aliasOf(name)) ?? nearest(name, here);
    if (meant !== undefined)
        return `is not an option: did you mean ${meant}?`;
    const takers = takersOf(name);
    if (takers !== "")
        return `is not an option here, but one of ${takers}`;
    const ofClient = clientOptionNear(name);
    if (ofClient !== undefined)
        return elsewhere(ofClient);
    const everywhere = TAKERS.flatMap(({ names }) => names());
    const other = nearest(name, everywhere);
    if (other === undefined)
        return "is not an option: check its spelling";
    return `is not an option here: ${other} is one of ${takersOf(other)}`;
}
function takersOf(name) {
    return [...new Set(TAKERS.flatMap(({ takers, names }) => (names().includes(name) ? takers : [])))].join(", ");
}
export const NOT_WELL_FORMED = "must not contain half of a surrogate pair, which DynamoDB does not store as it is";
export function isWellFormed(value) {
    return !/\p{Surrogate}/u.test(value);
}
export const text = () => z
    .custom((value) => typeof value === "string", { error: "must be a string", abort: true })
    .check(z.refine(isWellFormed, NOT_WELL_FORMED));
export const duration = (least, most = MAX_TIMER_MS, why = "the longest that a timer can run") => z
    .custom(Number.isInteger, { error: "must be a whole number of milliseconds", abort: true })
    .check(z.minimum(least, `must be at least ${least} ms`), z.maximum(most, `must be at most ${most} ms, ${why}`));
export const durationOrForever = (least) => {
    const finite = duration(least);
    return z.custom((value) => value === Number.POSITIVE_INFINITY || z.safeParse(finite, value).success, `must be Infinity or a whole number of milliseconds from ${least} to ${MAX_TIMER_MS}`);
};
export const flag = () => z.optional(z.custom((value) => typeof value === "boolean", "must be true or false"));
export const withMethods = (what, methods) => z.custom((value) => methods.every((method) => typeof Object(value)[method] === "function"), `must be ${what}`);
export const signal = () => z.optional(withMethods("an AbortSignal", ["addEventListener", "throwIfAborted"]));
export const lockData = () => z.custom((value) => typeof value === "object" && value !== null && !Array.isArray(value), "must be an object whose properties DynamoDB can store");
export function valueCheck(make, what) {
    const schema = lazily(make);
    return (value) => {
        const [issue] = schema().safeParse(value).error?.issues ?? [];
        if (issue === undefined)
            return;
        const { path } = issue;
        const refused = path.reduce((inner, key) => inner[key], value);
        const option = path.map(String).join(".") || what;
        throw new LockConfigError(option, withoutSecrets(option, refused), issue.message);
    };
}
