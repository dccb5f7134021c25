import { execFileSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Which day and which commit a report is of. */
export interface Origin {
  readonly date: string;
  readonly commit: string;
}

const REPORTS = "__tests__/proof/reports";

export function originNow(): Origin {
  const git = (...words: string[]): string => execFileSync("git", words, { encoding: "utf8" }).trim();
  // A report does not change what it is about.
  const isClean = git("status", "--porcelain", "--", "lib", "__tests__", `:(exclude)${REPORTS}`) === "";
  const commit = `${git("rev-parse", "--short", "HEAD")}${isClean ? "" : " with changes"}`;
  return { date: new Date().toISOString().slice(0, 10), commit };
}

const BEGIN = "<!-- report -->";
const END = "<!-- end of report -->";

/** The page of a report: "model". */
export async function reportPage(name: string): Promise<string> {
  return await readFile(pathOf(name), "utf8");
}

/** Writes a report into its page, between the marks. */
export async function writeReport(name: string, report: string): Promise<void> {
  const page = await reportPage(name);
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`${pathOf(name)} has no ${BEGIN} and ${END}`);
  await writeFile(pathOf(name), `${page.slice(0, begin + BEGIN.length)}\n${report}\n${page.slice(end)}`);
}

function pathOf(name: string): string {
  return join(REPORTS, `${name}.md`);
}
