import { type Address, lockAt, permitAt, readerAt, writerAt } from "../../../lib/protocol/addresses.js";
import type { Knowledge, Sighting } from "../../../lib/protocol/may-take.js";
import { type Attributes, parseRow, type Row } from "../../../lib/protocol/row.js";
import { Sightings } from "../../../lib/session/sightings.js";
import type { Bounds } from "../../../lib/time/clock.js";
import type { Host, Side } from "./limits.js";
import type { Rules } from "./rules.js";
import type { Seen } from "./state.js";
import { HandClock } from "./time.js";

const NAME = "x";
const LOCK = lockAt(NAME);
const WRITER = writerAt(NAME);

/** The row that an acquisition takes: of a permit, its uuid ends in the number. */
export function addressOf(side: Side, uuid: string): Address {
  if (side === "reader") return readerAt(NAME, uuid);
  if (side === "permit") return permitAt(NAME, Number(uuid.at(-1)));
  return side === "writer" ? WRITER : LOCK;
}

/** The row that keeps a side waiting: a reader's own is always free. */
export const awaitedBy = (side: Side): Address => (side === "mutex" ? LOCK : WRITER);

const clock = new HandClock();

/** Rows that were parsed already. */
const ROWS = new WeakMap<Attributes, Row>();

/** The library's own memory of what was seen, as it is after this. */
function sightingsOf(seen: Seen | undefined): Sightings {
  const sightings = new Sightings(clock);
  if (seen === undefined) return sightings;
  clock.atLeastMs = seen.since;
  sightings.note(seen.at, rowOf(seen.row, seen.at));
  return sightings;
}

export const seenAt = (seen: readonly Seen[], { sort }: Address): Seen | undefined => {
  return seen.find(({ at }) => at.sort === sort);
};

/** What is known after the table has shown this row, at this reading of the watcher's stopwatch. */
export function noted(
  seen: readonly Seen[],
  at: Address,
  shown: Attributes | undefined,
  watcher: { readonly atMs: number; readonly host: Host },
  rules: Rules,
): readonly Seen[] {
  const others = seen.filter((it) => it.at.sort !== at.sort);
  if (shown === undefined) return others;
  const ttlMs = rules.watchedTtl(Number(shown.ttlMs), watcher.host.ttlMs);
  const row = { ...shown, ttlMs };
  const sightings = sightingsOf(seenAt(seen, at));
  clock.atLeastMs = watcher.atMs;
  sightings.note(at, rowOf(row, at));
  const since = watcher.atMs - ttlMs + sightings.untilUnchanged(at);
  return [...others, { at, row, since }].sort((one, other) => (one.at.sort < other.at.sort ? -1 : 1));
}

/** What a take is sent with. */
export function knowledgeOf(seen: readonly Seen[], at: Address, host: Host, bounds: Bounds, atMs: number): Knowledge {
  const sightings = sightingsOf(seenAt(seen, at));
  clock.atLeastMs = atMs;
  clock.bounds = bounds;
  return sightings.knowledge(at, host.takeover);
}

/** What a row that a look has shown is judged by: what was known when the look left. */
export function knownAt(seen: readonly Seen[], at: Address, then: { earliest: number; atMs: number }): Knowledge {
  return { earliest: then.earliest, unchanged: sightingsOf(seenAt(seen, at)).unchanged(at, then.atMs) };
}

/** The row that attributes show: the model writes no others. */
export function rowOf(attributes: Attributes, at?: Address): Row;
export function rowOf(attributes: Attributes | undefined, at?: Address): Row | undefined;
export function rowOf(attributes: Attributes | undefined, at: Address = LOCK): Row | undefined {
  if (attributes === undefined) return undefined;
  const known = ROWS.get(attributes);
  if (known !== undefined) return known;
  const parsed = parseRow(at, attributes);
  if ("problem" in parsed) throw new Error(`The row is not one of the library's: ${parsed.problem}`);
  ROWS.set(attributes, parsed.row);
  return parsed.row;
}

/** What a takeover names of a row. */
export const sightingOf = ({ uuid, expires }: Attributes | Row): Sighting => {
  return { uuid: uuid as string | undefined, expires: expires as number };
};
