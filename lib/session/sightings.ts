import type { Address } from "../protocol/addresses.js";
import { earliestOf } from "../protocol/lease-time.js";
import { type Knowledge, mayTake, type Sighting } from "../protocol/may-take.js";
import type { Memory, Row } from "../protocol/row.js";
import { memoryOf } from "../protocol/rules.js";
import type { Clock } from "../time/clock.js";
import { BoundedMap } from "./bounded-map.js";

/**
 * How many rows a process remembers, and how many claims that were given up: the oldest are forgotten. It is a bound on the names
 * that a process asks for at once, because what refuses a claim has to be known to the next one. So many held rows take 30 to 35 MB.
 */
const MOST_REMEMBERED = 100_000;

/** By which rules a row is judged: `expired` by its `expires` or by watching, `unchanged` by watching alone. */
export type TakeoverPolicy = "expired" | "unchanged";

interface Seen extends Sighting {
  readonly ttlMs: number;
  readonly memory: Memory;
  readonly due: number | undefined;
  readonly attempt: number | undefined;
  /** When this very lease was first seen, on the `atLeast` stopwatch. */
  readonly since: number;
}

/**
 * What a process has seen of rows that others hold, and for how long they were seen unchanged. That outlives the calls that look, so
 * that callers that use nothing but `tryLock()` can take over as well.
 */
export class Sightings {
  readonly #clock: Clock;
  readonly #seen: Map<string, Seen>;
  /** The uuids of claims that were given up, the oldest first, with the number of the claim's attempt at its tick; 0 for none. */
  readonly #disowned: Map<string, number>;
  /** The fencing tokens that were last seen, for the form in which the next one is drawn first. */
  readonly #tokens: Map<string, bigint>;

  /** @param most how many rows, and how many claims that were given up, are remembered. */
  constructor(clock: Clock, most: number = MOST_REMEMBERED) {
    this.#clock = clock;
    this.#seen = new BoundedMap(most);
    this.#disowned = new BoundedMap(most);
    this.#tokens = new BoundedMap(most);
  }

  /**
   * Notes a row. Called after the reply came back, so that the stopwatch starts after the moment at which the row was
   * like that. A stale read does no harm, because a takeover's condition names the exact lease.
   */
  note(at: Address, row: Row | undefined): void {
    const key = addressKey(at);
    if (row === undefined) return void this.#seen.delete(key);
    const { uuid, expires, ttlMs, attempt, fence } = row;
    if (fence !== undefined) this.#tokens.set(key, fence);
    const due = row.due === row.tick ? row.due : undefined;
    const seen: Seen = { uuid, expires, ttlMs, due, attempt, memory: memoryOf(row), since: this.#clock.atLeast() };
    const before = this.#seen.get(key);
    if (before === undefined || !isSame(before, seen)) this.#seen.set(key, seen);
  }

  /** Notes the token that a row has, such as one that was just drawn. */
  noteToken(at: Address, token: bigint): void {
    this.#tokens.set(addressKey(at), token);
  }

  /** The token that was last seen on a row. */
  token(at: Address): bigint | undefined {
    return this.#tokens.get(addressKey(at));
  }

  /**
   * Notes that no section of this process uses a claim, or ever will, although its row may be there or arrive. The next call of
   * this process that sees the row takes it over at once, on the same condition as a lease that was watched for its ttl: that
   * it is still exactly as it was seen.
   *
   * @param attempt the number of its attempt at its tick, if it was for one.
   */
  disown(uuid: string, attempt = 0): void {
    this.#disowned.set(uuid, attempt);
  }

  /** Whether a row is that of a claim which this process has given up. */
  isDisowned({ uuid }: Pick<Row, "uuid">): boolean {
    return uuid !== undefined && this.#disowned.has(uuid);
  }

  /** Whether a row may be free, by what was last seen of it. A row that was not seen may be free. */
  mayBeFree(at: Address, takeover: TakeoverPolicy): boolean {
    const seen = this.#find(at);
    return seen === undefined || mayTake(seen, this.knowledge(at, takeover));
  }

  /**
   * The number that a claim made now has among the attempts at this tick, by the row that was last seen. Nothing has run under
   * a claim that this process has given up, so a claim that takes its row over keeps its number.
   */
  nextAttempt(at: Address, tick: number): { readonly attempt: number; readonly seenAttempt?: number } {
    const { due, attempt: seenAttempt, uuid } = this.#find(at) ?? {};
    if (due !== tick || seenAttempt === undefined) return { attempt: 1 };
    const isOwn = uuid !== undefined && seenAttempt > 0 && this.#disowned.get(uuid) === seenAttempt;
    return { attempt: isOwn ? seenAttempt : seenAttempt + 1, seenAttempt };
  }

  /** What the row remembered when it was last seen. */
  memory(at: Address): Memory {
    return this.#find(at)?.memory ?? "nothing";
  }

  /** What is known now of the time and of a row, for {@link mayTake}. */
  knowledge(at: Address, takeover: TakeoverPolicy): Knowledge {
    const bounds = takeover === "expired" ? this.#clock.wall() : undefined;
    return { earliest: earliestOf(bounds), unchanged: this.unchanged(at) };
  }

  /**
   * The lease that was last seen, if nobody relies on it: it has been seen unchanged for the row's own ttl, so its holder
   * is gone or its hold is over; or it is a claim that this process has given up.
   *
   * @param asOf when the row was still as it was last seen, on `atLeast`: default now, which a write's condition ensures.
   */
  unchanged(at: Address, asOf: number = this.#clock.atLeast()): Sighting | undefined {
    const seen = this.#find(at);
    if (seen === undefined || this.#untilUnchanged(seen, asOf) > 0) return undefined;
    return { uuid: seen.uuid, expires: seen.expires };
  }

  /**
   * Milliseconds until what was last seen has been unchanged for the row's own ttl, which on a row without a holder is what
   * was left of its hold; Infinity where nothing was seen. A claim that this process has given up needs no watching.
   */
  untilUnchanged(at: Address, asOf: number = this.#clock.atLeast()): number {
    const seen = this.#find(at);
    return seen === undefined ? Number.POSITIVE_INFINITY : this.#untilUnchanged(seen, asOf);
  }

  #untilUnchanged(seen: Seen, asOf: number): number {
    return this.isDisowned(seen) ? 0 : Math.max(0, seen.since + seen.ttlMs - asOf);
  }

  #find(at: Address): Seen | undefined {
    return this.#seen.get(addressKey(at));
  }
}

const SAME = ["uuid", "expires", "ttlMs", "memory", "due", "attempt"] as const;

function isSame(one: Seen, other: Seen): boolean {
  return SAME.every((attribute) => one[attribute] === other[attribute]);
}

/** Tells rows apart in a map. */
export const addressKey = ({ name, sort }: Address): string => `${sort}/${name}`;
