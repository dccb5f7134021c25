import { CONTENDERS, type ContenderName } from "./contenders/index.js";
import { show } from "./numbers.js";
import type { Line } from "./results.js";
import { markdown } from "./table.js";

const COLUMNS = ["dynamutex", "deliveryhero", "lock-client"] as const satisfies readonly ContenderName[];

/** What users want to know: a line of a workload, and how the page for them says it. What others do better is among it. */
const SHOWN: readonly (readonly [workload: string, line: string, says: string])[] = [
  ["uncontended", "requests", "lock and unlock, uncontended: requests"],
  ["uncontended", "time", "lock and unlock: time, ms"],
  ["uncontended", "CPU against the floor", "lock and unlock: CPU, against two bare requests"],
  ["uncontended", "with a client of the caller's", "the same with a `client` of your own"],
  ["waiting", "first in after the release", "4 hosts wait: the first has the lock after the release, ms"],
  ["waiting", "last of the 4 in", "4 hosts wait: the last has had it, ms"],
  ["waiting", "money, per waiter and second", "to wait: RRU a second, a WRU counted as five"],
  ["one-process", "sections a second", "32 callers of one process: sections a second"],
  ["four-processes", "sections a second", "4 processes, sections of 10 ms: sections a second"],
  ["four-processes", "requests a section", "4 processes: requests a section"],
  ["takeover", "median", "a killed holder's lock, after its lease: ms"],
  ["kept", "CPU a second, of 5000 of 30 s", "5 000 locks held: CPU a second, ms"],
];

/** What is needed of the record. */
interface Recorded {
  readonly workload: string;
  readonly lines?: readonly Line[];
}

/** The table of the page on performance. */
export function summary(all: readonly Recorded[]): string {
  const titles = COLUMNS.map((name) => CONTENDERS.find((one) => one.name === name)?.title ?? name);
  const rows = SHOWN.map(([workload, title, says]) => {
    const line = all.find((one) => one.workload === workload)?.lines?.find((one) => one.title === title);
    if (line === undefined) throw new Error(`The record has no "${title}" of ${workload}`);
    return [says, ...cells(line)];
  });
  return markdown([["", ...titles], ...rows]);
}

/** The best of a row in bold, if they differ. */
function cells({ values, better }: Line): readonly string[] {
  const known = COLUMNS.flatMap((name) => values[name] ?? []);
  const best = better === "more" ? Math.max(...known) : Math.min(...known);
  const isTie = known.length < 2 || known.filter((value) => value === best).length > 1;
  return COLUMNS.map((name) => {
    const value = values[name];
    if (value === undefined) return "";
    return value === best && !isTie ? `**${show(value)}**` : show(value);
  });
}
