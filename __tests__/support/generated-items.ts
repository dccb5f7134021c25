import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import type { Item } from "../../lib/dynamodb/compile.js";
import { type Random, seededRandom } from "./seeded-random.js";

/** Numbers around each bound that an attribute of a row has, and some that no clock, tick or counter shows. */
const NUMBERS = [
  ...["0", "1", "5", "30000", "1000000", "1.5", "1700000000000.25", "-1", "-0.5", "1e-130", "-7"],
  ...["8640000000000000", "8640000000000000.5", "8640000000000001", "9000000000000000", "-8640000000000001"],
  ...["9007199254740991", "9007199254740992", "-9007199254740992", `${2n ** 80n}`],
  ...[`${10n ** 38n - 2n}`, `${10n ** 38n - 1n}`, `${10n ** 38n}`, "1e125", "-9.9e125"],
] as const;

const TEXTS = ["", "1", "host#1", "mine", "\u001b[2J", "\ud83d\udd12", "__proto__", "n".repeat(600)] as const;

/** Names of our own, and those that objects of JavaScript have before anybody gives them one. */
const NAMES = ["a", "sections", "side", "__proto__", "constructor", "toString", "toJSON", "then", "format"] as const;

const ATTRIBUTES = [
  ...["format", "owner", "uuid", "expires", "ttlMs", "acquired", "data", "wanted", "fence", "tick", "permits"],
  ...["purge", "n", ...NAMES],
] as readonly string[];

/** An item without its key, of a seed with this number: a row that this library may have written, damaged here and there. */
export function generatedItem(seed: number, index: number): Item {
  const random = seededRandom(seed, index);
  const oneOf = <Value>(values: readonly Value[]): Value => values[Math.floor(random() * values.length)] as Value;
  const attributes: [string, AttributeValue][] = [
    ["format", { N: "1" }],
    ["owner", { S: "host#1" }],
    ["expires", { N: oneOf(["0", "5", "1000000", "8640000000000000"]) }],
    ["ttlMs", { N: "30000" }],
    ["acquired", { N: "999995" }],
  ];
  if (random() < 0.7) attributes.push(["uuid", { S: oneOf(["mine", "theirs"]) }]);
  for (const optional of ["fence", "tick", "wanted", "permits"]) {
    if (random() < 0.25) attributes.push([optional, { N: oneOf(["0", "3", "7"]) }]);
  }
  if (random() < 0.25) attributes.push(["data", { M: generatedMap(random, 0) }]);
  const damages = Math.floor(random() * 4);
  for (let damage = 0; damage < damages; damage += 1) {
    const attribute = oneOf(ATTRIBUTES);
    if (random() < 0.2) attributes.push([attribute, { NULL: true }]);
    else attributes.push([attribute, random() < 0.5 ? { N: oneOf(NUMBERS) } : generatedValue(random, 0)]);
  }
  const missing = random() < 0.1 ? oneOf(ATTRIBUTES) : undefined;
  // Defines each as its own, `__proto__` too.
  return Object.fromEntries(attributes.filter(([attribute]) => attribute !== missing));
}

function generatedValue(random: Random, depth: number): AttributeValue {
  const oneOf = <Value>(values: readonly Value[]): Value => values[Math.floor(random() * values.length)] as Value;
  const kinds = ["S", "N", "BOOL", "NULL", "B", "SS", "NS", "BS", ...(depth < 3 ? ["L", "M", "M"] : [])] as const;
  switch (oneOf(kinds)) {
    case "S":
      return { S: oneOf(TEXTS) };
    case "N":
      return { N: oneOf(NUMBERS) };
    case "BOOL":
      return { BOOL: random() < 0.5 };
    case "B":
      return { B: new Uint8Array([1, 255]) };
    case "SS":
      return { SS: ["a", "b"] };
    case "NS":
      return { NS: ["1", "1.5"] };
    case "BS":
      return { BS: [new Uint8Array([1])] };
    case "L":
      return { L: Array.from({ length: Math.floor(random() * 3) }, () => generatedValue(random, depth + 1)) };
    case "M":
      return { M: generatedMap(random, depth + 1) };
    default:
      return { NULL: true };
  }
}

function generatedMap(random: Random, depth: number): Item {
  const names = NAMES.filter(() => random() < 0.3);
  return Object.fromEntries(names.map((name) => [name, generatedValue(random, depth + 1)]));
}
