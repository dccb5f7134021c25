import { expect, test } from "@jest/globals";
import { IS_FULL } from "../../support/full.js";
import { FLIGHTS, flightsOf } from "./flights.js";
import type { Limits } from "./limits.js";
import { wronglyMerged } from "./merging.js";
import { STAGES, SWITCHES } from "./models.js";
import { ONCE, onceOf } from "./once.js";
import { RESUMES } from "./resume-switches.js";
import { resumesOf } from "./resumes.js";
import { search } from "./search.js";
import { SETS } from "./set-switches.js";
import { setsOf } from "./sets.js";
import { spaceOf } from "./space.js";
import { SMALL } from "./stages.js";
import type { Invariant } from "./step.js";
import { TICKS, ticksOf } from "./ticks.js";

/** The stages that take the least time: `npm test` has these alone, to see that the model runs. */
const SHORT = ["permits", "flights", "late copies of ticks"];

const isPlayed = ({ stage }: { readonly stage: string }): boolean => IS_FULL || SHORT.includes(stage);

/** What the small bounds must have been through, or that they hold proves little. */
const EXPECTED = [
  "a dead reader is removed",
  "a dead writer is passed by",
  "a dead writer is removed",
  "a reader gives way",
  "a section begins",
  "a writer waits",
  "check applied",
  "crashes",
  "gives up",
  "handed off",
  "is suspended while time passes",
  "its flag stands",
  "late reissue applied",
  "late renew applied",
  "late take applied",
  "late transfer applied",
  "late vacate applied",
  "reissue applied",
  "remove applied",
  "remove refused",
  "released",
  "renewed",
  "sends again",
  "somebody else has it",
  "take applied: takeover by the time",
  "take applied: takeover by watching",
  "take refused",
  "the token is spent",
  "too late for a section",
];

/** Nobody has to die for it: the reader has released its row. */
const GUARDS_OF_READERS: Limits = { ...SMALL["guards of readers"], ticks: 0 };

const reached = new Set<string>();

test.each(STAGES.filter(isPlayed))("every promise is kept in all interleavings: $stage", ({ small }) => {
  const explored = small();
  expect(explored.violation?.trace).toBeUndefined();
  for (const what of explored.reached) reached.add(what);
});

test.each(SWITCHES.filter(isPlayed))("where $name, this breaks: $breaks", ({ explore, breaks }) => {
  expect(explore().violation?.broken ?? "nothing").toBe(breaks);
});

if (IS_FULL) {
  test("the interleavings have been through what matters", () => {
    expect(EXPECTED.filter((what) => !reached.has(what))).toEqual([]);
  });

  test.each([
    ...(["watched hand-offs", "permits", "two readers", "guards of readers"] as const).map((stage) => {
      return [stage, () => wronglyMerged(spaceOf(SMALL[stage]))] as const;
    }),
    ["flights", () => wronglyMerged(flightsOf(FLIGHTS.flights))] as const,
    ["ticks", () => wronglyMerged(ticksOf(TICKS.ticks))] as const,
    ["later ticks", () => wronglyMerged(onceOf(ONCE["later ticks"]))] as const,
    ["sets", () => wronglyMerged(setsOf(SETS.sets))] as const,
    ["resumes", () => wronglyMerged(resumesOf(RESUMES.resumes))] as const,
  ])("states are taken for one only if the same may follow from them: %s", (_, merge) => {
    const { compared, wrong } = merge();
    expect(compared).toBeGreaterThan(1_000);
    expect(wrong).toEqual([]);
  });

  test.each<[string, Limits, Invariant, string[]]>([
    ["a guard without a token", SMALL.guards, "a guard commits for its section alone", ["take", "renew", "check"]],
    ["a guard of a reader", GUARDS_OF_READERS, "a guard commits for its section alone", ["take", "renew", "check"]],
    ["a hand-off", SMALL["hand-offs"], "a token is resumed once", ["take", "renew", "transfer"]],
  ])("the documented limit of %s is found: three late copies in a row", (_, limits, breaks, copies) => {
    const { violation } = search(spaceOf({ ...limits, lateCopies: 3 }));
    expect(violation?.broken).toBe(breaks);
    const late = violation?.steps.filter((what) => what.startsWith("late "));
    expect(late).toEqual(copies.map((kind) => `late ${kind} applied`));
  });
}
