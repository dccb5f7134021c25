import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import type { Item } from "../../lib/dynamodb/compile.js";
import { type Address, LOCK_SORT, MUTEX_QUEUE, PERMITS, placeSort } from "../../lib/protocol/addresses.js";
import { numberOfMark } from "../../lib/protocol/mark.js";
import type { TokenDraw, Write } from "../../lib/protocol/writes.js";
import { type Random, seededRandom } from "./seeded-random.js";

/** An item, or none, and a write that meets it. */
export interface Pair {
  readonly at: Address;
  /** What is there beforehand, less the key, in a table with the default names. */
  readonly planted: Item | undefined;
  readonly write: Write;
  /** How the write is sent: each kind of write in each way that it has. */
  readonly as: "request" | "transaction" | "statement";
}

/** Stamps, ticks and tokens from here are few and close together, so that comparisons often just hold or just fail. */
const STAMP = 1_000_000;
const UUIDS = ["mine", "mine", "theirs", "fresh"] as const;
const WRITES = [
  ...["take", "take", "take", "take", "take", "take", "renew", "renew", "record", "reissue", "transfer", "transfer"],
  ...["vacate", "vacate", "remove", "remove", "want", "draw", "check"],
] as readonly Write["kind"][];
const MEMORIES = ["nothing", "nothing", "fence", "tick"] as const;

/** One more than these has at most 38 digits, which is as far as DynamoDB counts. */
const TOKENS = ["0", "1", "3", "4", "5", "9007199254740991", "9007199254740992", `${2n ** 80n}`, `${10n ** 38n - 2n}`];

/** What is none of our types, or none of our numbers. */
const ODD: readonly AttributeValue[] = [
  ...["5", "", "mine"].map((S) => ({ S })),
  ...["5", "1", "1000000", "1.5", "-7", "8640000000000000", "8640000000000001"].map((N) => ({ N })),
  ...["9007199254740992", `${10n ** 38n - 1n}`, `1${"0".repeat(125)}`].map((N) => ({ N })),
  ...[{ BOOL: true }, { NULL: true }, { L: [{ N: "1" }] }, { M: {} }, { NS: ["1"] }, { B: new Uint8Array([1]) }],
];

/** The pair of a seed with this number: the same each time. */
export function generatedPair(seed: number, index: number): Pair {
  const draw = new Draw(seededRandom(seed, index));
  const kind = draw.oneOf(WRITES);
  // Any write may meet any item, but a draw seldom meets a row.
  const isCounter = kind === "draw" ? draw.chance(0.9) : draw.chance(0.02);
  const sort = isCounter ? MUTEX_QUEUE.counter : draw.oneOf([LOCK_SORT, placeSort(BigInt(index)), PERMITS.first]);
  const at = { name: `${seed}-${index}`, sort };
  const planted = isCounter ? counter(draw) : row(draw);
  const alone = index % 4 === 0 ? "transaction" : "request";
  const as = kind === "renew" && index % 2 === 1 ? "statement" : alone;
  const write = seen(draw, planted, writeOf(draw, kind, at));
  return isCounter
    ? { at, planted, write, as }
    : withFlights(new Draw(seededRandom(seed, -1 - index)), { at, planted, write, as });
}

/** The same pair, of a lock that has flights: drawn by themselves, so that all else stays as it was. */
function withFlights(draw: Draw, { at, planted, write, as }: Pair): Pair {
  const result = draw.oneOf<AttributeValue>([
    ...UUIDS.map((id) => ({ M: { id: { S: id }, made: { N: "999000" } } })),
    ...[{ M: {} }, { M: { id: { N: "5" } } }, { S: "mine" }],
  ]);
  const item = planted && draw.chance(0.3) ? { ...planted, result } : planted;
  const flight = flightOf(draw, write);
  return { at, planted: item, write: flight, as: as === "statement" && flight.kind !== "renew" ? "request" : as };
}

function flightOf(draw: Draw, write: Write): Write {
  const { kind, at } = write;
  const result = { id: draw.oneOf(UUIDS), made: STAMP - 3, freshUntil: draw.stamp() };
  if (draw.chance(0.05))
    return { kind: "put-result", at, result, owner: "host#4", data: { value: [1, "x", { a: null }] } };
  if (kind === "take" && draw.chance(0.3)) return { ...write, after: { id: draw.oneOf([...UUIDS, undefined]) } };
  if (kind !== "vacate" || write.leaves.kind !== "free" || draw.chance(0.5)) return write;
  return { ...write, leaves: { kind: "free", result } };
}

class Draw {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  chance(share: number): boolean {
    return this.#random() < share;
  }

  oneOf<Value>(values: readonly Value[]): Value {
    return values[Math.floor(this.#random() * values.length)] as Value;
  }

  maybe<Value>(share: number, value: () => Value): Value | undefined {
    return this.chance(share) ? value() : undefined;
  }

  stamp(): number {
    return STAMP + this.oneOf([-2, -1, 0, 0, 0, 1, 2]);
  }

  tick(): number {
    return this.oneOf([-1, 0, 5, 5, 5, 6]);
  }
}

/** Often what is there: a write that asks for much would seldom be let through otherwise. */
function seen(draw: Draw, { uuid, expires }: Item = {}, write: Write): Write {
  if (write.kind === "transfer" && uuid?.S !== undefined) return draw.chance(0.5) ? { ...write, from: uuid.S } : write;
  if (write.kind !== "remove") return write;
  const stamp = Number(expires?.N);
  return {
    ...write,
    seenUuid: draw.oneOf([uuid?.S, uuid?.S, undefined, write.seenUuid]),
    seenExpires: draw.chance(0.7) && Number.isSafeInteger(stamp) ? stamp : write.seenExpires,
  };
}

function counter(draw: Draw): Item | undefined {
  if (draw.chance(0.15)) return undefined;
  const item: Item = { format: { N: "1" }, n: { N: draw.oneOf(TOKENS) }, purge: { N: "5" } };
  if (draw.chance(0.3)) spoil(draw, item, ["format", "n"]);
  return item;
}

function row(draw: Draw): Item | undefined {
  if (draw.chance(0.06)) return undefined;
  const isFree = draw.chance(0.15);
  const item: Item = {
    format: { N: "1" },
    expires: { N: `${isFree ? 0 : draw.stamp()}` },
    ttlMs: { N: draw.oneOf(["1", "30000"]) },
    owner: { S: "host#1" },
    acquired: { N: "999995" },
  };
  if (!isFree && draw.chance(0.85)) item.uuid = { S: draw.oneOf(UUIDS) };
  if (draw.chance(0.35)) item.fence = { N: draw.oneOf(TOKENS) };
  if (draw.chance(0.35)) item.tick = { N: `${draw.tick()}` };
  if (draw.chance(0.35)) item.due = draw.chance(0.8) && item.tick ? item.tick : { N: `${draw.tick()}` };
  if (draw.chance(0.35)) item.attempt = { N: draw.oneOf(["0", "1", "1", "2"]) };
  if (draw.chance(0.3)) item.wanted = { N: `${draw.stamp()}` };
  if (draw.chance(0.3)) item.data = { M: { a: { N: "1" }, b: { L: [{ S: "x" }] } } };
  if (draw.chance(0.3)) item.permits = { N: draw.oneOf(["1", "3"]) };
  if (draw.chance(0.6)) item.purge = { N: "1700000000" };
  if (draw.chance(0.1)) item.mark = { S: "somebody's own" };
  if (draw.chance(0.35)) {
    const anywhere = [
      "uuid",
      "expires",
      "ttlMs",
      "acquired",
      "fence",
      "tick",
      "due",
      "attempt",
      "wanted",
      "data",
      "permits",
    ];
    spoil(draw, item, draw.chance(0.3) ? ["format", "owner"] : anywhere);
  }
  return item;
}

/** Takes an attribute away, or gives it a value that this library never writes there. */
function spoil(draw: Draw, item: Item, attributes: readonly string[]): void {
  const attribute = draw.oneOf(attributes);
  if (draw.chance(0.3)) delete item[attribute];
  else item[attribute] = draw.oneOf(ODD);
}

function writeOf(draw: Draw, kind: Write["kind"], at: Address): Write {
  const uuid = draw.oneOf(UUIDS);
  const remembers = draw.oneOf(MEMORIES);
  const data = draw.maybe(0.3, () => ({ a: draw.oneOf([1, 2n ** 70n, "x", null]), deep: [{ b: [1.5, true] }] }));
  switch (kind) {
    case "take": {
      const tick = draw.maybe(0.35, () => draw.tick());
      const isCounted = tick !== undefined && draw.chance(0.4);
      return {
        kind,
        at,
        uuid,
        expires: draw.stamp() + 30_000,
        ttlMs: 30_000,
        owner: "host#2",
        acquired: STAMP,
        data,
        wanted: draw.maybe(0.3, () => markOf(draw)),
        remembers,
        knowledge: {
          earliest: draw.oneOf([1, draw.stamp(), draw.stamp(), STAMP + 3]),
          unchanged: draw.maybe(0.5, () => ({
            uuid: draw.oneOf([...UUIDS, undefined]),
            expires: draw.chance(0.15) ? 0 : draw.stamp(),
          })),
        },
        token: draw.maybe(0.35, () => tokenOf(draw)),
        tick,
        attempt: isCounted ? draw.oneOf([1, 2, 3]) : undefined,
        seenAttempt: isCounted ? draw.oneOf([undefined, 0, 1, 1, 1, 2]) : undefined,
        permits: draw.maybe(0.3, () => draw.oneOf([1, 2, 1_000])),
      };
    }
    case "renew":
      return { kind, at, uuid, expires: draw.stamp() + 1, data, remembers };
    case "reissue":
      return {
        kind,
        at,
        from: uuid,
        uuid: "newer",
        expires: draw.stamp() + 1,
        token: draw.maybe(0.5, () => tokenOf(draw)),
        remembers,
      };
    case "vacate": {
      const leaves = draw.oneOf([
        { kind: "free" },
        { kind: "free" },
        { kind: "held", expires: draw.stamp(), ttlMs: 7 },
        { kind: "untilExpires" },
        { kind: "kept" },
      ] as const);
      return { kind, at, uuid, leaves, remembers, attempt: draw.maybe(0.2, () => draw.oneOf([0, 1])) };
    }
    case "record":
      return { kind, at, uuid, tick: draw.tick(), attempt: draw.oneOf([1, 2]) };
    case "remove":
      return { kind, at, seenUuid: draw.oneOf([...UUIDS, undefined]), seenExpires: draw.stamp() };
    case "transfer":
      return {
        kind,
        at,
        from: uuid,
        after: draw.maybe(0.5, () => draw.stamp() - draw.oneOf([0, 1])),
        uuid: "newer",
        expires: draw.oneOf([draw.stamp(), STAMP - 30_000, STAMP + 30_000]),
        ttlMs: 7_000,
        owner: "host#3",
        token: draw.maybe(0.5, () => tokenOf(draw)),
        remembers,
      };
    case "put-result":
      throw new Error("drawn with the other writes of flights");
    case "want":
      return { kind, at, until: markOf(draw) };
    case "draw":
      return { kind, at, seed: draw.oneOf([0, STAMP]) };
    case "check":
      return { kind, at, uuid, after: draw.stamp() - 1, fence: draw.maybe(0.2, () => BigInt(draw.oneOf(TOKENS))) };
    default:
      return kind satisfies never;
  }
}

/** In either form, with a time that tokens are on both sides of. */
const tokenOf = (draw: Draw): TokenDraw => ({
  least: draw.oneOf([1, 4, 4, 7_000]),
  seed: 7_000,
  isBehind: draw.chance(0.5),
});

/** With a need, or as an older process writes it. */
const markOf = (draw: Draw): number =>
  numberOfMark({ until: draw.stamp(), needMs: draw.maybe(0.5, () => draw.oneOf([750, 5_000])) });
