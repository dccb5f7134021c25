import { describe, expect, it } from "@jest/globals";
import { explore } from "./model/explore.js";
import type { Limits } from "./model/limits.js";
import { wronglyMerged } from "./model/merging.js";
import { SMALL, type Stage } from "./model/stages.js";
import type { Invariant } from "./model/step.js";
import { SWITCHES } from "./model/switches.js";
import { traceOf } from "./model/trace.js";

/** What the small bounds must have been through, or that they hold proves little. */
const EXPECTED = [
  "a dead reader is removed",
  "a dead writer is passed by",
  "a dead writer is removed",
  "a host is suspended",
  "a reader gives way",
  "a section begins",
  "a writer waits",
  "check applied",
  "crashes",
  "gives up",
  "handed off",
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

describe("a model of the protocol", () => {
  const reached = new Set<string>();

  it.each(Object.entries(SMALL))(
    "keeps every promise in all interleavings within the small bounds: %s",
    (_, bounds) => {
      const explored = explore(bounds);
      expect(explored.violation && traceOf(explored.violation)).toBeUndefined();
      for (const name of explored.reached.names) reached.add(name);
    },
  );

  it("has been through what matters", () => {
    expect(EXPECTED.filter((name) => !reached.has(name))).toEqual([]);
  });

  it.each<Stage>(["watched hand-offs", "two readers", "guards of readers"])(
    "takes states for one only if the same may follow from them: %s",
    (stage) => {
      const { compared, wrong } = wronglyMerged(SMALL[stage]);
      expect(compared).toBeGreaterThan(1_000);
      expect(wrong).toEqual([]);
    },
  );

  it.each(SWITCHES.filter(({ breaks }) => breaks !== undefined))(
    "sees what breaks where $name",
    ({ stage, more, breaks, off }) => {
      const { violation } = explore({ ...SMALL[stage], ...more }, off);
      expect(violation?.invariant).toBe(breaks);
    },
  );

  it.each(SWITCHES.filter(({ breaks }) => breaks === undefined))(
    "is covered by another rule where $name",
    ({ stage, more, off }) => {
      const { violation } = explore({ ...SMALL[stage], ...more }, off);
      expect(violation && traceOf(violation)).toBeUndefined();
    },
  );

  it.each<[string, Limits, Invariant, readonly string[]]>([
    ["a guard without a token", SMALL.guards, "a guard commits for its section alone", ["take", "renew", "check"]],
    ["a guard of a reader", GUARDS_OF_READERS, "a guard commits for its section alone", ["take", "renew", "check"]],
    ["a hand-off", SMALL["hand-offs"], "a token is resumed once", ["take", "renew", "transfer"]],
  ])("finds the documented limit of %s: three late copies in a row", (_, limits, breaks, copies) => {
    const { violation } = explore({ ...limits, lateCopies: 3 });
    expect(violation?.invariant).toBe(breaks);
    const late = violation?.steps.flatMap(({ event }) => {
      return event.kind === "arrives" && event.late ? [event.message.write.kind] : [];
    });
    expect(late).toEqual(copies);
  });
});
