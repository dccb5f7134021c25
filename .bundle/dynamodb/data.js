import { marshall } from "@aws-sdk/util-dynamodb";
import { LockConfigError } from "../errors.js";
import { isWellFormed, NOT_WELL_FORMED } from "../options/check.js";
const MAX_DATA_BYTES = (400 - 8) * 1_024;
const MAX_RESULT_BYTES = 350 * 1_024;
const MAX_DEPTH = 31;
const MAX_DIGITS = 38;
const LEAST_NUMBER = 1e-130;
const TOO_GREAT_NUMBER = 1e126;
export function marshalledData(data) {
    if (!isPlain(data))
        throw new LockConfigError("data", data, "must be a plain object, which is stored as a map");
    const bytes = bytesOf(data);
    if (bytes > MAX_DATA_BYTES) {
        const remedy = `must be at most ${MAX_DATA_BYTES} bytes: an item has 400 KB, of which the row needs some for itself`;
        throw new LockConfigError("data", `${bytes} bytes`, remedy);
    }
    return { M: marshall(data, { allowImpreciseNumbers: true }) };
}
export function checkResult(data) {
    const bytes = bytesOf(data);
    if (bytes > MAX_RESULT_BYTES) {
        throw new LockConfigError("value", `${bytes} bytes`, `must be at most ${MAX_RESULT_BYTES} bytes to be shared`);
    }
    checkComesBack(data, "data");
}
function checkComesBack(value, path) {
    if (typeof value === "number" || typeof value === "bigint") {
        if (Object.is(numberOf(`${value}`), value) && !Object.is(value, -0))
            return;
        const remedy = Object.is(value, -0)
            ? "must not be -0, which would come back as 0"
            : "must be a number up to 2^53 - 1, or a bigint beyond, either way, or it would come back as the other";
        throw new LockConfigError(path, value, remedy);
    }
    if (typeof value !== "object" || value === null)
        return;
    checkIsOfBaseClass(value, path);
    if (value instanceof Set)
        for (const member of value)
            checkComesBack(member, `${path} (a member)`);
    if (value instanceof Uint8Array)
        return;
    for (const [key, member] of Object.entries(value))
        checkComesBack(member, `${path}.${key}`);
}
const PROTOTYPES = { array: 2, set: 2, bytes: 3, object: 1 };
function checkIsOfBaseClass(value, path) {
    const kind = value instanceof Uint8Array ? "bytes" : value instanceof Set ? "set" : Array.isArray(value) ? "array" : "object";
    let depth = 0;
    for (let next = Object.getPrototypeOf(value); next !== null; next = Object.getPrototypeOf(next))
        depth += 1;
    if (depth === PROTOTYPES[kind] || (kind === "object" && depth === 0))
        return;
    const remedy = `must be an array, a Set or a Uint8Array itself: this ${value.constructor?.name} would come back as one`;
    throw new LockConfigError(path, value, remedy);
}
export function storedData(data) {
    return unmarshalledData(marshalledData(data).M ?? {});
}
export function unmarshalledData(map) {
    return Object.fromEntries(Object.entries(map).map(([name, value]) => [name, unmarshalled(value)]));
}
function unmarshalled(value = { NULL: true }) {
    const { S, N, BOOL, B, L, M, SS, NS, BS } = value;
    if (N !== undefined)
        return numberOf(N);
    if (L !== undefined)
        return L.map((member) => unmarshalled(member));
    if (M !== undefined)
        return unmarshalledData(M);
    if (NS !== undefined)
        return new Set(NS.map(numberOf));
    const set = SS ?? BS;
    return set === undefined ? (S ?? BOOL ?? B ?? null) : new Set(set);
}
export function numberOf(text) {
    const value = Number(text) + 0;
    if (Number.isSafeInteger(value))
        return value;
    const [, first = "", others = "", exponent] = /^(-?\d)\.?(\d*)e\+(\d+)$/.exec(text) ?? [];
    const digits = exponent === undefined ? text : first + others.padEnd(Number(exponent), "0");
    return /^-?\d+$/.test(digits) ? BigInt(digits) : value;
}
export function bytesOf(value, path = "data", within = new Set()) {
    switch (typeof value) {
        case "string":
            checkText(value, path);
            return Buffer.byteLength(value);
        case "boolean":
            return 1;
        case "number":
            return sizeOfNumber(value, path);
        case "bigint":
            return sizeOfBigInt(value, path);
        case "object":
            return value === null ? 1 : sizeOfObject(value, path, within);
        default:
            throw new LockConfigError(path, value, "must be a value that DynamoDB can store: leave it out, or use null");
    }
}
function sizeOfNumber(value, path) {
    const magnitude = Math.abs(value);
    if (magnitude === 0 || (magnitude >= LEAST_NUMBER && magnitude < TOO_GREAT_NUMBER))
        return sizeOfDigits(`${value}`);
    const remedy = "must be a number that DynamoDB can store: 0, or of a magnitude from 1e-130 to 1e126";
    throw new LockConfigError(path, value, remedy);
}
function sizeOfBigInt(value, path) {
    const digits = `${value}`.replace("-", "");
    if (digits.replace(/0+$/, "").length <= MAX_DIGITS && digits.length <= 126)
        return sizeOfDigits(digits);
    throw new LockConfigError(path, value, `must have at most ${MAX_DIGITS} digits, DynamoDB's limit for a number`);
}
function sizeOfDigits(number) {
    const significant = number.replace(/e.*$|\D/g, "").replace(/^0+|0+$/g, "");
    return Math.ceil(significant.length / 2) + 2;
}
function sizeOfObject(value, path, within) {
    checkLosesNothing(value, path);
    if (value instanceof Uint8Array)
        return value.byteLength;
    if (value instanceof Set)
        return sizeOfSet(value, path);
    const list = Array.isArray(value);
    if (!list && !isPlain(value)) {
        const remedy = "must be a plain object, array, Set or Uint8Array: DynamoDB stores no class instances, and of a date what " +
            "date.toISOString() or date.getTime() gives";
        throw new LockConfigError(path, value, remedy);
    }
    if (within.has(value))
        throw new LockConfigError(path, value, "must not contain itself");
    if (within.size >= MAX_DEPTH) {
        throw new LockConfigError(path, value, `must not be nested deeper than ${MAX_DEPTH} levels, DynamoDB's limit`);
    }
    const inside = new Set(within).add(value);
    let bytes = 3;
    for (const [key, member] of Object.entries(list ? Array.from(value) : value)) {
        if (!list)
            checkKey(key, path, value);
        bytes += 1 + (list ? 0 : Buffer.byteLength(key)) + bytesOf(member, `${path}.${key}`, inside);
    }
    return bytes;
}
function checkLosesNothing(value, path) {
    const symbol = Object.getOwnPropertySymbols(value).find((key) => Object.prototype.propertyIsEnumerable.call(value, key));
    const lost = symbol ?? (Array.isArray(value) || value instanceof Set ? propertyOf(value) : undefined);
    if (lost === undefined)
        return;
    const remedy = `must have no property ${String(lost)}, which DynamoDB does not store: copy what is to be stored into a plain object`;
    throw new LockConfigError(path, value, remedy);
}
function propertyOf(value) {
    const last = Object.keys(value).at(-1);
    return Array.isArray(value) && last === `${Number(last) >>> 0}` ? undefined : last;
}
function checkKey(key, path, value) {
    checkText(key, path);
    if (key === "")
        throw new LockConfigError(path, value, "must not have a property whose name is empty");
    if (key !== "constructor" && key !== "__proto__")
        return;
    throw new LockConfigError(`${path}.${key}`, value, "must be called otherwise");
}
function checkText(text, path) {
    if (!isWellFormed(text))
        throw new LockConfigError(path, text, NOT_WELL_FORMED);
}
function sizeOfSet(set, path) {
    const members = [...set];
    const sizes = members.map((member) => 1 + bytesOf(member, `${path} (a member)`));
    const kinds = new Set(members.map((member) => (member instanceof Uint8Array ? "binary" : typeof member)));
    const isOfOneKind = kinds.size === 1 && ["binary", "string", "number", "bigint"].some((kind) => kinds.has(kind));
    const values = members.map((member) => (member instanceof Uint8Array ? Buffer.from(member).toString("hex") : member));
    if (!isOfOneKind || new Set(values).size < set.size) {
        const remedy = "must be a set that DynamoDB can store: not empty, and only strings, only numbers, only bigints or only " +
            "Uint8Arrays, each once";
        throw new LockConfigError(path, members, remedy);
    }
    return sizes.reduce((total, size) => total + size, 3);
}
function isPlain(value) {
    if (Object.prototype.toString.call(value) === "[object Arguments]")
        return false;
    const prototype = Object.getPrototypeOf(value);
    return prototype === null || (Object.getPrototypeOf(prototype) === null && prototype.constructor?.name === "Object");
}
