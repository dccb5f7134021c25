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

/** With the rule switched off, a run within these bounds breaks it. */
const NEEDED: readonly (readonly [keyof TickRules, TickLimits])[] = [
  ["attemptAsSeen", { ticks: [5, 5], maxAttempts: 3, lateCopies: 1, olderUses: 0 }],
  ["ownAttempt", { ticks: [5, 5], maxAttempts: 3, lateCopies: 0, olderUses: 0 }],
  ["notDue", { ticks: [5, 5], maxAttempts: 3, lateCopies: 0, olderUses: 0 }],
  ["recordEnds", { ticks: [5, 5], maxAttempts: 3, lateCopies: 0, olderUses: 0 }],
  ["dueNamesTick", { ticks: [5, 6], maxAttempts: 3, lateCopies: 0, olderUses: 1 }],
];

test.each(NEEDED)("a run breaks it without the rule %s", (rule, limits) => {
  expect(exploreTicks({ ...RULES, [rule]: false }, limits).violation).toBeDefined();
});
