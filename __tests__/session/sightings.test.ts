import { expect, test } from "@jest/globals";
import { lockAt } from "../../lib/protocol/addresses.js";
import { parseRow } from "../../lib/protocol/row.js";
import { Sightings } from "../../lib/session/sightings.js";
import { ManualTime } from "../support/manual-time.js";

const TTL_MS = 30_000;
const HELD = { format: 1, uuid: "u", expires: 2 ** 42, ttlMs: TTL_MS, owner: "another", acquired: 5 };

/** What a process has seen of so many held rows. */
function seeing(count: number, most?: number) {
  const time = new ManualTime();
  const sightings = new Sightings(time.clock(), most);
  const parsed = parseRow(lockAt("job"), HELD);
  if ("problem" in parsed) throw new Error(parsed.problem);
  for (let number = 0; number < count; number += 1) sightings.note(lockAt(`job-${number}`), parsed.row);
  time.skip(TTL_MS);
  return (number: number) => sightings.unchanged(lockAt(`job-${number}`));
}

test("a process watches 100 000 rows at once", () => {
  const seen = seeing(100_000);
  for (const number of [0, 1, 50_000, 99_999]) expect(seen(number)).toEqual({ uuid: "u", expires: HELD.expires });
});

test.each([1, 100])("of more rows than the bound of %d, the oldest are forgotten", (most) => {
  const seen = seeing(2 * most, most);
  expect(seen(0)).toBeUndefined();
  for (let number = most; number < 2 * most; number += 1) expect(seen(number)).toBeDefined();
});
