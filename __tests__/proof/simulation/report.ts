import { execFileSync } from "node:child_process";

/** Which day and which commit a report is of. */
export interface Origin {
  readonly date: string;
  readonly commit: string;
}

export function originNow(): Origin {
  const git = (...words: string[]): string => execFileSync("git", words, { encoding: "utf8" }).trim();
  // What is written by a report is no change of what it reports on.
  const isClean = git("status", "--porcelain", "--", "lib", "__tests__") === "";
  const commit = `${git("rev-parse", "--short", "HEAD")}${isClean ? "" : " with changes"}`;
  return { date: new Date().toISOString().slice(0, 10), commit };
}

const BEGIN = "<!-- report -->";
const END = "<!-- end of report -->";

/** The page with another report between its marks. */
export function withReport(page: string, report: string): string {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`The page has no ${BEGIN} and ${END}`);
  return `${page.slice(0, begin + BEGIN.length)}\n${report}\n${page.slice(end)}`;
}
