import { expect, test } from "@jest/globals";
import { explore } from "./explore.js";
import { SMALL, type Stage } from "./stages.js";
import { SWITCHES } from "./switches.js";
import { traceOf } from "./trace.js";

/** Of each part of the protocol the stage that takes the least time. The others are in the full tests. */
const SHORT: readonly Stage[] = ["leases", "hand-offs", "two readers"];

test.each(SHORT)("every promise is kept in all interleavings within the small bounds: %s", (stage) => {
  const { violation } = explore(SMALL[stage]);
  expect(violation && traceOf(violation)).toBeUndefined();
});

test.each(SWITCHES.filter(({ breaks, stage }) => breaks !== undefined && SHORT.includes(stage)))(
  "a promise is seen to break where $name",
  ({ stage, more, breaks, off }) => {
    expect(explore({ ...SMALL[stage], ...more }, off).violation?.invariant).toBe(breaks);
  },
);
