/** An item's attributes as plain values, its key left out: strings, numbers, bigints where a number would be inexact. */
export type Attributes = Readonly<Record<string, unknown>>;

/** A value that a condition compares an attribute with. */
export type Operand = string | number | bigint;

/** What the named values of a condition are for one write. */
export type Values = Readonly<Record<string, Operand | undefined>>;

/**
 * What a write asks of the item that it meets, as data: {@link holds} decides it for an item in memory, and
 * `lib/dynamodb/` compiles it to a condition expression. As in DynamoDB, a comparison with an attribute that is missing,
 * or has another type, is false. `result.id` is the attribute `id` of the map `result`.
 */
export type Condition =
  /** There is no item under the key. */
  | { readonly kind: "noItem" }
  | { readonly kind: "missing"; readonly attribute: string }
  | { readonly kind: "type"; readonly attribute: string; readonly type: PlainType }
  | { readonly kind: "equal" | "less" | "greater"; readonly attribute: string; readonly to: Operand | Placeholder }
  /** A number, both ends included. */
  | { readonly kind: "within"; readonly attribute: string; readonly range: Range }
  | { readonly kind: "all" | "any"; readonly of: readonly Condition[] };

type PlainType = "string" | "number" | "map";

/** The numbers that an attribute may have. Its name tells the values of one range from those of another. */
export interface Range {
  readonly name: string;
  readonly least: number | bigint;
  readonly most: number | bigint;
}

/** A value that each write supplies under this name, so that conditions are constants, made once. */
export interface Placeholder {
  readonly value: string;
}

export const NO_ITEM: Condition = { kind: "noItem" };

export const missing = (attribute: string): Condition => ({ kind: "missing", attribute });
export const isString = (attribute: string): Condition => ({ kind: "type", attribute, type: "string" });
export const isMap = (attribute: string): Condition => ({ kind: "type", attribute, type: "map" });
export const within = (attribute: string, range: Range): Condition => ({ kind: "within", attribute, range });
export const equal = (attribute: string, to: Operand | Placeholder): Condition => ({ kind: "equal", attribute, to });
export const less = (attribute: string, to: Operand | Placeholder): Condition => ({ kind: "less", attribute, to });
export const greater = (attribute: string, to: Operand | Placeholder): Condition => ({
  kind: "greater",
  attribute,
  to,
});
export const all = (...of: readonly Condition[]): Condition => ({ kind: "all", of });
export const any = (...of: readonly Condition[]): Condition => ({ kind: "any", of });

/** Whether an item, or the absence of one, meets a condition. */
export function holds(condition: Condition, item: Attributes | undefined, values: Values = {}): boolean {
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
      return typeOf(value) === "number" && (value as number) >= range.least && (value as number) <= range.most;
    }
    case "all":
      return condition.of.every((part) => holds(part, item, values));
    case "any":
      return condition.of.some((part) => holds(part, item, values));
    default:
      return condition satisfies never;
  }
}

/** The value that an item has under a path of one name or two; undefined if it has none. */
function valueIn(item: Attributes | undefined, path: string): unknown {
  const dot = path.indexOf(".");
  if (dot < 0) return item?.[path];
  const map = item?.[path.slice(0, dot)];
  return typeOf(map) === "map" ? (map as Attributes)[path.slice(dot + 1)] : undefined;
}

function compares(how: "equal" | "less" | "greater", value: unknown, to: Operand | undefined): boolean {
  if (to === undefined || typeOf(value) !== typeOf(to)) return false;
  const operand = value as Operand;
  if (how === "less") return operand < to;
  if (how === "greater") return operand > to;
  // A number and a bigint of the same value are one number to DynamoDB.
  return !(operand < to) && !(operand > to);
}

function typeOf(value: unknown): PlainType | undefined {
  if (typeof value === "string") return "string";
  if (typeof value === "number" || typeof value === "bigint") return "number";
  if (typeof value !== "object" || value === null) return undefined;
  return Array.isArray(value) || value instanceof Set || value instanceof Uint8Array ? undefined : "map";
}
