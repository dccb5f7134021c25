import { basename } from "node:path";
import { anchorOf, docsPages, type Page, withoutBlocks } from "../../../support/pages.js";

/**
 * A rule as a page states it. A defect names it by its id: `trap 11`, `protocol#keeping 3` for a numbered point,
 * `protocol#late-copies: renewal` for any other point, by the words that it begins with, and `protocol#losing` for what the
 * paragraphs of a section say.
 */
export interface PageRule {
  readonly id: string;
  /** Where it stands in docs/: `design/protocol.md#keeping`. */
  readonly link: string;
  readonly text: string;
}

/** The sections that state rules. Of other pages, it is what stands below "What is promised". */
const SECTIONS: Readonly<Record<string, (anchor: string) => boolean>> = {
  guarantees: (anchor) => ["one-holder", "networks-and-crashes", "clocks"].includes(anchor),
  protocol: (anchor) => !["the-protocol", "what-is-assumed", "rules-that-went"].includes(anchor),
  "fair-queue": (anchor) => anchor === "what-order-means",
  queue: (anchor) => anchor === "how-it-works",
  "fencing-and-guards": (anchor) => anchor === "what-a-guard-asks",
  "leader-election": (anchor) => ["the-steps", "what-is-promised"].includes(anchor),
  locks: (anchor) => ["locks", "waiting", "while-you-hold-it", "names", "losing-a-lock"].includes(anchor),
  options: (anchor) => anchor === "the-default-client",
  table: (anchor) => anchor === "the-table",
  "several-locks": (anchor) => anchor === "the-set",
  "single-flight": (anchor) => ["what-can-be-shared", "what-is-promised"].includes(anchor),
};

/** What stands among the rules, and why no edit of lib/ can take it out. */
const NO_RULES: Readonly<Record<string, string>> = {
  "trap 53": "it is about the programs of the pages, and not about lib/; its tests run these programs",
  "locks#waiting: Between processes there is no order":
    "it promises nothing; the promise of a fair mutex is a rule of its own page",
  "locks#waiting: Bound the wait": "it says how to call; what waitMs promises is a rule of its own",
  "locks#while-you-hold-it: A section that computes":
    "it says what a section has to do; what the library does for such a section is a rule of protocol.md",
};

/** All rules, as the pages in docs/ say them. */
export function pageRules(): readonly PageRule[] {
  const stated = statedRules();
  const none = new Set(Object.keys(NO_RULES).map((reference) => ruleNamed(reference, stated)));
  return stated.filter((rule) => !none.has(rule));
}

/** The sentences that count as no rules, with the reason for each. */
export function noRules(): readonly { readonly rule: PageRule; readonly because: string }[] {
  const stated = statedRules();
  return Object.entries(NO_RULES).map(([reference, because]) => ({ rule: ruleNamed(reference, stated), because }));
}

function statedRules(): readonly PageRule[] {
  const rules = docsPages().flatMap((page) => sectionsOf(page).flatMap(rulesOf));
  const first = ["trap", "guarantees", "protocol"];
  const rank = ({ id }: PageRule): number => (first.findIndex((begin) => id.startsWith(begin)) + 4) % 4;
  return rules.sort((one, other) => rank(one) - rank(other));
}

/** @throws unless the reference means exactly one rule. */
export function ruleNamed(reference: string, rules: readonly PageRule[]): PageRule {
  const begin = reference.includes(": ") ? reference : `${reference}\n`;
  const [rule, ...more] = rules.filter(({ id }) => `${id}\n`.startsWith(begin));
  if (rule === undefined) throw new Error(`No page has the rule "${reference}"`);
  if (more.length > 0) throw new Error(`"${reference}" means ${more.length + 1} rules`);
  return rule;
}

interface Section {
  /** The page without its folder, which may change: `protocol`. */
  readonly page: string;
  /** From docs/: `design/protocol.md`. */
  readonly path: string;
  readonly anchor: string;
  readonly text: string;
}

function sectionsOf(page: Page): Section[] {
  const name = basename(page.path, ".md");
  const hasRules = SECTIONS[name] ?? ((anchor: string) => anchor === "what-is-promised");
  const [, ...parts] = withoutBlocks(page).split(/^#+ /m);
  return parts
    .map((part) => {
      const [heading = "", ...lines] = part.split("\n");
      return {
        page: name,
        path: page.path.replace(/^docs\//, ""),
        anchor: anchorOf(heading),
        text: lines.join("\n").replace(/^(?:- \*\*)?What is not\b.*/ms, ""),
      };
    })
    .filter(({ anchor }) => hasRules(anchor));
}

function rulesOf({ page, path, anchor, text }: Section): PageRule[] {
  const link = `${path}#${anchor}`;
  const rows = text
    .split("\n")
    .filter((line) => /^\| (?!---)/.test(line))
    .slice(1)
    .map((line) => line.split("|").map(plain));
  if (anchor === "the-traps") return rows.map(([, number, trap = ""]) => ({ id: `trap ${number}`, link, text: trap }));

  const rule = (words: string, number?: string): PageRule => {
    const which = number === undefined ? `: ${words}` : ` ${number}`;
    return { id: `${page}#${anchor}${which}`, link, text: words };
  };
  const pieces = text
    .replaceAll(/^ *\|.*\n/gm, "")
    .split(/\n\n+|\n(?=- |\d+\. )/)
    .filter((piece) => piece.trim() !== "");
  // A paragraph that begins in bold is a point of its own.
  const points = pieces.flatMap((piece) => {
    const [, mark, number, words = ""] = /^\s*(- |(\d+)\. |(?=\*\*))(.*)$/s.exec(piece) ?? [];
    return mark === undefined ? [] : [rule(plain(words), number)];
  });
  const paragraphs = pieces
    .filter((piece) => !/^\s*(?:- |\d+\. |\*\*)/.test(piece))
    // What leads over to a list says nothing.
    // Nor does the question with which a page opens.
    .map((piece) => plain(piece).replace(/(?:^|(?<=\. ))[^.]*:$|^[^.?]*\?(?: |$)/g, ""))
    .join(" ")
    .trim();
  if (paragraphs !== "") return [{ id: `${page}#${anchor}`, link, text: paragraphs }, ...points];
  return points.length > 0 ? points : rows.map(([, first = ""]) => rule(first));
}

/** Without the marks of Markdown. */
function plain(markdown: string): string {
  return markdown
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll(/[*`]/g, "")
    .replaceAll(/\s+/g, " ")
    .trim();
}
