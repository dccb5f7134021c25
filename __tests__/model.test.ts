import { describe, expect, it } from "@jest/globals";
import { explore } from "./model/explore.js";
import { SMALL } from "./model/limits.js";
import { RULES } from "./model/rules.js";
import { SWITCHES } from "./model/switches.js";
import { traceOf } from "./model/trace.js";

/** What the small bounds must have been through, or that they hold proves little. */
const EXPECTED = [
  "a host is suspended",
  "a section begins",
  "check applied",
  "crashes",
  "gives up",
  "late reissue applied",
  "late renew applied",
  "late take applied",
  "late vacate applied",
  "reissue applied",
  "released",
  "renewed",
  "sends again",
  "somebody else has it",
  "take applied: takeover by the time",
  "take applied: takeover by watching",
  "take refused",
  "too late for a section",
];

describe("a model of the protocol", () => {
  it("keeps every promise in all interleavings within the small bounds, and reaches what matters", () => {
    const reached = new Set<string>();
    for (const bounds of Object.values(SMALL)) {
      const explored = explore(bounds);
      expect(explored.violation && traceOf(explored.violation)).toBeUndefined();
      for (const name of explored.reached.names) reached.add(name);
    }
    expect(EXPECTED.filter((name) => !reached.has(name))).toEqual([]);
  });

  it.each(SWITCHES)("sees what breaks where $name", ({ stage, more, breaks, off }) => {
    const { violation } = explore({ ...SMALL[stage], ...more }, { ...RULES, ...off });
    expect(violation?.invariant).toBe(breaks);
  });

  it("finds the documented limit of a guard without a token: three late copies in a row", () => {
    const { violation } = explore({ ...SMALL.guards, lateCopies: 3 });
    expect(violation?.invariant).toBe("a guard commits for its section alone");
    const late = violation?.steps.flatMap(({ event }) => {
      return event.kind === "arrives" && event.late ? [event.message.write.kind] : [];
    });
    expect(late).toEqual(["take", "renew", "check"]);
  });
});
