import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import { LockConfigError } from "../errors.js";
import type { LockData } from "../lock-info.js";
import { isWellFormed, NOT_WELL_FORMED } from "../options/check.js";

/** The most that the other attributes of a row need. */
const ROW_BYTES = 8 * 1_024;
/** DynamoDB's limit for an item, less that. */
const MAX_DATA_BYTES = 400 * 1_024 - ROW_BYTES;
/** DynamoDB's limit for all items of a transaction. */
const MAX_TRANSACTION_BYTES = 4 * 1_024 * 1_024;
/** The most that the value of a flight may need: a row has 400 KB, and a poll for the value reads all of it. */
const MAX_RESULT_BYTES = 350 * 1_024;
/** How deep lists and maps may be nested, `data` itself included. With their scalars that is DynamoDB's limit of 32. */
const MAX_DEPTH = 31;
const MAX_DIGITS = 38;
const LEAST_NUMBER = 1e-130;
const TOO_GREAT_NUMBER = 1e126;

/**
 * The caller's attributes as DynamoDB stores them.
 *
 * @param rows how many rows store it, by one transaction.
 * @throws {@link LockConfigError} for a value that it cannot store, with its path: `data.jobs.0.at`.
 */
export function marshalledData(data: LockData, rows = 1): AttributeValue {
  if (!isPlain(data)) throw new LockConfigError("data", data, "must be a plain object, which is stored as a map");
  const bytes = bytesOf(data);
  if (bytes > MAX_DATA_BYTES) {
    const remedy = `must be at most ${MAX_DATA_BYTES} bytes: an item has 400 KB, of which the row needs some for itself`;
    throw new LockConfigError("data", `${bytes} bytes`, remedy);
  }
  const share = Math.floor(MAX_TRANSACTION_BYTES / rows) - ROW_BYTES;
  if (bytes > share) {
    const remedy = `must be at most ${share} bytes where ${rows} rows store it: a transaction carries 4 MB. Store less, or lock fewer at once`;
    throw new LockConfigError("data", `${bytes} bytes`, remedy);
  }
  return { M: marshall(data, { allowImpreciseNumbers: true }) };
}

/** @throws {@link LockConfigError} for a flight's value that cannot be stored, or would come back as something else. */
export function checkResult(data: LockData): void {
  const bytes = bytesOf(data);
  if (bytes > MAX_RESULT_BYTES) {
    throw new LockConfigError("value", `${bytes} bytes`, `must be at most ${MAX_RESULT_BYTES} bytes to be shared`);
  }
  checkComesBack(data, "data");
}

/**
 * Checks that a copy which went through the table is what the value is. DynamoDB has one type of number and one zero: a small
 * bigint would come back as a number, and a large number as a bigint. It knows no subclasses of arrays, sets and bytes.
 */
function checkComesBack(value: unknown, path: string): void {
  if (typeof value === "number" || typeof value === "bigint") {
    if (Object.is(numberOf(`${value}`), value) && !Object.is(value, -0)) return;
    const remedy = Object.is(value, -0)
      ? "must not be -0, which would come back as 0"
      : "must be a number up to 2^53 - 1, or a bigint beyond, either way, or it would come back as the other";
    throw new LockConfigError(path, value, remedy);
  }
  if (typeof value !== "object" || value === null) return;
  checkIsOfBaseClass(value, path);
  if (value instanceof Set) for (const member of value) checkComesBack(member, `${path} (a member)`);
  if (value instanceof Uint8Array) return;
  for (const [key, member] of Object.entries(value)) checkComesBack(member, `${path}.${key}`);
}

/** The prototypes of an array, a set or bytes, the object's included: a subclass has more, in every realm. */
const PROTOTYPES = { array: 2, set: 2, bytes: 3, object: 1 };

function checkIsOfBaseClass(value: object, path: string): void {
  const kind =
    value instanceof Uint8Array ? "bytes" : value instanceof Set ? "set" : Array.isArray(value) ? "array" : "object";
  let depth = 0;
  for (let next = Object.getPrototypeOf(value); next !== null; next = Object.getPrototypeOf(next)) depth += 1;
  // An object without a prototype holds what one with the common prototype does.
  if (depth === PROTOTYPES[kind] || (kind === "object" && depth === 0)) return;
  const remedy = `must be an array, a Set or a Uint8Array itself: this ${value.constructor?.name} would come back as one`;
  throw new LockConfigError(path, value, remedy);
}

/** The caller's attributes as they come back from the table. @throws {@link LockConfigError} as {@link marshalledData} does. */
export function storedData(data: LockData): LockData {
  return unmarshalledData(marshalledData(data).M ?? {});
}

/**
 * Integers beyond 2^53 become bigint. Other numbers become number, which may round them. Whatever an attribute is called, it
 * becomes a property of the object's own: `__proto__` too, which the SDK's unmarshaller would make its prototype.
 */
export function unmarshalledData(map: Record<string, AttributeValue>): LockData {
  return Object.fromEntries(Object.entries(map).map(([name, value]) => [name, unmarshalled(value)]));
}

/** @param value undefined where the SDK gives no value: it has none for an attribute called `__proto__`. */
function unmarshalled(value: AttributeValue = { NULL: true }): unknown {
  const { S, N, BOOL, B, L, M, SS, NS, BS } = value;
  if (N !== undefined) return numberOf(N);
  if (L !== undefined) return L.map((member) => unmarshalled(member));
  if (M !== undefined) return unmarshalledData(M);
  if (NS !== undefined) return new Set(NS.map(numberOf));
  const set: readonly (string | Uint8Array)[] | undefined = SS ?? BS;
  return set === undefined ? (S ?? BOOL ?? B ?? null) : new Set(set);
}

/** A number of DynamoDB's as it is wherever JavaScript has a value for it. DynamoDB has one zero. */
export function numberOf(text: string): number | bigint {
  const value = Number(text) + 0;
  if (Number.isSafeInteger(value)) return value;
  // JavaScript writes numbers from 1e21 on with an exponent, and DynamoDB gives back all of their digits.
  const [, first = "", others = "", exponent] = /^(-?\d)\.?(\d*)e\+(\d+)$/.exec(text) ?? [];
  const digits = exponent === undefined ? text : first + others.padEnd(Number(exponent), "0");
  return /^-?\d+$/.test(digits) ? BigInt(digits) : value;
}

/**
 * The size of a value by DynamoDB's rules.
 *
 * @param within the containers around the value: one that contains itself is among them.
 * @throws {@link LockConfigError} if the value cannot be stored.
 */
export function bytesOf(value: unknown, path = "data", within: ReadonlySet<object> = new Set()): number {
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

function sizeOfNumber(value: number, path: string): number {
  const magnitude = Math.abs(value);
  if (magnitude === 0 || (magnitude >= LEAST_NUMBER && magnitude < TOO_GREAT_NUMBER)) return sizeOfDigits(`${value}`);
  const remedy = "must be a number that DynamoDB can store: 0, or of a magnitude from 1e-130 to 1e126";
  throw new LockConfigError(path, value, remedy);
}

function sizeOfBigInt(value: bigint, path: string): number {
  const digits = `${value}`.replace("-", "");
  if (digits.replace(/0+$/, "").length <= MAX_DIGITS && digits.length <= 126) return sizeOfDigits(digits);
  throw new LockConfigError(path, value, `must have at most ${MAX_DIGITS} digits, DynamoDB's limit for a number`);
}

/** One byte for every two significant digits, and at most two more. */
function sizeOfDigits(number: string): number {
  const significant = number.replace(/e.*$|\D/g, "").replace(/^0+|0+$/g, "");
  return Math.ceil(significant.length / 2) + 2;
}

function sizeOfObject(value: object, path: string, within: ReadonlySet<object>): number {
  checkLosesNothing(value, path);
  if (value instanceof Uint8Array) return value.byteLength;
  if (value instanceof Set) return sizeOfSet(value, path);
  const list = Array.isArray(value);
  if (!list && !isPlain(value)) {
    const remedy =
      "must be a plain object, array, Set or Uint8Array: DynamoDB stores no class instances, and of a date what " +
      "date.toISOString() or date.getTime() gives";
    throw new LockConfigError(path, value, remedy);
  }
  if (within.has(value)) throw new LockConfigError(path, value, "must not contain itself");
  if (within.size >= MAX_DEPTH) {
    throw new LockConfigError(path, value, `must not be nested deeper than ${MAX_DEPTH} levels, DynamoDB's limit`);
  }
  const inside = new Set(within).add(value);
  let bytes = 3;
  // Array.from turns the holes of an array into undefined. Object.entries would skip them, and the marshaller does not.
  for (const [key, member] of Object.entries(list ? Array.from(value) : value)) {
    if (!list) checkKey(key, path, value);
    bytes += 1 + (list ? 0 : Buffer.byteLength(key)) + bytesOf(member, `${path}.${key}`, inside);
  }
  return bytes;
}

/**
 * DynamoDB stores the properties of an object, and the members of an array or a set. What else a value carries would be lost in
 * silence: properties under symbols, and those of an array or a set, such as the `groups` of a match of a RegExp.
 */
function checkLosesNothing(value: object, path: string): void {
  const symbol = Object.getOwnPropertySymbols(value).find((key) =>
    Object.prototype.propertyIsEnumerable.call(value, key),
  );
  const lost = symbol ?? (Array.isArray(value) || value instanceof Set ? propertyOf(value) : undefined);
  if (lost === undefined) return;
  const remedy = `must have no property ${String(lost)}, which DynamoDB does not store: copy what is to be stored into a plain object`;
  throw new LockConfigError(path, value, remedy);
}

/** The name of a property of an array or a set that is none of its members. Indexes come first among the keys. */
function propertyOf(value: readonly unknown[] | ReadonlySet<unknown>): string | undefined {
  const last = Object.keys(value).at(-1);
  return Array.isArray(value) && last === `${Number(last) >>> 0}` ? undefined : last;
}

function checkKey(key: string, path: string, value: unknown): void {
  checkText(key, path);
  if (key === "") throw new LockConfigError(path, value, "must not have a property whose name is empty");
  // The SDK's marshaller uses these two as the properties that every object has.
  if (key !== "constructor" && key !== "__proto__") return;
  throw new LockConfigError(`${path}.${key}`, value, "must be called otherwise");
}

function checkText(text: string, path: string): void {
  if (!isWellFormed(text)) throw new LockConfigError(path, text, NOT_WELL_FORMED);
}

/** DynamoDB has sets of strings, of numbers and of binaries: not empty, not mixed, and without duplicates. */
function sizeOfSet(set: ReadonlySet<unknown>, path: string): number {
  const members = [...set];
  const sizes = members.map((member) => 1 + bytesOf(member, `${path} (a member)`));
  const kinds = new Set<string>(members.map((member) => (member instanceof Uint8Array ? "binary" : typeof member)));
  const isOfOneKind = kinds.size === 1 && ["binary", "string", "number", "bigint"].some((kind) => kinds.has(kind));
  // Sets compare bytes by identity, and DynamoDB by value.
  const values = members.map((member) => (member instanceof Uint8Array ? Buffer.from(member).toString("hex") : member));
  if (!isOfOneKind || new Set(values).size < set.size) {
    const remedy =
      "must be a set that DynamoDB can store: not empty, and only strings, only numbers, only bigints or only " +
      "Uint8Arrays, each once";
    throw new LockConfigError(path, members, remedy);
  }
  return sizes.reduce((total, size) => total + size, 3);
}

function isPlain(value: object): boolean {
  // The `arguments` of a function look like a plain object otherwise, and would be stored as one.
  if (Object.prototype.toString.call(value) === "[object Arguments]") return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || (Object.getPrototypeOf(prototype) === null && prototype.constructor?.name === "Object");
}
