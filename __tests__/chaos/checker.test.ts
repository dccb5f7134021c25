import { describe, expect, test } from "@jest/globals";
import { type History, violationsIn } from "./checker.js";
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
  return { lines, beliefs: [], acknowledged: lines };
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
    const { lines } = historyOf("a", "b", "c");
    expect(kindsIn({ lines: lines.filter(({ version }) => version !== 2), beliefs: [], acknowledged: [] })).toEqual([
      "lost update",
    ]);
  });

  test("a line whose writer had read another than the one before it", () => {
    const { lines, ...rest } = historyOf("a", "b", "c");
    const stale = lines.map((line) => (line.version === 3 ? { ...line, after: "a#1" } : line));
    expect(kindsIn({ ...rest, lines: stale })).toEqual(["lost update"]);
  });
});
