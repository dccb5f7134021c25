import { expect, test } from "@jest/globals";
import { exploreTicks, type TickLimits, type TickRules } from "./ticks.js";

const RULES: TickRules = {
  attemptAsSeen: true,
  ownAttempt: true,
  notDue: true,
  recordEnds: true,
  dueNamesTick: true,
};

const BOUNDS: readonly TickLimits[] = [
  { ticks: [5, 5, 5], maxAttempts: 2, lateCopies: 1, olderUses: 0 },
  { ticks: [5, 5], maxAttempts: 2, lateCopies: 4, olderUses: 0 },
  { ticks: [5, 5, 6], maxAttempts: 3, lateCopies: 1, olderUses: 1 },
];

test.each(BOUNDS)("a tick has one recorded success, which its caller hears, and no run after it: %p", (limits) => {
  const { states, violation, trace } = exploreTicks(RULES, limits);
  expect({ violation, trace }).toEqual({ violation: undefined, trace: [] });
  expect(states).toBeGreaterThan(100);
});

/** With the rule switched off, a run within these bounds breaks this. */
const NEEDED: readonly (readonly [keyof TickRules, RegExp, TickLimits])[] = [
  ["attemptAsSeen", /attempts are counted/, { ticks: [5, 5], maxAttempts: 3, lateCopies: 1, olderUses: 0 }],
  ["ownAttempt", /is not the one that is recorded/, { ticks: [5, 5], maxAttempts: 3, lateCopies: 0, olderUses: 0 }],
  ["notDue", /is not the one that is recorded/, { ticks: [5, 5], maxAttempts: 3, lateCopies: 0, olderUses: 0 }],
  ["recordEnds", /is run after its success/, { ticks: [5, 5], maxAttempts: 3, lateCopies: 0, olderUses: 0 }],
  ["dueNamesTick", /granted once is run again/, { ticks: [5, 6], maxAttempts: 3, lateCopies: 0, olderUses: 1 }],
];

test.each(NEEDED)("without the rule %s a run shows: %p", (rule, broken, limits) => {
  expect(exploreTicks({ ...RULES, [rule]: false }, limits).violation).toMatch(broken);
});
