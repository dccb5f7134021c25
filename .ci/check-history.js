/**
 * Decides from a file of events alone whether locks kept what they promise: `node .ci/check-history.js FILE`. It shares no code with
 * the library, and none with the run that wrote the file. Each rule is sound: what it reports has happened. docs/design/chaos.md has the rules.
 *
 * One event a line, as JSON, with the `log` that it is about. Times are milliseconds of the machine's stopwatch. The name of a
 * section begins with what it holds, if that is not the whole lock: `permit 2: …`, `permits 0+2: …`, `shared: …` or `exclusive: …`.
 *
 * - `line`: a line that is in the log at the end: its `place`, `section`, its number in the section (`step`), the line `after`
 *   which it was written, and the times right before and after the check that let it pass (`checkedFrom`, `checkedTo`). Guarded
 *   lines have `sentAt`, fenced ones a `token`; in the log of both sides of a shared mutex `first` is the last exclusive place
 *   when the section began, and `seen` how many shared lines an exclusive one had read.
 * - `believed`: `section` saw `held` at `from` and at `to`.
 * - `acknowledged`: the table has told `section` that its line `step` is in `place`.
 * - `looked`: `section`, with its `token`, has read the log up to `place`.
 * - `sent after release`: `section` has sent its line `step` after its release was acknowledged.
 * - `handed off`: `section` has handed its lock off: the token was there at `from`, and its time is over at `until`.
 * - `tried token`: somebody tried the token `of` a section `at` a time; `section` goes on with it, if it was granted.
 */
import { readFileSync } from "node:fs";

const PERMITS = 3;
const idOf = ({ section, step }) => `${section}#${step}`;
/** What a section holds, as its name begins: a permit, the shared side, or the whole lock. */
const holding = (section) => (section.includes(": ") ? section.split(": ")[0] : "exclusive");
const isExclusive = ({ section }) => holding(section) === "exclusive";

/** The permits that a section holds. */
const permitsOf = (section) => (/^permits? ([\d+]+)$/.exec(holding(section))?.[1] ?? "").split("+").filter(Boolean);

/** Whether two sections may hold their parts of one lock at the same time. */
function mayMeet(one, other) {
  const [first, second] = [holding(one), holding(other)];
  if (first === "exclusive" || second === "exclusive") return false;
  return first === "shared" || !permitsOf(one).some((permit) => permitsOf(other).includes(permit));
}

export function violationsIn(events) {
  return [...new Set(events.map(({ log }) => log))].flatMap((log) => {
    const found = [];
    judge(
      events.filter((event) => event.log === log),
      (kind, detail) => found.push({ log, kind, detail }),
    );
    return found;
  });
}

function judge(events, say) {
  const of = (event) => events.filter((it) => it.event === event);
  // In the log of both sides of a shared mutex, lines of the shared side have the place of the next exclusive one.
  const lines = of("line").sort((a, b) => a.place - b.place || isExclusive(a) - isExclusive(b));
  const isOfSides = lines.some(({ first }) => first !== undefined);
  const spans = spansOf(lines, [...of("believed"), ...heldByTokens(of("handed off"), of("tried token"))]);
  interleaved(lines, say);
  lost(isOfSides ? lines.filter(isExclusive) : lines, lines, of("acknowledged"), say);
  sentLate(lines, spans, say);
  const there = new Set(lines.map(idOf));
  for (const sent of of("sent after release"))
    if (there.has(idOf(sent))) say("after release", `${idOf(sent)} is there`);
  if (isOfSides) {
    beside(lines, say);
    return;
  }
  overlapping(spans, say);
  crowded(lines, say);
  tokens(lines, of("looked"), say);
  const resumed = of("tried token").filter(({ section }) => section !== undefined);
  for (const [index, { of: token, section }] of resumed.entries()) {
    const before = resumed.slice(0, index).find((other) => other.of === token);
    if (before !== undefined) say("resumed twice", `the token of ${token}, by ${before.section} and ${section}`);
  }
}

/** A … B … A: whoever writes has read the line before and then checked its lock, so both had it at the moment of B's check. */
function interleaved(lines, say) {
  for (const [index, line] of lines.entries()) {
    const before = lines.findLastIndex(({ section }, at) => at < index && section === line.section);
    const between =
      before < 0 ? [] : lines.slice(before + 1, index).filter(({ section }) => !mayMeet(section, line.section));
    if (between.length > 0)
      say("interleaved", `${idOf(lines[before])}, then ${between.map(idOf).join(", ")}, then ${idOf(line)}`);
  }
}

/** Places have no gaps, each line follows the one that its writer had read, and what was acknowledged is there. */
function lost(chain, lines, acknowledged, say) {
  for (const [index, line] of chain.entries()) {
    const before = chain[index - 1];
    if (line.place !== index + 1) say("lost update", `${idOf(line)} is line ${index + 1} and has place ${line.place}`);
    else if (line.after !== (before ? idOf(before) : ""))
      say("lost update", `${idOf(line)} was written after ${line.after}`);
  }
  const there = new Set(lines.map((line) => `${line.place} ${idOf(line)}`));
  for (const line of acknowledged) {
    if (!there.has(`${line.place} ${idOf(line)}`))
      say("lost update", `${idOf(line)} is not in its place ${line.place}`);
  }
}

/** For each section, the widest span between two checks that passed. */
function spansOf(lines, beliefs) {
  const spans = new Map();
  const said = lines.map((it) => ({ section: it.section, from: it.checkedTo, to: it.checkedFrom }));
  for (const { section, from, to } of [...said, ...beliefs]) {
    const span = spans.get(section) ?? { from, to };
    spans.set(section, { section, from: Math.min(span.from, from), to: Math.max(span.to, to) });
  }
  return [...spans.values()].filter(({ from, to }) => from <= to).sort((a, b) => a.from - b.from);
}

/** A token has the lock from when it was there until whoever has got it began to try; else until its time was over, or any try. */
function heldByTokens(handedOff, tries) {
  return handedOff.map(({ section = "", from, until }) => {
    const own = tries.filter(({ of }) => of === section);
    const granted = own.filter((it) => it.section !== undefined);
    const ends = (granted.length > 0 ? granted : own).map(({ at }) => at);
    const name = section.replace(/^(.+: )?/, "$1the token of ");
    return { section: name, from, to: Math.min(until, ...ends) };
  });
}

function overlapping(spans, say) {
  for (const [index, span] of spans.entries()) {
    const present = spans.slice(0, index).filter(({ to }) => span.from < to);
    for (const { section, to } of present.filter((other) => !mayMeet(other.section, span.section))) {
      say("overlap", `${section} and ${span.section}, for ${(Math.min(span.to, to) - span.from).toFixed(1)} ms`);
    }
    crowd([...present, span], `when ${span.section} began`, say);
  }
}

/** Wherever a section's first line stands, all whose first is before and whose last is after had a permit as well. */
function crowded(lines, say) {
  for (const [index, line] of lines.entries()) {
    if (lines.findIndex(({ section }) => section === line.section) !== index) continue;
    const after = new Set(lines.slice(index).map(({ section }) => section));
    const before = new Map(lines.slice(0, index + 1).map((it) => [it.section, it]));
    const present = [...before.values()].filter(({ section }) => after.has(section));
    crowd(present, `at ${idOf(line)}`, say);
  }
}

function crowd(sections, where, say) {
  const holders = sections.filter(({ section }) => permitsOf(section).length > 0);
  if (holders.flatMap(({ section }) => permitsOf(section)).length > PERMITS)
    say("crowded", `${holders.map(({ section }) => section).join(", ")}, ${where}`);
}

/** A guarded line that was sent when a section that its own must not meet had begun after the last check of its own. */
function sentLate(lines, spans, say) {
  for (const line of lines) {
    const isLater = ({ section, from }) =>
      section !== line.section && !mayMeet(section, line.section) && line.checkedTo < from && from < line.sentAt;
    const later = line.sentAt === undefined ? undefined : spans.find(isLater);
    if (later !== undefined) say("late", `${idOf(line)} was sent when ${later.section} had the lock`);
  }
}

/** No two sections share a token, and once a section has read the log or written to it, no section with a smaller one writes. */
function tokens(lines, looks, say) {
  const told = [...lines, ...looks].filter(({ token }) => token !== undefined);
  for (const [index, one] of told.entries()) {
    const clash = told.slice(0, index).find((it) => (it.token === one.token) !== (it.section === one.section));
    if (clash) say("token order", `${clash.section} has ${clash.token}, and ${one.section} has ${one.token}`);
  }
  for (const { token, ...line } of lines) {
    if (token === undefined) continue;
    const newer = told.find((it) => it.place < line.place && BigInt(it.token) > BigInt(token));
    if (newer) say("late", `${idOf(line)} has place ${line.place}, and ${newer.section} had read to ${newer.place}`);
  }
}

/** Each shared line says which exclusive line was the last when its section began, each exclusive one what it had read. */
function beside(lines, say) {
  for (const line of lines) {
    const { section, place, first = 0, seen } = line;
    for (const other of lines.filter(
      (it) => isExclusive(it) && it.section !== section && it.place > first && it.place < place,
    )) {
      say("beside", `${idOf(other)}, after ${section} had begun and before ${idOf(line)}`);
    }
    if (!isExclusive(line)) continue;
    const shared = lines.filter((it) => !isExclusive(it) && it.place === place);
    if (shared.length !== seen)
      say("beside", `${idOf(line)} had read ${seen} before it, and there are ${shared.map(idOf).join(", ") || "none"}`);
  }
}

if (process.argv[1]?.endsWith("check-history.js") && process.argv[2] !== undefined) {
  const events = readFileSync(process.argv[2], "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  const violations = violationsIn(events);
  for (const { log, kind, detail } of violations) console.log(`${log}: ${kind}: ${detail}`);
  console.log(`${events.length} events, ${violations.length} violations`);
  if (violations.length > 0 || events.length === 0) process.exitCode = 1;
}
