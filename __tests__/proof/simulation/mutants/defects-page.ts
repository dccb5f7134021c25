import { SWITCHES } from "../../model/models.js";
import { DEFECTS } from "./all-defects.js";
import { noRules, type PageRule, pageRules, ruleNamed } from "./page-rules.js";

/** What became of a defect, as the page says it. */
export interface Row {
  /** The invariant that did not hold, or the file and the name of the test that failed. */
  readonly found: string;
  /** How many schedules that took. */
  readonly schedules: string;
}

/** The library as it is: nothing may be found in it, by schedules or tests, or what is found in the others proves nothing. */
export const NO_DEFECT = "none of them";

const NOTHING = "–";
const NOT_RUN: Row = { found: "not run yet", schedules: "" };
const NOT_FOUND = "**not found**";

export function rowOf(name: string, found: string | undefined, schedules: string): Row {
  return { found: found ?? (name === NO_DEFECT ? "nothing" : NOT_FOUND), schedules };
}

const LATER = ", later";

/** The row of a defect that was run without the others. */
export function runLater(row: Row): Row {
  return { ...row, schedules: row.schedules + LATER };
}

/** The rows that the page has, by the names of their defects, and its line on the run that wrote them. */
export function readReport(page: string): { readonly origin: string; readonly rows: Map<string, Row> } {
  const [, origin = ""] = /<!-- report -->\n(.*?)(?: Those marked .*)?\n/.exec(page) ?? [];
  const found = page.matchAll(/^\| \d+ \| (.+?) \| (.+) \| (.*?) \|$/gm);
  return {
    origin,
    rows: new Map([...found].map(([, name = "", what = "", schedules = ""]) => [name, { found: what, schedules }])),
  };
}

/** Both tables, and what is to be done next. */
export function reportOf(origin: string, rows: ReadonlyMap<string, Row>): string {
  const names = [NO_DEFECT, ...Object.keys(DEFECTS)];
  const defects = names.map((name, at) => {
    const { found, schedules } = rows.get(name) ?? NOT_RUN;
    return `| ${at} | ${name} | ${found} | ${schedules} |`;
  });
  const rules = noticed(rows);
  const isBlank = ({ byDefects, byModel }: Noticed): boolean => byDefects.length + byModel.length === 0;
  const isOfModel = ({ byDefects, byModel }: Noticed): boolean => byDefects.length === 0 && byModel.length > 0;
  const blank = rules.filter(isBlank);
  const ofModel = rules.filter(isOfModel);
  const isMixed = [...rows.values()].some(({ schedules }) => schedules.endsWith(LATER));
  return `${origin}${isMixed ? ` Those marked "later" were run alone since then.` : ""}

## What to do next

${toDo(blank, ofModel, rules.length)}

These sentences stand beside them and are not counted, because no edit of lib/ can take them out:

${noRules()
  .map(({ rule, because }) => `- ${shown(rule)}: ${because}`)
  .join("\n")}

## Rules

| rule | defects, and what notices them | rules of the model that are switched off |
|---|---|---|
${rules.map(({ rule, byDefects, byModel }) => `| ${shown(rule)} | ${listed(byDefects)} | ${listed(byModel)} |`).join("\n")}

## Defects

| | defect | the invariant, or the test, that it broke | schedules needed |
|---|---|---|---|
${defects.join("\n")}`;
}

/** What nothing takes out, and what the model alone does. */
function toDo(blank: readonly Noticed[], ofModel: readonly Noticed[], rules: number): string {
  const list = (all: readonly Noticed[]): string => all.map(({ rule }) => `- ${shown(rule)}`).join("\n");
  return [
    blank.length === 0
      ? `Each of the ${rules} rules is taken out, in the code or in the model.`
      : `Nothing takes out ${blank.length} of ${rules} rules:\n\n${list(blank)}`,
    ...(ofModel.length === 0
      ? []
      : [`${ofModel.length} more are taken out in the model, but not in the code:\n\n${list(ofModel)}`]),
  ].join("\n\n");
}

interface Noticed {
  readonly rule: PageRule;
  readonly byDefects: readonly string[];
  readonly byModel: readonly string[];
}

function noticed(rows: ReadonlyMap<string, Row>): Noticed[] {
  const rules = pageRules();
  const takenOut = (rule: PageRule, { takesOut }: { readonly takesOut: readonly string[] }): boolean =>
    takesOut.some((reference) => ruleNamed(reference, rules) === rule);
  return rules.map((rule) => ({
    rule,
    byDefects: Object.entries(DEFECTS).flatMap(([name, defect], at) => {
      const { found } = rows.get(name) ?? NOT_RUN;
      if (!takenOut(rule, defect) || found === NOT_FOUND) return [];
      return [`${at + 1}: ${found.replace(/\.test\.ts: .*/, "")}`];
    }),
    byModel: SWITCHES.flatMap((off) => (off.breaks !== "nothing" && takenOut(rule, off) ? [off.name] : [])),
  }));
}

function listed(words: readonly string[]): string {
  return words.length === 0 ? NOTHING : words.join("; ");
}

const SHOWN_WORDS = 12;

/** Its id, and how it begins. */
function shown({ id, link, text }: PageRule): string {
  const words = text.replaceAll("<", "&lt;").split(" ");
  const begin = words.slice(0, SHOWN_WORDS).join(" ");
  return `[${id.split(": ")[0]}](../../../docs/${link}): ${begin}${words.length > SHOWN_WORDS ? " …" : ""}`;
}
