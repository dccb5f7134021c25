import type { Remove } from "../../lib/protocol/writes.js";
import { FAST, type Limits, reader, type Side, SLOW, writer } from "./limits.js";
import type { Rules } from "./rules.js";
import { applies, type Switch } from "./switch.js";

/** One side does otherwise than `RULES` says, and the other as ever. */
const only = <Way>(side: Side, off: Way, on: Way) => {
  return (of: Side): Way => (of === side ? off : on);
};

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

const JUDGED_BY_REPLY: Partial<Rules> = { judgesBy: only<"request" | "reply">("writer", "reply", "request") };

const REMOVED_BY_UUID = applies<Remove>("remove", (write, row) => ({
  write: { ...write, seenExpires: Number(row.expires) },
}));

const FIRST = "after its flag is answered";
const STOOD = "on a lease that stood since its look";

export const SHARED_SWITCHES: readonly Switch[] = [
  {
    name: "a writer's query is eventually consistent",
    stage: "readers and a writer",
    more: AT_ONCE,
    breaks: "readers or one writer",
    off: { isConsistent: only("writer", false, true) },
  },
  {
    name: "a reader's look is eventually consistent",
    stage: "readers and a writer",
    more: AT_ONCE,
    breaks: "readers or one writer",
    off: { isConsistent: only("reader", false, true) },
  },
  {
    name: "a reader looks before it puts its flag",
    stage: "readers and a writer",
    more: AT_ONCE,
    breaks: "readers or one writer",
    off: { looks: only<ReturnType<Rules["looks"]>>("reader", "before its flag", FIRST) },
  },
  {
    name: "a writer queries before its flag is answered",
    stage: "readers and a writer",
    more: AT_ONCE,
    breaks: "readers or one writer",
    off: { looks: only<ReturnType<Rules["looks"]>>("writer", "after its flag is sent", FIRST) },
  },
  {
    name: "a reader stays although it saw a writer",
    stage: "readers and a writer",
    more: AT_ONCE,
    breaks: "readers or one writer",
    off: { givesWay: false },
  },
  {
    name: "a reader judges a writer by what it knows when the reply arrives",
    stage: "readers and a writer",
    more: WRITER_RENEWS,
    breaks: "readers or one writer",
    off: { judgesBy: only<"request" | "reply">("reader", "reply", "request") },
  },
  {
    name: "a writer judges readers by what it knows when the reply arrives",
    stage: "readers and a writer",
    more: { ...READER_RENEWS, ticks: 3 },
    breaks: undefined,
    off: JUDGED_BY_REPLY,
  },
  {
    name: "a writer enters although dead readers are there",
    stage: "readers and a writer",
    more: { ...READER_RENEWS, ticks: 3 },
    breaks: undefined,
    off: { entersOn: "no living reader" },
  },
  {
    name: "a writer enters although dead readers are there, and they have guards",
    stage: "guards of readers",
    breaks: "a guard commits for its section alone",
    off: { entersOn: "no living reader" },
  },
  {
    name: "a writer enters although there are readers that are dead when the reply arrives",
    stage: "readers and a writer",
    more: READER_RENEWS,
    breaks: "readers or one writer",
    off: { ...JUDGED_BY_REPLY, entersOn: "no living reader" },
  },
  {
    name: "a dead reader is removed by its uuid alone",
    stage: "readers and a writer",
    more: { ...READER_RENEWS, ticks: 3 },
    breaks: undefined,
    off: REMOVED_BY_UUID,
  },
  {
    name: "a reader that is dead when the reply arrives is removed by its uuid alone",
    stage: "readers and a writer",
    more: READER_RENEWS,
    breaks: "readers or one writer",
    off: { ...JUDGED_BY_REPLY, ...REMOVED_BY_UUID },
  },
  {
    name: "a writer does not check its own lease",
    stage: "readers and a writer",
    more: { widths: [0], lateCopies: 0 },
    breaks: "readers or one writer",
    off: { enters: only<ReturnType<Rules["enters"]>>("writer", "on any lease", STOOD) },
  },
  {
    name: "a reader does not check its own lease",
    stage: "readers and a writer",
    more: { ...READER_RENEWS, ticks: 3 },
    breaks: "readers or one writer",
    off: { enters: only<ReturnType<Rules["enters"]>>("reader", "on any lease", STOOD) },
  },
  {
    name: "a writer whose lease has lapsed and was renewed enters by a query before that",
    stage: "readers and a writer",
    more: WRITER_RENEWS,
    breaks: "readers or one writer",
    off: { enters: only<ReturnType<Rules["enters"]>>("writer", "on a lease that stands", STOOD) },
  },
  {
    name: "a reader whose lease has lapsed and was renewed enters by a look before that",
    stage: "readers and a writer",
    more: READER_RENEWS,
    breaks: "readers or one writer",
    off: { enters: only<ReturnType<Rules["enters"]>>("reader", "on a lease that stands", STOOD) },
  },
  {
    name: "a writer's lease that lapses while it is passed on is not lost",
    stage: "readers and a writer",
    more: { ...WRITER_RENEWS, guards: [0, 1], reissues: 1 },
    breaks: "readers or one writer",
    off: { losesWhilePassedOn: false },
  },
  {
    name: "a reader leaves the row of a dead writer",
    stage: "guards of both sides",
    more: { reissues: 0 },
    breaks: "a guard commits for its section alone",
    off: { deadWriter: "passes it by" },
  },
];
