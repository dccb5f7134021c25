import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { holdingOf } from "./holding.js";
import { idOf, type Line } from "./register.js";

interface Violation {
  readonly kind: string;
  readonly detail: string;
}

const { violationsIn: check } = (await import(join(process.cwd(), ".ci", "check-history.js"))) as {
  violationsIn(events: readonly object[]): readonly (Violation & { readonly log: string })[];
};

type Look = Readonly<{ section: string; token: bigint; version: number }>;

/** What happened around one lock. */
interface History {
  readonly lines: readonly Line[];
  readonly beliefs: readonly object[];
  readonly acknowledged: readonly Pick<Line, "version" | "section" | "step">[];
  readonly looks: readonly Look[];
  readonly sentAfterRelease: readonly object[];
  readonly handedOff: readonly { readonly by: string; readonly from: number; readonly until: number }[];
  readonly resumptions: readonly object[];
}

/** The violations in the events of a history, as a file would have them. */
function violationsIn(history: History): Violation[] {
  const { lines, beliefs, acknowledged, looks, sentAfterRelease, handedOff, resumptions } = history;
  const placed = ({ version: place, token, ...more }: { version: number; token?: bigint | undefined }) => ({
    place,
    ...(token !== undefined && { token: String(token) }),
    ...more,
  });
  const told: Readonly<Record<string, readonly object[]>> = {
    line: lines.map(placed),
    believed: beliefs,
    acknowledged: acknowledged.map(placed),
    looked: looks.map(placed),
    "sent after release": sentAfterRelease,
    "handed off": handedOff.map(({ by: section, ...times }) => ({ section, ...times })),
    "tried token": resumptions,
  };
  const events = Object.entries(told).flatMap(([event, all]) => all.map((one) => ({ log: "a", event, ...one })));
  return check(events).map(({ kind, detail }) => ({ kind, detail }));
}

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
  return { lines, beliefs: [], acknowledged: lines, looks: [], sentAfterRelease: [], handedOff: [], resumptions: [] };
}

/** The same, where each section's token is the code of the letter that it is named by. */
function fencedHistoryOf(...sections: readonly string[]): History {
  const { lines, ...rest } = historyOf(...sections);
  return { ...rest, lines: lines.map((line) => ({ ...line, token: tokenOf(line.section) })) };
}

function tokenOf(section: string): bigint {
  return BigInt(section.charCodeAt(0));
}

/** The log of both sides of a shared mutex, as it should be: whoever holds one side meets the lines before. */
function sidesOf(...sections: readonly string[]): History {
  const { lines, ...rest } = historyOf(...sections);
  const firsts = new Map<string, number>();
  let last = 0;
  let seen = 0;
  const placed = lines.map((line): Line => {
    const { section } = line;
    if (!firsts.has(section)) firsts.set(section, last);
    const own = { ...line, version: last + 1, first: firsts.get(section) };
    if (holdingOf(section) === "shared") {
      seen += 1;
      return own;
    }
    const before = lines.filter(
      ({ section: other }, index) => holdingOf(other) === "exclusive" && index < lines.indexOf(line),
    );
    const exclusive = { ...own, after: before.length === 0 ? "" : idOf(before.at(-1) as Line), seen };
    last += 1;
    seen = 0;
    return exclusive;
  });
  return { ...rest, lines: placed, acknowledged: placed };
}

/** The same history, with other lines. */
function changed(history: History, change: (line: Line, index: number) => Partial<Line>): History {
  return { ...history, lines: history.lines.map((line, index) => ({ ...line, ...change(line, index) })) };
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

  test("an acknowledged line that is gone", () => {
    const { lines, ...rest } = historyOf("a", "b");
    expect(kindsIn({ ...rest, lines: lines.slice(0, 1) })).toEqual(["lost update"]);
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
      { kind: "late", detail: "a#1 has place 2, and b had read to 1" },
    ]);
  });

  test("a token that another section has as well, though that one wrote nothing", () => {
    const looks = [{ ...lookOf("b", 1), token: tokenOf("a") }];
    expect(violationsIn({ ...fencedHistoryOf("a"), looks })).toEqual([
      { kind: "token order", detail: "a has 97, and b has 97" },
    ]);
  });

  test("a line that came when a later section had read the log, though that one wrote nothing", () => {
    const history = { ...fencedHistoryOf("a", "a", "a"), looks: [lookOf("b", 2), lookOf("a", 0)] };
    expect(violationsIn(history)).toEqual([{ kind: "late", detail: "a#3 has place 3, and b had read to 2" }]);
  });

  test("a line that was sent after the release of its lock", () => {
    const history = { ...fencedHistoryOf("a", "a"), sentAfterRelease: [{ section: "a", step: 2 }] };
    expect(violationsIn(history)).toEqual([{ kind: "after release", detail: "a#2 is there" }]);
  });
});

const [P0, Q0, P1, P2, P3] = ["permit 0: a", "permit 0: b", "permit 1: c", "permit 2: d", "permit 3: e"] as const;
const [R, S, W, V] = ["shared: r", "shared: s", "exclusive: w", "exclusive: v"] as const;

describe("of a semaphore and a shared mutex", () => {
  test.each<{ title: string; history: History }>([
    { title: "three permits at a time", history: historyOf(P0, P1, P2, P1, P2, P0) },
    { title: "the next permit, when one has gone", history: historyOf(P0, P1, P2, P0, Q0, P1, P2, Q0) },
    {
      title: "beliefs in different permits at one instant",
      history: {
        ...historyOf(),
        beliefs: [P0, P1, P2].map((section) => ({ section, from: 0, to: 1 })),
      },
    },
    { title: "those of the shared side together", history: historyOf(R, S, R, S) },
    { title: "a writer before and after them", history: historyOf(W, W, R, S, R, S, V, V) },
  ])("it lets $title pass", ({ history }) => {
    expect(violationsIn(history)).toEqual([]);
  });

  test.each<{ title: string; history: History; kinds: readonly string[] }>([
    {
      title: "four permits, by the order",
      history: historyOf(P0, P1, P2, P3, P0, P1, P2),
      kinds: ["crowded"],
    },
    {
      title: "four permits, by the time",
      history: { ...historyOf(), beliefs: [P0, P1, P2, P3].map((section) => ({ section, from: 0, to: 1 })) },
      kinds: ["crowded"],
    },
    {
      title: "one permit of two, by the order",
      history: historyOf(P0, P1, Q0, P1, P0),
      kinds: ["interleaved", "overlap"],
    },
    {
      title: "one permit of two, by the time",
      history: { ...historyOf(), beliefs: [P0, P1, Q0].map((section) => ({ section, from: 0, to: 1 })) },
      kinds: ["overlap"],
    },
    { title: "a writer beside a reader", history: historyOf(R, S, W, R, S), kinds: ["interleaved", "overlap"] },
    { title: "a reader within a writer's section", history: historyOf(W, R, W), kinds: ["interleaved", "overlap"] },
    {
      title: "a writer who wrote nothing, beside readers",
      history: {
        ...historyOf(R, S, R, S),
        beliefs: [{ section: W, from: 1.5, to: 1.6 }],
      },
      kinds: ["overlap"],
    },
  ])("it finds $title", ({ history, kinds }) => {
    expect([...new Set(kindsIn(history))].sort()).toEqual(kinds);
  });
});

describe("of guarded lines without tokens", () => {
  const begins = (from: number) => ({ beliefs: [{ section: Q0, from, to: 9 }] });

  test("it lets one pass that was sent before the next section began, and one after it had ended", () => {
    const history = { ...changed(historyOf(P0, P0), () => ({ sentAt: 2.5 })), ...begins(2.6) };
    expect(violationsIn(history)).toEqual([]);
    const later = {
      ...changed(historyOf(P0), () => ({ sentAt: 2 })),
      beliefs: [{ section: Q0, from: -0.2, to: -0.1 }],
    };
    expect(violationsIn(later)).toEqual([]);
  });

  test("it finds one that was sent when another section had the permit", () => {
    const history = { ...changed(historyOf(P0, P0), (_, index) => ({ sentAt: 3 * index })), ...begins(2.6) };
    expect(violationsIn(history)).toEqual([{ kind: "late", detail: `${P0}#2 was sent when ${Q0} had the lock` }]);
  });
});

describe("of tokens", () => {
  const handedOff = [{ by: P0, from: 2, until: 9 }];

  test("it lets one pass that is resumed once, before others have the permit", () => {
    const resumptions = [
      { of: P0, at: 3, section: undefined },
      { of: P0, at: 3, section: Q0 },
      { of: P0, at: 4, section: undefined },
    ];
    const beliefs = [
      { section: P0, from: 0, to: 2 },
      { section: P1, from: 0, to: 9 },
      { section: Q0, from: 5, to: 9 },
    ];
    expect(violationsIn({ ...historyOf(), handedOff, resumptions, beliefs })).toEqual([]);
  });

  test("it finds one that is resumed twice", () => {
    const resumptions = [
      { of: P0, at: 3, section: P0 },
      { of: P0, at: 4, section: Q0 },
    ];
    expect(violationsIn({ ...historyOf(), handedOff, resumptions })).toEqual([
      { kind: "resumed twice", detail: `the token of ${P0}, by ${P0} and ${Q0}` },
    ]);
  });

  test("it finds a section that has the lock while its token waits, resumed later on or not", () => {
    const beliefs = [{ section: Q0, from: 3, to: 4 }];
    expect(violationsIn({ ...historyOf(), handedOff, beliefs })).toEqual([
      { kind: "overlap", detail: `permit 0: the token of a and ${Q0}, for 1.0 ms` },
    ]);
    const resumptions = [{ of: P0, at: 5, section: P0 }];
    expect(kindsIn({ ...historyOf(), handedOff, beliefs, resumptions })).toEqual(["overlap"]);
  });
});

describe("of the guarded log of both sides", () => {
  const kinds = (history: History): string[] => kindsIn(history).sort();

  test.each<{ title: string; sections: readonly string[] }>([
    { title: "nothing", sections: [] },
    { title: "readers together", sections: [R, S, R, S] },
    { title: "writers one after the other", sections: [W, W, V, V] },
    { title: "readers, a writer, and readers again", sections: [R, S, R, W, W, W, "shared: t", V] },
  ])("it lets $title pass", ({ sections }) => {
    expect(violationsIn(sidesOf(...sections))).toEqual([]);
  });

  test("it finds a writer's line within a reader's section, though the reader wrote none before", () => {
    const history = changed(sidesOf(W, R), ({ section }) => (section === R ? { first: 0 } : {}));
    expect(violationsIn(history)).toEqual([
      { kind: "beside", detail: `${W}#1, after ${R} had begun and before ${R}#1` },
    ]);
    expect(kinds(sidesOf(R, W, R))).toEqual(["beside", "interleaved"]);
  });

  test("it finds a reader's line between a writer's line and what the writer had read before", () => {
    const history = changed(sidesOf(R, R, W), ({ section }) => (section === W ? { seen: 1 } : {}));
    expect(violationsIn(history)).toEqual([
      { kind: "beside", detail: `${W}#1 had read 1 before it, and there are ${R}#1, ${R}#2` },
    ]);
    expect(kinds(sidesOf(W, R, W))).toEqual(["interleaved"]);
  });

  test("it finds a reader's line that was sent when a writer had begun, and a writer's when a reader had", () => {
    for (const [late, next] of [
      [R, W],
      [W, R],
    ] as const) {
      const history = changed(sidesOf(late), () => ({ sentAt: 3 }));
      expect(kinds({ ...history, beliefs: [{ section: next, from: 2, to: 9 }] })).toEqual(["late"]);
      expect(kinds({ ...history, beliefs: [{ section: next, from: 3.5, to: 9 }] })).toEqual([]);
    }
  });

  test("it finds a line that was sent after the release, one that is gone, and a gap", () => {
    const history = sidesOf(R, W);
    expect(kinds({ ...history, sentAfterRelease: [{ section: W, step: 1 }] })).toEqual(["after release"]);
    expect(kinds({ ...history, lines: history.lines.slice(1) })).toEqual(["beside", "lost update"]);
    expect(kinds({ ...history, lines: history.lines.slice(0, 1) })).toEqual(["lost update"]);
    expect(kinds({ ...sidesOf(W, W), lines: sidesOf(W, W).lines.slice(1) })).toEqual(["lost update", "lost update"]);
  });
});
