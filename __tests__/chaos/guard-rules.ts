import type { History, Look, Violation } from "./history.js";
import { idOf, type Line } from "./register.js";

/**
 * What guards and fencing tokens promise for a log all of whose lines are written by guarded transactions, by three rules.
 * No rule needs a clock, and none asks whether the writer still believed in its lock: its guard decides.
 *
 * **Token order.** A section has one token, which no other section has, and along the log each section's is greater than
 * that of the section before. The table writes a line only while the lock's row has the token that the line names, and the
 * row's token never decreases.
 *
 * **Late.** Once a section has read the log, no line of an older section is written. The reader had its token before it
 * read, so the row did; from then on a smaller token refuses. This sees late writes before sections that wrote nothing.
 *
 * **After release.** A line that was sent after its section's `unlock()` had resolved, with no loss and no failed release,
 * is never written: the uuid of its guard is off the row, whether the lock was released, handed over or handed off.
 *
 * A lock without tokens has the last rule alone, and one by the machine's stopwatch (`sentLate` in `exclusion-rules.ts`): a line
 * was sent after a check of its own had passed and another section had begun since.
 */
export function guardViolationsIn(lines: readonly Line[], history: History): Violation[] {
  const { looks, sentAfterRelease } = history;
  return [
    ...outOfOrder(lines),
    ...shared(lines, looks),
    ...late(lines, looks),
    ...afterRelease(lines, sentAfterRelease),
  ];
}

function outOfOrder(lines: readonly Line[]): Violation[] {
  return lines.flatMap((line, index) => {
    const before = lines[index - 1];
    if (before?.token === undefined || line.token === undefined) return [];
    if (before.section === line.section || before.token < line.token) return [];
    return [
      { kind: "token order", detail: `${idOf(line)} has ${line.token}, after ${idOf(before)} with ${before.token}` },
    ];
  });
}

/** Tokens that two sections have, and sections that have two. */
function shared(lines: readonly Line[], looks: readonly Look[]): Violation[] {
  const violations: Violation[] = [];
  const tokenOf = new Map<string, bigint>();
  const ownerOf = new Map<bigint, string>();
  for (const { section, token } of [...lines, ...looks]) {
    if (token === undefined) continue;
    const known = tokenOf.get(section);
    const owner = ownerOf.get(token);
    tokenOf.set(section, token);
    ownerOf.set(token, section);
    if (known !== undefined && known !== token) {
      violations.push({ kind: "token order", detail: `${section} has ${known} and ${token}` });
    }
    if (owner !== undefined && owner !== section) {
      violations.push({ kind: "token order", detail: `${owner} and ${section} have ${token}` });
    }
  }
  return violations;
}

function late(lines: readonly Line[], looks: readonly Look[]): Violation[] {
  const violations: Violation[] = [];
  const pending = [...looks].sort((a, b) => b.version - a.version);
  /** Of the looks that saw less than the log up to the present line: the one with the greatest token. */
  let newest: Look | undefined;
  for (const line of lines) {
    for (let look = pending.at(-1); look !== undefined && look.version < line.version; look = pending.at(-1)) {
      if (newest === undefined || look.token > newest.token) newest = look;
      pending.pop();
    }
    if (newest === undefined || line.token === undefined || line.token >= newest.token) continue;
    const readTo = `${newest.section} had read the log to ${newest.version}`;
    violations.push({ kind: "late", detail: `${idOf(line)} has place ${line.version}, and ${readTo}` });
  }
  return violations;
}

/** Lines that are there, and must not be: also where the lock was handed off. */
export function afterRelease(lines: readonly Line[], sent: History["sentAfterRelease"]): Violation[] {
  const written = new Map(lines.map((line) => [idOf(line), line]));
  return sent.flatMap((line): Violation[] => {
    const there = written.get(idOf(line));
    return there === undefined ? [] : [{ kind: "after release", detail: `${idOf(line)} has place ${there.version}` }];
  });
}
