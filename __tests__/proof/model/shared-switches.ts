import type { Remove } from "../../../lib/protocol/writes.js";
import { FAST, type Limits, reader, type Side, SLOW, writer } from "./limits.js";
import { RULES, type Rules } from "./rules.js";
import { applies, type ClaimantSwitches } from "./switch.js";

/** One side does otherwise than `RULES` says, and the other as ever. */
function only<Rule extends "looks" | "isConsistent" | "judgesBy" | "enters">(
  side: Side,
  rule: Rule,
  off: ReturnType<Rules[Rule]>,
): Partial<Rules> {
  return { [rule]: (of: Side) => (of === side ? off : RULES[rule](of)) };
}

/** Nothing depends on the time. */
const AT_ONCE = { ticks: 0, widths: [0], lateCopies: 0 } as const;

/** A writer renews while it is watched. */
const WRITER_RENEWS: Partial<Limits> = {
  ticks: 2,
  hosts: [[reader(2, FAST), writer(2, SLOW)]],
  widths: [0],
  renewals: [0, 1],
  lateCopies: 0,
  polls: [true],
  losses: false,
};

/** A reader renews while a writer waits for it. */
const READER_RENEWS: Partial<Limits> = {
  ticks: 2,
  hosts: [[reader(2, SLOW), writer(3, FAST)]],
  widths: [0],
  renewals: [1, 0],
  lateCopies: 1,
  losses: false,
};

const JUDGED_BY_REPLY = only("writer", "judgesBy", "reply");

const REMOVED_BY_UUID = applies<Remove>("remove", (write, row) => ({
  write: { ...write, seenExpires: Number(row.expires) },
}));

export const SHARED_SWITCHES: ClaimantSwitches = {
  "readers and a writer": {
    "a writer's query is eventually consistent": {
      takesOut: ["protocol#shared-mutexes 1", "shared-mutexes#what-is-promised: No section"],
      more: AT_ONCE,
      breaks: "readers or one writer",
      off: only("writer", "isConsistent", false),
    },
    "a reader's look is eventually consistent": {
      takesOut: ["protocol#shared-mutexes 1", "shared-mutexes#what-is-promised: No section"],
      more: AT_ONCE,
      breaks: "readers or one writer",
      off: only("reader", "isConsistent", false),
    },
    "a reader looks before it puts its flag": {
      takesOut: ["protocol#shared-mutexes 1", "shared-mutexes#what-is-promised: No section"],
      more: AT_ONCE,
      breaks: "readers or one writer",
      off: only("reader", "looks", "before its flag"),
    },
    "a writer queries before its flag is answered": {
      takesOut: ["protocol#shared-mutexes 1"],
      more: AT_ONCE,
      breaks: "readers or one writer",
      off: only("writer", "looks", "after its flag is sent"),
    },
    "a reader stays although it saw a writer": {
      takesOut: ["protocol#shared-mutexes 1", "shared-mutexes#what-is-promised: No section"],
      more: AT_ONCE,
      breaks: "readers or one writer",
      off: { givesWay: false },
    },
    "a reader judges a writer by what it knows when the reply arrives": {
      takesOut: ["trap 39", "protocol#shared-mutexes 2"],
      more: WRITER_RENEWS,
      breaks: "readers or one writer",
      off: only("reader", "judgesBy", "reply"),
    },
    "a writer judges readers by what it knows when the reply arrives": {
      takesOut: ["trap 39", "protocol#shared-mutexes 2"],
      more: { ...READER_RENEWS, ticks: 3 },
      breaks: "nothing",
      off: JUDGED_BY_REPLY,
    },
    "a writer enters although dead readers are there": {
      takesOut: ["protocol#shared-mutexes 3"],
      more: { ...READER_RENEWS, ticks: 3 },
      breaks: "nothing",
      off: { entersOn: "no living reader" },
    },
    "a writer enters although there are readers that are dead when the reply arrives": {
      takesOut: ["trap 39", "protocol#shared-mutexes 2", "protocol#shared-mutexes 3"],
      more: READER_RENEWS,
      breaks: "readers or one writer",
      off: { ...JUDGED_BY_REPLY, entersOn: "no living reader" },
    },
    "a dead reader is removed by its uuid alone": {
      takesOut: ["protocol#shared-mutexes 3"],
      more: { ...READER_RENEWS, ticks: 3 },
      breaks: "nothing",
      off: REMOVED_BY_UUID,
    },
    "a reader that is dead when the reply arrives is removed by its uuid alone": {
      takesOut: ["protocol#shared-mutexes 2", "protocol#shared-mutexes 3"],
      more: READER_RENEWS,
      breaks: "readers or one writer",
      off: { ...JUDGED_BY_REPLY, ...REMOVED_BY_UUID },
    },
    "a writer does not check its own lease": {
      takesOut: ["protocol#shared-mutexes 4"],
      more: { widths: [0], lateCopies: 0 },
      breaks: "readers or one writer",
      off: only("writer", "enters", "on any lease"),
    },
    "a reader does not check its own lease": {
      takesOut: ["protocol#shared-mutexes 4"],
      more: { ...READER_RENEWS, ticks: 3 },
      breaks: "readers or one writer",
      off: only("reader", "enters", "on any lease"),
    },
    "a writer whose lease has lapsed and was renewed enters by a query before that": {
      takesOut: ["protocol#shared-mutexes 4"],
      more: WRITER_RENEWS,
      breaks: "readers or one writer",
      off: only("writer", "enters", "on a lease that stands"),
    },
    "a reader whose lease has lapsed and was renewed enters by a look before that": {
      takesOut: ["protocol#shared-mutexes 4"],
      more: READER_RENEWS,
      breaks: "readers or one writer",
      off: only("reader", "enters", "on a lease that stands"),
    },
    "a writer's lease that lapses while it is passed on is not lost": {
      takesOut: ["protocol#shared-mutexes 4"],
      more: { ...WRITER_RENEWS, guards: [0, 1], reissues: 1 },
      breaks: "readers or one writer",
      off: { losesWhilePassedOn: false },
    },
  },
  "guards of readers": {
    "a writer enters although dead readers are there, and they have guards": {
      takesOut: ["protocol#shared-mutexes 3", "shared-mutexes#what-is-promised: A guard of either side"],
      breaks: "a guard commits for its section alone",
      off: { entersOn: "no living reader" },
    },
  },
  "guards of both sides": {
    "a reader leaves the row of a dead writer": {
      takesOut: ["protocol#shared-mutexes 3", "shared-mutexes#what-is-promised: A guard of either side"],
      more: { reissues: 0 },
      breaks: "a guard commits for its section alone",
      off: { deadWriter: "passes it by" },
    },
  },
};
