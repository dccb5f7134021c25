import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "@jest/globals";
import { blocksOf, pageAt } from "../../support/pages.js";
import type { Line } from "./register.js";

/** One line of the file that the checker reads, without its log. */
type Event = Readonly<Record<string, unknown>>;

const { violationsIn } = (await import(join(process.cwd(), ".ci", "check-history.js"))) as {
  violationsIn(events: readonly Event[]): readonly { readonly kind: string; readonly detail: string }[];
};

function check(events: readonly Event[]): string[] {
  return violationsIn(events.map((event) => ({ log: "a", ...event }))).map(({ kind, detail }) => `${kind}: ${detail}`);
}

const idOf = ({ section, step }: Line): string => `${section}#${step}`;

/** A log from sections' names: a line a millisecond, each of whose writers has read the one before. */
function linesOf(...sections: readonly string[]): Line[] {
  const lines: Line[] = [];
  for (const [index, section] of sections.entries()) {
    const step = lines.filter((line) => line.section === section).length + 1;
    const before = lines.at(-1);
    const after = before === undefined ? "" : idOf(before);
    lines.push({ place: index + 1, section, step, after, checkedFrom: index, checkedTo: index });
  }
  return lines;
}

/** The log of both sides of a shared mutex, as it should be: whoever holds one side meets the lines before. */
function linesOfSides(...sections: readonly string[]): Line[] {
  const firsts = new Map<string, number>();
  let last: Line | undefined;
  let seen = 0;
  return linesOf(...sections).map((line) => {
    const place = (last?.place ?? 0) + 1;
    const first = firsts.get(line.section) ?? place - 1;
    firsts.set(line.section, first);
    if (line.section.startsWith("shared")) {
      seen += 1;
      return { ...line, place, first };
    }
    const exclusive = { ...line, place, first, after: last === undefined ? "" : idOf(last), seen };
    last = exclusive;
    seen = 0;
    return exclusive;
  });
}

/** Lines that are in the log, and those that were acknowledged. */
const inLog = (lines: readonly Line[], acknowledged: readonly Line[] = lines): Event[] => [
  ...lines.map((line) => ({ event: "line", ...line })),
  ...acknowledged.map(({ section, step, place }) => ({ event: "acknowledged", section, step, place })),
];
const written = (...sections: readonly string[]): Event[] => inLog(linesOf(...sections));
const writtenBySides = (...sections: readonly string[]): Event[] => inLog(linesOfSides(...sections));

/** The code of the letter that a section is named by. */
const tokenOf = (section: string): string => String(section.charCodeAt(0));
const writtenWithTokens = (...sections: readonly string[]): Event[] =>
  inLog(linesOf(...sections).map((line) => ({ ...line, token: tokenOf(line.section) })));
/** A section has read the log up to this line. */
const looked = (section: string, place: number, token = tokenOf(section)): Event => {
  return { event: "looked", section, token, place };
};

const believed = (section: string, from: number, to: number): Event => ({ event: "believed", section, from, to });
const sentAfterRelease = (section: string, step: number): Event => ({ event: "sent after release", section, step });
const tried = (of: string, at: number, section?: string): Event => ({ event: "tried token", of, at, section });

const [P0, Q0, P1, P2, P3] = ["permit 0: a", "permit 0: b", "permit 1: c", "permit 2: d", "permit 3: e"] as const;
const [P01, P12, P23] = ["permits 0+1: f", "permits 1+2: g", "permits 2+3: h"] as const;
const [R, S, T, W, V] = ["shared: r", "shared: s", "shared: t", "exclusive: w", "exclusive: v"] as const;

const handedOff: Event = { event: "handed off", section: P0, from: 2, until: 9 };

/** What it lets pass, and what it finds, by how these begin. */
type Row = readonly [title: string, events: readonly Event[], ...violations: readonly string[]];

const judges = (_: string, events: readonly Event[], ...violations: readonly string[]): void => {
  expect(check(events)).toEqual(violations.map((violation) => expect.stringContaining(violation)));
};

describe("of one lock", () => {
  test.each<Row>([
    ["nothing at all", []],
    ["sections one after the other, whatever their length", written("a", "b", "b", "b", "c", "c")],
    ["a section that was killed, and one that wrote nothing", [...written("a", "c"), believed("b", 0.2, 0.8)]],
    [
      "a section that saw its lock once and never again, in the time of another",
      [...written("a", "a", "a"), believed("b", 1.5, 1.4)],
    ],
    // The check passed before b had the lock; the line came after b had taken it.
    ["a late write before the next holder's first", [...written("a", "a", "b"), believed("b", 1.1, 3)]],
    ["a line that the table has and never acknowledged", inLog(linesOf("a", "b"), [])],
    ["tokens that rise, with gaps", writtenWithTokens("a", "a", "c", "k", "k")],
    [
      "sections that have read all older lines, each before and after lines of its own",
      [...writtenWithTokens("a", "a", "b"), looked("a", 0), looked("a", 1), looked("b", 2)],
    ],
    [
      "a look from before the lines of a section that came later",
      [...writtenWithTokens("a", "c"), looked("a", 1), looked("b", 1)],
    ],
    [
      "a line that was sent after a release and is not there",
      [...writtenWithTokens("a", "b"), sentAfterRelease("a", 2)],
    ],
  ])("it lets pass: %s", judges);

  test.each<Row>([
    [
      "a section that goes on after another has begun",
      written("a", "b", "b", "a"),
      "interleaved: a#1, then b#1, b#2, then a#2",
      "overlap",
    ],
    ["two sections that take turns, each time", written("a", "b", "a", "b"), "interleaved", "interleaved", "overlap"],
    [
      "a belief that lasted into another's, though one of them wrote nothing",
      [...written("a", "a", "a"), believed("b", 1.5, 1.6)],
      "overlap: a and b, for 0.1 ms",
    ],
    ["an acknowledged line that is gone", inLog(linesOf("a"), linesOf("a", "b")), "lost update"],
    ["a gap", inLog(linesOf("a", "b", "c").toSpliced(1, 1), []), "lost update"],
    [
      "a line whose writer had read another than the one before it",
      inLog(linesOf("a", "b", "c").map((line) => (line.place === 3 ? { ...line, after: "a#1" } : line))),
      "lost update",
    ],
    [
      "a token that is less than the one before it",
      writtenWithTokens("b", "a"),
      "late: a#1 has place 2, and b had read to 1",
    ],
    [
      "a token that another section has as well, though that one wrote nothing",
      [...writtenWithTokens("a"), looked("b", 1, tokenOf("a"))],
      "token order: a has 97, and b has 97",
    ],
    [
      "a line that came when a later section had read the log, though that one wrote nothing",
      [...writtenWithTokens("a", "a", "a"), looked("b", 2), looked("a", 0)],
      "late: a#3 has place 3, and b had read to 2",
    ],
    [
      "a line that was sent after the release of its lock",
      [...writtenWithTokens("a", "a"), sentAfterRelease("a", 2)],
      "after release: a#2 is there",
    ],
  ])("it finds %s", judges);
});

describe("of a semaphore and a shared mutex", () => {
  const together = (...sections: readonly string[]): Event[] => sections.map((section) => believed(section, 0, 1));

  test.each<Row>([
    ["three permits at a time", written(P0, P1, P2, P1, P2, P0)],
    ["the next permit, when one has gone", written(P0, P1, P2, P0, Q0, P1, P2, Q0)],
    ["beliefs in different permits at one instant", together(P0, P1, P2)],
    ["two permits beside the third", together(P01, P2)],
    ["two permits, one after the other", written(P01, P01, P12, P12)],
    ["those of the shared side together", written(R, S, R, S)],
    ["a writer before and after them", written(W, W, R, S, R, S, V, V)],
  ])("it lets pass: %s", judges);

  test.each<Row>([
    ["four permits, by the order", written(P0, P1, P2, P3, P0, P1, P2), "crowded", "crowded"],
    ["four permits, by the time", together(P0, P1, P2, P3), "crowded"],
    ["four permits of two sections, by the time", together(P01, P23), "crowded"],
    ["a permit that two sections have among others", together(P01, P12), "overlap", "crowded"],
    ["one permit of two, by the order", written(P0, P1, Q0, P1, P0), "interleaved", "overlap"],
    ["one permit of two, by the time", together(P0, P1, Q0), "overlap"],
    ["a writer beside a reader", written(R, S, W, R, S), "interleaved", "interleaved", "overlap", "overlap"],
    ["a reader within a writer's section", written(W, R, W), "interleaved", "overlap"],
    [
      "a writer who wrote nothing, beside readers",
      [...written(R, S, R, S), believed(W, 1.5, 1.6)],
      "overlap",
      "overlap",
    ],
  ])("it finds %s", judges);
});

describe("of guarded lines without tokens", () => {
  const sentAt = (times: readonly number[], ...sections: readonly string[]): Event[] =>
    inLog(linesOf(...sections).map((line, index) => ({ ...line, sentAt: times[index] })));

  test.each<Row>([
    ["a line that was sent before the next section began", [...sentAt([2.5, 2.5], P0, P0), believed(Q0, 2.6, 9)]],
    ["a line that was sent after the next section had ended", [...sentAt([2], P0), believed(Q0, -0.2, -0.1)]],
  ])("it lets pass: %s", judges);

  test.each<Row>([
    [
      "one that was sent when another section had the permit",
      [...sentAt([0, 3], P0, P0), believed(Q0, 2.6, 9)],
      `late: ${P0}#2 was sent when ${Q0} had the lock`,
    ],
  ])("it finds %s", judges);
});

describe("of tokens", () => {
  const beliefs = [believed(P0, 0, 2), believed(P1, 0, 9), believed(Q0, 5, 9)];

  test.each<Row>([
    [
      "one that is resumed once, before others have the permit",
      [handedOff, tried(P0, 3), tried(P0, 3, Q0), tried(P0, 4), ...beliefs],
    ],
  ])("it lets pass: %s", judges);

  test.each<Row>([
    [
      "one that is resumed twice",
      [handedOff, tried(P0, 3, P0), tried(P0, 4, Q0)],
      `resumed twice: the token of ${P0}, by ${P0} and ${Q0}`,
    ],
    [
      "a section that has the lock while its token waits",
      [handedOff, believed(Q0, 3, 4)],
      `overlap: permit 0: the token of a and ${Q0}, for 1.0 ms`,
    ],
    [
      "a section that has the lock while its token waits, resumed later on",
      [handedOff, believed(Q0, 3, 4), tried(P0, 5, P0)],
      "overlap",
    ],
  ])("it finds %s", judges);
});

describe("of the guarded log of both sides", () => {
  const changed = (lines: readonly Line[], section: string, change: object): Event[] =>
    inLog(lines.map((line) => (line.section === section ? { ...line, ...change } : line)));
  const sentAt3 = (section: string): Event[] => changed(linesOfSides(section), section, { sentAt: 3 });
  const SIDES = [
    [R, W],
    [W, R],
  ] as const;
  const [bySides, byWriters] = [linesOfSides(R, W), linesOfSides(W, W)];

  test.each<Row>([
    ["nothing", []],
    ["readers together", writtenBySides(R, S, R, S)],
    ["writers one after the other", writtenBySides(W, W, V, V)],
    ["readers, a writer, and readers again", writtenBySides(R, S, R, W, W, W, T, V)],
    ...SIDES.map(([late, next]): Row => {
      return [`a line of ${late} that was sent before ${next} began`, [...sentAt3(late), believed(next, 3.5, 9)]];
    }),
  ])("it lets pass: %s", judges);

  test.each<Row>([
    [
      "a writer's line within a reader's section, though the reader wrote none before",
      changed(linesOfSides(W, R), R, { first: 0 }),
      `beside: ${W}#1, after ${R} had begun and before ${R}#1`,
    ],
    ["a writer's line within a reader's section", writtenBySides(R, W, R), "interleaved", "beside"],
    [
      "a reader's line between a writer's line and what the writer had read before",
      changed(linesOfSides(R, R, W), W, { seen: 1 }),
      `beside: ${W}#1 had read 1 before it, and there are ${R}#1, ${R}#2`,
    ],
    ["a reader's line within a writer's section", writtenBySides(W, R, W), "interleaved"],
    ...SIDES.map(([late, next]): Row => {
      return [
        `a line of ${late} that was sent when ${next} had begun`,
        [...sentAt3(late), believed(next, 2, 9)],
        "late",
      ];
    }),
    ["a line that was sent after the release", [...inLog(bySides), sentAfterRelease(W, 1)], "after release"],
    ["a reader's line that is gone", inLog(bySides.slice(1), bySides), "lost update", "beside"],
    ["a writer's line that is gone", inLog(bySides.slice(0, 1), bySides), "lost update"],
    ["a gap", inLog(byWriters.slice(1), byWriters), "lost update", "lost update"],
  ])("it finds %s", judges);
});

test("the program of the page, which shares nothing with the checker, finds sections that were interrupted and lines that are gone", async () => {
  const [program] = blocksOf(pageAt("docs/design/chaos.md")).filter(({ text }) => text.startsWith("// verify.mjs"));
  const folder = await mkdtemp(join(tmpdir(), "dynamutex-verify-"));
  const history = {
    good: written("a", "a", "b"),
    interrupted: written("a", "b", "a"),
    gap: inLog(linesOf("a", "b", "c").toSpliced(1, 1), []),
    permits: written(P0, P1, P0),
  };
  const events = Object.entries(history).flatMap(([log, each]) =>
    each.map((event) => JSON.stringify({ log, ...event })),
  );
  await writeFile(join(folder, "verify.mjs"), program?.text ?? "");
  await writeFile(join(folder, "run.jsonl"), events.join("\n"));
  const { stdout } = await promisify(execFile)(process.execPath, ["verify.mjs", "run.jsonl"], { cwd: folder });
  await rm(folder, { recursive: true });
  expect(stdout.split("\n")).toEqual([
    "good: 3 lines of 2 sections",
    "interrupted: another section wrote before line 2 of a",
    "interrupted: 3 lines of 2 sections",
    "gap: there is no line 2",
    "gap: 2 lines of 2 sections",
    "",
  ]);
});
