import { describe, expect, test } from "@jest/globals";
import { violationsIn } from "./checker.js";
import type { History, Look } from "./history.js";
import { idOf, type Line } from "./register.js";

/** A log from sections' names, a line a millisecond, each read and acknowledged as it should be. */
function historyOf(...sections: readonly string[]): History {
  const lines: Line[] = [];
  for (const section of sections) {
    const before = lines.at(-1);
    lines.push({
      version: lines.length + 1,
      section,
      step: lines.filter((line) => line.section === section).length + 1,
      after: before === undefined ? "" : idOf(before),
      checkedFrom: lines.length,
      checkedTo: lines.length,
    });
  }
  return { lines, beliefs: [], acknowledged: lines, looks: [], sentAfterRelease: [] };
}

/** The same, where each section's token is the code of the letter that it is named by. */
function fencedHistoryOf(...sections: readonly string[]): History {
  const { lines, ...rest } = historyOf(...sections);
  return { ...rest, lines: lines.map((line) => ({ ...line, token: tokenOf(line.section) })) };
}

function tokenOf(section: string): bigint {
  return BigInt(section.charCodeAt(0));
}

/** A section has read the log up to this line. */
function lookOf(section: string, version: number): Look {
  return { section, token: tokenOf(section), version };
}

function kindsIn(history: History): string[] {
  return violationsIn(history).map(({ kind }) => kind);
}

describe("what it lets pass", () => {
  test.each<{ title: string; history: History }>([
    { title: "nothing at all", history: historyOf() },
    { title: "sections one after the other, whatever their length", history: historyOf("a", "b", "b", "b", "c", "c") },
    {
      title: "a section that was killed, and one that wrote nothing",
      history: { ...historyOf("a", "c"), beliefs: [{ section: "b", from: 0.2, to: 0.8 }] },
    },
    {
      title: "a section that saw its lock once and never again, in the time of another",
      history: { ...historyOf("a", "a", "a"), beliefs: [{ section: "b", from: 1.5, to: 1.4 }] },
    },
    {
      title: "a late write before the next holder's first",
      history: {
        ...historyOf("a", "a", "b"),
        // The check passed before b had the lock; the line came after b had taken it.
        beliefs: [{ section: "b", from: 1.1, to: 3 }],
      },
    },
    {
      title: "a line that the table has and never acknowledged",
      history: { ...historyOf("a", "b"), acknowledged: [] },
    },
    { title: "tokens that rise, with gaps", history: fencedHistoryOf("a", "a", "c", "k", "k") },
    {
      title: "sections that have read all older lines, each before and after lines of its own",
      history: { ...fencedHistoryOf("a", "a", "b"), looks: [lookOf("a", 0), lookOf("a", 1), lookOf("b", 2)] },
    },
    {
      title: "a look from before the lines of a section that came later",
      history: { ...fencedHistoryOf("a", "c"), looks: [lookOf("a", 1), lookOf("b", 1)] },
    },
    {
      title: "a line that was sent after a release and is not there",
      history: { ...fencedHistoryOf("a", "b"), sentAfterRelease: [{ section: "a", step: 2 }] },
    },
  ])("$title", ({ history }) => {
    expect(violationsIn(history)).toEqual([]);
  });
});

describe("what it finds", () => {
  test("a section that goes on after another has begun", () => {
    const history = historyOf("a", "b", "b", "a");
    expect(violationsIn(history)).toContainEqual({ kind: "interleaved", detail: "a#1, then b#1, b#2, then a#2" });
  });

  test("two sections that take turns, each time", () => {
    expect(kindsIn(historyOf("a", "b", "a", "b")).filter((kind) => kind === "interleaved")).toHaveLength(2);
  });

  test("a belief that lasted into another's, though one of them wrote nothing", () => {
    const history = { ...historyOf("a", "a", "a"), beliefs: [{ section: "b", from: 1.5, to: 1.6 }] };
    expect(violationsIn(history)).toEqual([{ kind: "overlap", detail: "a and b, for 0.1 ms" }]);
  });

  test("a short belief inside a long one that began before several others", () => {
    const history = {
      ...historyOf(),
      beliefs: [
        { section: "a", from: 0, to: 10 },
        { section: "b", from: 1, to: 2 },
        { section: "c", from: 8, to: 9 },
      ],
    };
    expect(kindsIn(history)).toEqual(["overlap", "overlap"]);
  });

  test("an acknowledged line that is gone", () => {
    const { lines, ...rest } = historyOf("a", "b");
    expect(kindsIn({ ...rest, lines: lines.slice(0, 1) })).toEqual(["lost update"]);
  });

  test("an acknowledged line that another took the place of", () => {
    const { lines, ...rest } = historyOf("a", "b");
    const [first, second] = lines as [Line, Line];
    expect(kindsIn({ ...rest, lines: [first, { ...second, section: "c" }] })).toEqual(["lost update"]);
  });

  test("a gap", () => {
    const { lines, ...rest } = historyOf("a", "b", "c");
    const withGap = lines.filter(({ version }) => version !== 2);
    expect(kindsIn({ ...rest, lines: withGap, acknowledged: [] })).toEqual(["lost update"]);
  });

  test("a line whose writer had read another than the one before it", () => {
    const { lines, ...rest } = historyOf("a", "b", "c");
    const stale = lines.map((line) => (line.version === 3 ? { ...line, after: "a#1" } : line));
    expect(kindsIn({ ...rest, lines: stale })).toEqual(["lost update"]);
  });

  test("a token that is less than the one before it", () => {
    expect(violationsIn(fencedHistoryOf("b", "a"))).toEqual([
      { kind: "token order", detail: "a#1 has 97, after b#1 with 98" },
    ]);
  });

  test("a section whose token changes", () => {
    const { lines, ...rest } = fencedHistoryOf("a", "a");
    const changed = lines.map((line) => (line.step === 2 ? { ...line, token: tokenOf("b") } : line));
    expect(violationsIn({ ...rest, lines: changed })).toEqual([{ kind: "token order", detail: "a has 97 and 98" }]);
  });

  test("a token that another section has as well, though that one wrote nothing", () => {
    const looks = [{ ...lookOf("b", 1), token: tokenOf("a") }];
    expect(violationsIn({ ...fencedHistoryOf("a"), looks })).toEqual([
      { kind: "token order", detail: "a and b have 97" },
    ]);
  });

  test("a line that came when a later section had read the log, though that one wrote nothing", () => {
    const history = { ...fencedHistoryOf("a", "a", "a"), looks: [lookOf("b", 2), lookOf("a", 0)] };
    expect(violationsIn(history)).toEqual([{ kind: "late", detail: "a#3 has place 3, and b had read the log to 2" }]);
  });

  test("a line from between two looks of a later section, before that one's own", () => {
    const history = { ...fencedHistoryOf("a", "a", "b"), looks: [lookOf("b", 1), lookOf("b", 2)] };
    expect(kindsIn(history)).toEqual(["late"]);
  });

  test("a line that was sent after the release of its lock", () => {
    const history = { ...fencedHistoryOf("a", "a"), sentAfterRelease: [{ section: "a", step: 2 }] };
    expect(violationsIn(history)).toEqual([{ kind: "after release", detail: "a#2 has place 2" }]);
  });
});
