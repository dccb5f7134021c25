import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { programWith } from "../../lib/cli/program.js";
import { capture, normalised } from "../cli/capture.js";
import { useInstalledCli } from "../cli/installed-cli.js";
import { blocksOf, pageAt } from "../support/pages.js";
import { useScene } from "../support/scene.js";

const scene = useScene();
const cli = useInstalledCli();
const PAGE = join(process.cwd(), "docs", "guides", "cli.md");

/** `CAPTURE=write` puts what the command prints into the page. */
test("docs/guides/cli.md shows what the command prints of a table with locks in every state", async () => {
  for (const [line, text] of await capture(cli, scene)) {
    const captured = `$ ${line}\n${text.trimEnd()}\n`.replaceAll(scene.tableName, "locks");
    if (process.env.CAPTURE === "write") insert(line, captured);
    expect(normalised(shown(line))).toBe(normalised(captured));
  }
});

test("the table of options in docs/guides/cli.md has every option of run, and no other", async () => {
  const page = readFileSync(PAGE, "utf8");
  const [, section = ""] = page.split(/^## Run a command.*$/m);
  const described = [...(section.split(/^## /m)[0] ?? "").matchAll(/^\| `(--[\w-]+)/gm)].map(([, option]) => option);
  const { stdout } = await cli.run(["run", "--help"]);
  const [, options = ""] = stdout.split("Options:");
  const known = [...options.matchAll(/^ {2}(--[\w-]+)/gm)].map(([, option]) => option);
  const ofTheTable = ["--table", "--key-prefix", "--keys", "--region", "--profile", "--endpoint-url"];
  expect(described).toEqual(known.filter((option) => !ofTheTable.includes(option ?? "")));
  for (const option of ofTheTable) expect(page).toContain(`| \`${option}`);
});

test.each(["docs/guides/cli.md", "docs/guides/cron.md", "README.md", "examples/command-line/deploy.sh"])(
  "%s gives commands options that they have",
  (page) => {
    const text = readFileSync(join(process.cwd(), page), "utf8").replace(/\[(dynamutex, .*)\]/g, (_, list) =>
      list.replaceAll(",", ""),
    );
    const { commands } = programWith();
    const unknown = [...text.matchAll(/\bdynamutex ([a-z][a-z-]*) (.*)/g)].flatMap(([line, name, rest = ""]) => {
      const command = commands.find((each) => each.name() === name);
      if (command === undefined) return [];
      const given = rest.split(/ -- | #|`/)[0]?.match(/(?<= |^)--[a-z-]+/g) ?? [];
      return given.some((flag) => !command.options.some(({ long }) => long === flag)) ? [line] : [];
    });
    expect(unknown).toEqual([]);
  },
);

function shown(line: string): string {
  return (
    blocksOf(pageAt("docs/guides/cli.md")).find((block) => block.text.startsWith(`$ ${line}\n`))?.text ?? "nothing"
  );
}

function insert(line: string, captured: string): void {
  const text = readFileSync(PAGE, "utf8");
  writeFileSync(
    PAGE,
    text.replace(shown(line), () => captured),
  );
}
