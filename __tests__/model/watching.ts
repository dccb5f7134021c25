import { lockAt } from "../../lib/protocol/addresses.js";
import type { Knowledge } from "../../lib/protocol/may-take.js";
import { type Attributes, parseRow, type Row } from "../../lib/protocol/row.js";
import { Sightings } from "../../lib/session/sightings.js";
import type { Bounds } from "../../lib/time/clock.js";
import type { Host } from "./limits.js";
import type { Rules } from "./rules.js";
import type { Seen } from "./state.js";
import { HandClock } from "./time.js";

/** The row that the two want. */
export const AT = lockAt("x");

const clock = new HandClock();

/** Rows that were parsed already. */
const ROWS = new WeakMap<Attributes, Row>();

/** The library's own memory of what was seen, as it is after this. */
function sightingsOf(seen: Seen | undefined): Sightings {
  const sightings = new Sightings(clock);
  if (seen === undefined) return sightings;
  clock.atLeastMs = seen.since;
  sightings.note(AT, rowOf(seen.row));
  return sightings;
}

/** What is known after the table has shown this row, at this reading of the watcher's stopwatch. */
export function noted(
  before: Seen | undefined,
  shown: Attributes | undefined,
  watcher: { readonly atMs: number; readonly host: Host },
  rules: Rules,
): Seen | undefined {
  if (shown === undefined) return undefined;
  const ttlMs = rules.watchedTtl(Number(shown.ttlMs), watcher.host.ttlMs);
  const row = { ...shown, ttlMs };
  const sightings = sightingsOf(before);
  clock.atLeastMs = watcher.atMs;
  sightings.note(AT, rowOf(row));
  return { row, since: watcher.atMs - ttlMs + sightings.untilUnchanged(AT) };
}

/** What a take is sent with. */
export function knowledgeOf(seen: Seen | undefined, host: Host, bounds: Bounds, atMs: number): Knowledge {
  const sightings = sightingsOf(seen);
  clock.atLeastMs = atMs;
  clock.bounds = bounds;
  return sightings.knowledge(AT, host.takeover);
}

/** The row that attributes show: the model writes no others. */
export function rowOf(attributes: Attributes): Row;
export function rowOf(attributes: Attributes | undefined): Row | undefined;
export function rowOf(attributes: Attributes | undefined): Row | undefined {
  if (attributes === undefined) return undefined;
  const known = ROWS.get(attributes);
  if (known !== undefined) return known;
  const parsed = parseRow(AT, attributes);
  if ("problem" in parsed) throw new Error(`The row is not one of the library's: ${parsed.problem}`);
  ROWS.set(attributes, parsed.row);
  return parsed.row;
}
