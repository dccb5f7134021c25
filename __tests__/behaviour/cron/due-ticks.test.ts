import { describe, expect, test } from "@jest/globals";
import { lockAt } from "../../../lib/protocol/addresses.js";
import { apply } from "../../../lib/protocol/apply.js";
import { type Attributes, parseRow, type Row } from "../../../lib/protocol/row.js";
import { wasApplied } from "../../../lib/protocol/was-applied.js";
import type { RecordSuccess, Take } from "../../../lib/protocol/writes.js";

const at = lockAt("report");
const EARLIEST = 1_000;

const take = (differences: Partial<Take>): Take => ({
  ...{ kind: "take", at, uuid: "mine", expires: 31_000, ttlMs: 30_000, owner: "a", acquired: EARLIEST },
  ...{ knowledge: { earliest: EARLIEST }, remembers: "tick", tick: 7 },
  ...differences,
});

/** A row that nobody holds. */
const free = (differences: Attributes): Attributes => ({
  ...{ format: 1, owner: "b", expires: 0, ttlMs: 30_000, acquired: 5 },
  ...differences,
});

const record: RecordSuccess = { kind: "record", at, uuid: "mine", tick: 7, attempt: 2 };

function rowOf(attributes: Attributes): Row {
  const parsed = parseRow(at, attributes);
  if ("problem" in parsed) throw new Error(parsed.problem);
  return parsed.row;
}

describe("the take of a tick that is run until it succeeds", () => {
  const due = free({ tick: 7, due: 7, attempt: 1 });
  test.each<[string, Partial<Take>, Attributes | undefined, number | undefined]>([
    ["the first meets no row", { attempt: 1 }, undefined, 1],
    ["the first meets an earlier tick, open", { attempt: 1 }, free({ tick: 6, due: 6, attempt: 5 }), 1],
    ["the first meets its tick", { attempt: 1 }, due, undefined],
    ["a later one meets what it has seen", { attempt: 2, seenAttempt: 1 }, due, 2],
    ["a late copy of it meets the next number", { attempt: 2, seenAttempt: 1 }, { ...due, attempt: 2 }, undefined],
    ["it meets a success", { attempt: 2, seenAttempt: 1 }, free({ tick: 7, attempt: 1 }), undefined],
    ["it meets a later tick", { attempt: 2, seenAttempt: 1 }, { ...due, tick: 8 }, undefined],
    ["it meets a holder", { attempt: 2, seenAttempt: 1 }, { ...due, uuid: "theirs", expires: 9_000 }, undefined],
    ["it meets no row", { attempt: 2, seenAttempt: 1 }, undefined, 2],
  ])("%s", (_, differences, item, attempt) => {
    const applied = apply(item, take(differences));
    expect(applied.kind).toBe(attempt === undefined ? "refused" : "applied");
    if (applied.kind === "applied") expect(applied.after).toMatchObject({ tick: 7, due: 7, attempt, uuid: "mine" });
  });

  test("one that keeps the number of a claim given up is refused, late, once something has run", () => {
    const knowledge = { earliest: EARLIEST, unchanged: { uuid: "given up", expires: 9_000 } };
    const keeps = take({ attempt: 1, seenAttempt: 1, knowledge });
    expect(apply({ ...due, uuid: "given up", expires: 9_000 }, keeps)).toMatchObject({ kind: "applied" });
    expect(apply(undefined, keeps)).toMatchObject({ kind: "applied", after: { due: 7, attempt: 1 } });
    // Its row was given back, another run of attempt 1 has begun and failed, and now a copy of it arrives.
    expect(apply(due, keeps)).toMatchObject({ kind: "refused" });
  });

  test("one for a tick that is granted once leaves nothing of the tick before it; one without a tick leaves all", () => {
    const once = apply(due, take({ tick: 8 }));
    expect(once).toMatchObject({ kind: "applied", after: { tick: 8 } });
    expect(once).not.toHaveProperty("after.due");
    expect(once).not.toHaveProperty("after.attempt");
    const plain = apply(due, take({ tick: undefined }));
    expect(plain).toMatchObject({ kind: "applied", after: { tick: 7, due: 7, attempt: 1 } });
  });
});

describe("the record of a success", () => {
  const held = free({ uuid: "mine", expires: 31_000, tick: 7, due: 7, attempt: 2 });

  test("is written where the uuid is, as often as it arrives, and keeps the number of the attempt", () => {
    const once = apply(held, record);
    expect(once).toMatchObject({ kind: "applied", after: { uuid: "mine", tick: 7, attempt: 2 } });
    expect(once).not.toHaveProperty("after.due");
    if (once.kind === "applied")
      expect(apply(once.after, record)).toMatchObject({ kind: "applied", after: once.after });
    expect(apply({ ...held, uuid: "theirs" }, record)).toMatchObject({ kind: "refused" });
  });

  test.each<[string, "yes" | "maybe" | "no", Attributes | undefined]>([
    ["its tick, not due, with its number", "yes", free({ tick: 7, attempt: 2 })],
    ["the same, under another's uuid", "yes", free({ uuid: "theirs", tick: 7, attempt: 2 })],
    ["its tick, due", "no", free({ tick: 7, due: 7, attempt: 2 })],
    ["a later attempt that has succeeded", "no", free({ tick: 7, attempt: 3 })],
    ["a later tick", "maybe", free({ tick: 8, due: 8, attempt: 2 })],
    ["no row", "maybe", undefined],
  ])("refused by %s: %s, it was applied before", (_, expected, item) => {
    expect(wasApplied(record, item && rowOf(item))).toBe(expected);
  });

  test("what was sent once and refused was not applied, where the row cannot tell", () => {
    expect(wasApplied(record, undefined, { earlierCopyUnanswered: false })).toBe("no");
  });
});

test("a `due` and an `attempt` that are none of ours make no bad row: an older process checks neither", () => {
  expect(rowOf(free({ tick: 7, due: "7", attempt: 1.5 }))).toMatchObject({
    tick: 7,
    due: undefined,
    attempt: undefined,
  });
});
