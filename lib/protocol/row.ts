import type { LockData, LockInfo } from "../lock-info.js";
import { type Address, acquisitionOf, kindOf } from "./addresses.js";
import {
  type Attributes,
  all,
  any,
  type Condition,
  equal,
  holds,
  isMap,
  isString,
  missing,
  type Range,
  within,
} from "./conditions.js";
import { type FlightResult, flightResultIn } from "./flight-result.js";
import { type HandOff, handOffIn } from "./hand-off.js";
import { type Ran, ranIn } from "./last-run.js";

export type { Attributes } from "./conditions.js";

/** The version of the row's layout that this library reads and writes. */
export const FORMAT = 1;

/** One of our rows, as it was at some moment. */
export interface Row extends Address {
  /** The acquisition that holds it; absent on a row without a holder, which is held for a while, or kept but free. */
  readonly uuid: string | undefined;
  /** Epoch ms on the table's clock; 0 on a row that is kept but free. */
  readonly expires: number;
  readonly ttlMs: number;
  readonly owner: string;
  readonly acquired: number;
  readonly data: LockData | undefined;
  /** Until when another host says that it waits. */
  readonly wanted: number | undefined;
  readonly fence: bigint | undefined;
  readonly tick: number | undefined;
  /** The tick that is open until a run of it succeeds; it counts only where it is the `tick` of the row. */
  readonly due: number | undefined;
  /** How many runs of the last such tick have begun; it stays when that one has succeeded. */
  readonly attempt: number | undefined;
  /** Who was granted the last tick; it counts only where it names the `tick` and the `attempt` of the row. */
  readonly ran: Ran | undefined;
  /** How many permits the semaphore has, as the holder of this one knows it. */
  readonly permits: number | undefined;
  /** What the last hand-off has left; it counts only as long as it names the uuid of the row. */
  readonly handOff: HandOff | undefined;
  /** The result of the last single flight: a value that does not name it counts for nobody. */
  readonly result: FlightResult | undefined;
}

/**
 * What a row remembers after its release, from the least to the most that its writers have to respect: a row with a `fence`, or
 * with the `result` of a flight, is updated and never replaced or deleted; a row with a `tick` gets no purge date either.
 */
export type Memory = "nothing" | "fence" | "tick";

/** The type and the range that an attribute must have. */
interface AttributeType {
  readonly asks: (attribute: string) => Condition;
  readonly text: string;
}

const STRING: AttributeType = { asks: isString, text: "a string" };
const MAP: AttributeType = { asks: isMap, text: "a map" };
const numberIn = (range: Range): AttributeType => ({
  asks: (attribute) => within(attribute, range),
  text: `a number from ${range.least} to ${range.most}`,
});
/** Milliseconds since 1970, as far as a `Date` goes; or how long something takes. */
const MOMENT = numberIn({ name: "moment", least: 0, most: 8.64e15 });
const TICK = numberIn({ name: "tick", least: Number.MIN_SAFE_INTEGER, most: Number.MAX_SAFE_INTEGER });
/** The range of a number that is counted up: one more than its end has 38 digits, which is as far as DynamoDB counts. */
const COUNTED: Range = { name: "counted", least: 0, most: 10n ** 38n - 2n };

/** What every row has. */
const NEEDED: Readonly<Record<string, AttributeType>> = {
  format: { asks: (attribute) => equal(attribute, FORMAT), text: `${FORMAT}` },
  owner: STRING,
  expires: MOMENT,
  ttlMs: MOMENT,
  acquired: MOMENT,
};

/** What a row may have. */
const POSSIBLE: Readonly<Record<string, AttributeType>> = {
  uuid: STRING,
  data: MAP,
  wanted: MOMENT,
  tick: TICK,
  permits: MOMENT,
  fence: numberIn(COUNTED),
  "result.id": STRING,
};

/**
 * The condition of each attribute of a row. The parser uses these conditions, and a take asks for all of them: an item that
 * does not parse is never overwritten. No condition can ask for a whole number, or look into any map: so a row may have
 * fractions, and any data. Only a `fence` must be whole: the parser refuses the others, and a take that has met one puts it back.
 */
const ATTRIBUTES = Object.entries({ ...NEEDED, ...POSSIBLE }).map(([name, { asks, text }]) => ({
  condition: name in NEEDED ? asks(name) : any(missing(name), asks(name)),
  problem: `its ${name} must be ${text}`,
}));

/** An item that this library wrote, in the format that it reads: one that parses, and no other. */
export const IS_OURS: Condition = all(...ATTRIBUTES.map(({ condition }) => condition));

/** A number that the next place of a queue can be drawn from. */
export const IS_COUNTED: Condition = within("n", COUNTED);

/** The row that an item shows, or what is wrong with the item. */
export type Parsed =
  | { readonly row: Row }
  | {
      readonly problem: string;
      /** Whether it has our format and another attribute that every row has: then it is a row of ours that was damaged since. */
      readonly isDamaged: boolean;
    };

export function parseRow({ name, sort }: Address, attributes: Attributes): Parsed {
  const wrong = ATTRIBUTES.find(({ condition }) => !holds(condition, attributes));
  if (wrong !== undefined) {
    const has = (attribute: string): boolean => attribute !== "format" && attributes[attribute] !== undefined;
    return { problem: wrong.problem, isDamaged: attributes.format === FORMAT && Object.keys(NEEDED).some(has) };
  }
  // The conditions have checked the types. A number may be a bigint: a range admits both.
  const ours = attributes as unknown as Checked;
  const { fence } = ours;
  if (typeof fence === "number" && !Number.isInteger(fence)) {
    return { problem: "its fence must be a whole number", isDamaged: true };
  }
  const numberOf = (value: number | undefined): number | undefined => (value === undefined ? undefined : Number(value));
  const row: Row = {
    name,
    sort,
    uuid: ours.uuid,
    owner: ours.owner,
    data: ours.data,
    expires: Number(ours.expires),
    ttlMs: Number(ours.ttlMs),
    acquired: Number(ours.acquired),
    wanted: numberOf(ours.wanted),
    // It may exceed 2^53, so it is kept exact.
    fence: fence === undefined ? undefined : BigInt(fence),
    tick: numberOf(ours.tick),
    // An older process does not check these two: a value that is not an integer is no reason to refuse the row.
    due: wholeIn(ours.due),
    attempt: wholeIn(ours.attempt),
    ran: ranIn(ours.ran),
    permits: numberOf(ours.permits),
    handOff: handOffIn(ours.handOff),
    result: flightResultIn(ours.result),
  };
  return { row };
}

type Checked = Omit<Row, "name" | "sort" | "fence" | "handOff" | "result" | "due" | "attempt" | "ran"> & {
  readonly fence: number | bigint | undefined;
  /** Unchecked: no take asks what they are. */
  readonly handOff: unknown;
  readonly result: unknown;
  readonly due: unknown;
  readonly ran: unknown;
  readonly attempt: unknown;
};

const wholeIn = (value: unknown): number | undefined => (Number.isSafeInteger(value) ? Number(value) : undefined);

/** What each kind of row is called in reports for people. */
const KINDS = {
  lock: "mutex",
  place: "mutex",
  permit: "semaphore",
  writer: "exclusive",
  reader: "shared",
  result: "mutex",
} as const;

/** What a row says about its lock, for people. */
export function infoOf(
  row: Omit<Row, "wanted" | "fence" | "permits" | "handOff" | "result" | "due" | "attempt" | "ran"> & Partial<Row>,
): LockInfo {
  const kind = KINDS[kindOf(row.sort) ?? "lock"];
  const { name, sort, owner, ttlMs, data, tick } = row;
  const uuid = row.uuid === undefined ? undefined : acquisitionOf({ sort, uuid: row.uuid });
  const [acquired, expires] = [new Date(row.acquired), new Date(row.expires)];
  const handedOff = row.uuid !== undefined && row.handOff?.uuid === row.uuid;
  const attempts = tick === undefined ? undefined : row.attempt;
  const succeeded = attempts === undefined ? undefined : row.due !== tick;
  const { ran } = row;
  const counts = tick !== undefined && ran?.tick === tick && ran.attempt === attempts;
  const lastRun = counts ? { lastRun: { owner: ran.owner, began: new Date(ran.at) } } : undefined;
  return { name, kind, uuid, handedOff, owner, acquired, expires, ttlMs, data, tick, attempts, succeeded, ...lastRun };
}
