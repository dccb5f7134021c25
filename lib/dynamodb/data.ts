import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { marshall, unmarshall } from "@aws-sdk/util-dynamodb";
import { LockConfigError } from "../errors.js";
import type { LockData } from "../lock-info.js";

/** DynamoDB's limit for an item, less what the row's own attributes may need with the longest name and owner. */
const MAX_DATA_BYTES = (400 - 8) * 1_024;
/** How many lists and maps may stand inside one another, `data` itself included: with what they hold, 32 levels. */
const MAX_DEPTH = 31;
const MAX_DIGITS = 38;
const LEAST_NUMBER = 1e-130;
const TOO_GREAT_NUMBER = 1e126;

/** Containers that `value` stands in, from the outside in: one that comes twice is a circle. */
type Containers = ReadonlySet<object>;

/**
 * The caller's attributes as DynamoDB stores them.
 *
 * @throws {@link LockConfigError} for what it cannot store, with the path of the value: `data.jobs.0.at`.
 */
export function marshalledData(data: LockData): AttributeValue {
  if (!isPlain(data)) throw new LockConfigError("data", data, "must be a plain object, which is stored as a map");
  const bytes = sizeOf(data, "data", new Set());
  if (bytes > MAX_DATA_BYTES) {
    throw new LockConfigError(
      "data",
      `${bytes} bytes`,
      `must be at most ${MAX_DATA_BYTES} bytes: an item has 400 KB, of which the row needs some for itself`,
    );
  }
  return { M: marshall(data, { allowImpreciseNumbers: true }) };
}

/** Integers beyond 2^53 become bigint; other numbers become number, with what precision that leaves. */
export function unmarshalledData(map: Record<string, AttributeValue>): LockData {
  return unmarshall(map, { wrapNumbers: numberOf });
}

/** A number of DynamoDB's as it is wherever JavaScript has a value for it. */
export function numberOf(text: string): number | bigint {
  const value = Number(text);
  return Number.isSafeInteger(value) || !/^-?\d+$/.test(text) ? value : BigInt(text);
}

/** The size of a value by DynamoDB's rules. @throws {@link LockConfigError} if it cannot be stored. */
function sizeOf(value: unknown, path: string, within: Containers): number {
  switch (typeof value) {
    case "string":
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
  throw new LockConfigError(
    path,
    value,
    "must be a number that DynamoDB can store: 0, or of a magnitude from 1e-130 to 1e126",
  );
}

function sizeOfBigInt(value: bigint, path: string): number {
  const digits = `${value}`.replace("-", "");
  if (digits.replace(/0+$/, "").length <= MAX_DIGITS && digits.length <= 126) return sizeOfDigits(digits);
  throw new LockConfigError(path, value, `must have at most ${MAX_DIGITS} digits, DynamoDB's limit for a number`);
}

/** A byte for two significant digits, and one or two more. */
function sizeOfDigits(number: string): number {
  const significant = number.replace(/e.*$/, "").replace(/\D/g, "").replace(/^0+/, "").replace(/0+$/, "");
  return Math.ceil(significant.length / 2) + 2;
}

function sizeOfObject(value: object, path: string, within: Containers): number {
  if (value instanceof Uint8Array) return value.byteLength;
  if (value instanceof Set) return sizeOfSet(value, path);
  const list = Array.isArray(value);
  if (!list && !isPlain(value)) {
    throw new LockConfigError(
      path,
      value,
      "must be a plain object, array, Set or Uint8Array: DynamoDB stores no class instances",
    );
  }
  if (within.has(value)) throw new LockConfigError(path, value, "must not contain itself");
  if (within.size >= MAX_DEPTH) {
    throw new LockConfigError(path, value, `must not be nested deeper than ${MAX_DEPTH} levels, DynamoDB's limit`);
  }
  const inside = new Set(within).add(value);
  let bytes = 3;
  // Array.from, because entries() of an array with holes would step over them, and the marshaller does not.
  for (const [key, member] of Object.entries(list ? Array.from(value) : value)) {
    if (!list) checkKey(key, path, value);
    bytes += 1 + (list ? 0 : Buffer.byteLength(key)) + sizeOf(member, `${path}.${key}`, inside);
  }
  return bytes;
}

function checkKey(key: string, path: string, value: unknown): void {
  if (key === "") throw new LockConfigError(path, value, "must not have a property whose name is empty");
  // The SDK's marshaller takes these two for what they are on every object.
  if (key !== "constructor" && key !== "__proto__") return;
  throw new LockConfigError(`${path}.${key}`, value, "must be called otherwise");
}

/** DynamoDB knows sets of strings, of numbers and of binaries: not empty, not mixed, each member once. */
function sizeOfSet(set: ReadonlySet<unknown>, path: string): number {
  const kinds = new Set<string>();
  const members = new Set<string>();
  let bytes = 3;
  for (const member of set) {
    kinds.add(kindOf(member));
    members.add(member instanceof Uint8Array ? Buffer.from(member).toString("base64") : String(member));
    bytes += 1 + sizeOf(member, `${path} (a member)`, new Set());
  }
  if (kinds.size !== 1 || kinds.has("other") || members.size < set.size) {
    throw new LockConfigError(
      path,
      [...set],
      "must be a set that DynamoDB can store: not empty, and only strings, only numbers, only bigints or only Uint8Arrays, each once",
    );
  }
  return bytes;
}

function kindOf(value: unknown): string {
  if (value instanceof Uint8Array) return "binary";
  return ["string", "number", "bigint"].includes(typeof value) ? typeof value : "other";
}

function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || (Object.getPrototypeOf(prototype) === null && prototype.constructor?.name === "Object");
}
