import { readFileSync } from "node:fs";
import { join } from "node:path";

/** A fenced block of the README. */
export interface Block {
  readonly language: string;
  readonly line: number;
  readonly text: string;
  /** Whether the README marks it as one that the tests run, with `<!-- runs -->` above it. */
  readonly runs: boolean;
}

/** The README, as text. */
export function readme(): string {
  return readFileSync(join(process.cwd(), "README.md"), "utf8");
}

/** The blocks of the README, in order. */
export function blocksOf(markdown: string): readonly Block[] {
  const fences = /(<!-- runs -->\n)?^```(\w+)\n(.*?)^```$/gms;
  return [...markdown.matchAll(fences)].map(({ 1: runs, 2: language = "", 3: text = "", index }) => ({
    language,
    line: markdown.slice(0, index).split("\n").length,
    text,
    runs: runs !== undefined,
  }));
}

/** The first cells of the table under a heading, without their backticks. */
export function firstColumn(markdown: string, heading: string): readonly string[] {
  const [, section = ""] = markdown.split(new RegExp(`^#+ ${heading}$`, "m"));
  const [body = ""] = section.split(/^#/m);
  const rows = body.split("\n").filter((line) => line.startsWith("| `"));
  return rows.map((row) => (row.split("|")[1] ?? "").replaceAll("`", "").trim());
}
