import type { Switches } from "./switch.js";

export const SET_RULES = {
  /** The takes go in one transaction. */
  isOneTransaction: true,
  /** A refused claim is granted only if every row refuses it with its own uuid. */
  allAreOwn: true,
  /** A claim without an answer is looked for, and released. */
  looksForGivenUp: true,
  /** It is looked for on both rows. */
  looksAtBoth: true,
  /** To lose one row is to lose the set. */
  isLostWhole: true,
  /** Each claim has uuids of its own. */
  hasFreshUuids: true,
  /** A takeover names the lease that was seen. */
  namesSeen: true,
};

export type SetRules = typeof SET_RULES;

export interface SetLimits {
  /** The rows that each host wants, in its own order. */
  readonly wants: readonly (readonly string[])[];
  /** In place of that: how many of three permits each host wants, whichever a look shows as free. */
  readonly weights?: readonly number[];
  /** Claims of each host. */
  readonly claims: readonly number[];
  readonly lateCopies: number;
  readonly crashes: number;
  /** How often an operator unlocks one row by force. */
  readonly forced: number;
}

const TWO_SETS: SetLimits = {
  wants: [
    ["a", "b"],
    ["b", "a"],
  ],
  claims: [2, 2],
  lateCopies: 0,
  crashes: 1,
  forced: 0,
};

const NO_SETS = { wants: [], lateCopies: 0, crashes: 0, forced: 0 };

export const SETS = {
  sets: { ...TWO_SETS, claims: [2, 1], forced: 1 },
  "late copies of sets": { ...TWO_SETS, claims: [2, 1], lateCopies: 1, crashes: 0 },
  "a set and a mutex": { ...TWO_SETS, wants: [["a", "b"], ["b"]], claims: [2, 1], forced: 1 },
  "several permits": { ...NO_SETS, weights: [2, 1], claims: [2, 1], crashes: 1 },
  "late copies of several permits": { ...NO_SETS, weights: [2, 1], claims: [1, 1], crashes: 1, lateCopies: 1 },
} satisfies Record<string, SetLimits>;

export const LARGE_SETS: Readonly<Record<keyof typeof SETS, SetLimits>> = {
  sets: { ...SETS.sets, claims: [2, 2] },
  "late copies of sets": { ...SETS["late copies of sets"], lateCopies: 2 },
  "a set and a mutex": { ...SETS["a set and a mutex"], claims: [2, 2], lateCopies: 1, crashes: 0 },
  "several permits": { ...SETS["several permits"], weights: [2, 1, 2], claims: [1, 1, 1] },
  "late copies of several permits": {
    ...SETS["late copies of several permits"],
    weights: [2, 1, 2],
    claims: [1, 1, 1],
    crashes: 0,
  },
};

export type SetInvariant = "one holder of a row" | "a set begins with all of its rows" | "nothing is left behind";

export const SET_SWITCHES: Switches<keyof typeof SETS, SetLimits, SetRules, SetInvariant> = {
  sets: {
    "the takes of a set are sent one by one": {
      takesOut: ["protocol#taking: A set"],
      breaks: "nothing is left behind",
      off: { isOneTransaction: false },
    },
    "a set is granted by the first row that is its own": {
      takesOut: ["protocol#taking: A set"],
      breaks: "a set begins with all of its rows",
      off: { allAreOwn: false },
    },
    "a set that is given up is not looked for": {
      takesOut: ["protocol#abandoned-claims: In the background", "guarantees#networks-and-crashes: A wait leaves"],
      breaks: "nothing is left behind",
      off: { looksForGivenUp: false },
    },
    "a set that is given up is looked for on its first row": {
      takesOut: ["protocol#abandoned-claims: In the background"],
      breaks: "nothing is left behind",
      off: { looksAtBoth: false },
    },
    "a set goes on without a row": {
      takesOut: ["several-locks#the-set"],
      breaks: "one holder of a row",
      off: { isLostWhole: false },
    },
    "a set takes over whatever lease it meets": {
      takesOut: ["protocol#taking-over 2"],
      more: { claims: [2, 2], crashes: 0, forced: 0 },
      breaks: "one holder of a row",
      off: { namesSeen: false },
    },
  },
  "several permits": {
    "the takes of several permits are sent one by one": {
      takesOut: ["protocol#semaphores: Several permits"],
      breaks: "nothing is left behind",
      off: { isOneTransaction: false },
    },
    "several permits go on without one of them": {
      takesOut: ["protocol#semaphores: Several permits", "semaphores#what-is-promised: A lock of several permits"],
      more: { weights: [2, 2], claims: [1, 1], crashes: 0 },
      breaks: "one holder of a row",
      off: { isLostWhole: false },
    },
  },
  "late copies of sets": {
    "the claims of a set share their uuids": {
      takesOut: ["protocol#taking: A set"],
      breaks: "one holder of a row",
      off: { hasFreshUuids: false },
    },
  },
};
