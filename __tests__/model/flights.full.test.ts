import { expect, test } from "@jest/globals";
import { exploreFlights, type FlightLimits, type FlightRules } from "./flights.js";

const RULES: FlightRules = { takeNamesLast: true, valueIsNamed: true, unnamedMayBeOver: true, looksFirst: true };

const BOUNDS: readonly FlightLimits[] = [
  { flights: 2, lateCopies: 3, olderUses: 0 },
  { flights: 2, lateCopies: 2, olderUses: 1 },
  { flights: 1, lateCopies: 2, olderUses: 1 },
];

test.each(BOUNDS)("no call gets a flight that was over before it, or has not ended: %p", (limits) => {
  const { states, violation, trace } = exploreFlights(RULES, limits);
  expect({ violation, trace }).toEqual({ violation: undefined, trace: [] });
  expect(states).toBeGreaterThan(20);
});

/** With the rule switched off, a run within these bounds breaks this. */
const NEEDED: readonly (readonly [keyof FlightRules, RegExp, FlightLimits])[] = [
  ["takeNamesLast", /was over before the call/, { flights: 2, lateCopies: 3, olderUses: 0 }],
  ["valueIsNamed", /has not ended/, { flights: 2, lateCopies: 0, olderUses: 0 }],
  ["unnamedMayBeOver", /was over before the call/, { flights: 1, lateCopies: 2, olderUses: 1 }],
  ["looksFirst", /was over before the call/, { flights: 1, lateCopies: 0, olderUses: 0 }],
];

test.each(NEEDED)("without the rule %s a run shows: %p", (rule, broken, limits) => {
  expect(exploreFlights({ ...RULES, [rule]: false }, limits).violation).toMatch(broken);
});
