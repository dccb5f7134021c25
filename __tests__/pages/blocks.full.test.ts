import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { DeleteTableCommand, ScanCommand } from "@aws-sdk/client-dynamodb";
import { afterAll, beforeAll, describe, expect, it, test } from "@jest/globals";
import { type ConsumerFolder, consumerFolder, PRELUDE } from "../support/consumer-folder.js";
import { startHost } from "../support/host-process.js";
import { blocksOf, docsPages, pageAt } from "../support/pages.js";
import { createTestTable, testClient } from "../support/table.js";
import type { ReadmeSectionConfig } from "./hosts/readme-section.js";

/** What the blocks that a page marks as running print, in order. */
const PRINTED: Readonly<Record<string, readonly (string | RegExp)[]>> = {
  "README.md": [/^invoice [12]$/, "built here", "a has the lock; b gets null\nb has the lock"], // and one that needs a mutex: see below
  "AGENTS.md": ["charged ann"],
  "docs/guides/cron.md": [
    /^the report of \d{4}-\d\d-\d\dT(00|23):30:00.000Z\ndone$/,
    /^the report for \d{4}-\d\d-\d\dT\d\d:00:00.000Z$/,
    "imported 41\nimported 42\n42: done, the last was 42\n40: done, the last was 42",
    /^\d{4}-\d\d-\d\dT(00:30|01:00|01:30):00.000Z$/,
    "attempt 1 has failed\nattempt 2 works\ndone",
    "cleaned up in no time",
  ],
  "docs/guides/fencing-and-guards.md": ["-10 10", /^Error: refused: token \d+ is older than \d+\nby the next holder$/],
  "docs/guides/from-redlock.md": ["the lock was held for a second: true"],
  "docs/guides/hand-off.md": ["false\norder 17, 3 items, true\nLOCK_LOST"],
  // The observer may look before the candidate has the lock, or after.
  "docs/guides/leader-election.md": [
    /^(?=[\s\S]*^leads$)(?=[\s\S]*^host-a at http:\/\/10\.0\.0\.17$)(?=[\s\S]*^ends its turn$)/m,
  ],
  "docs/guides/local-development.md": ["a is held: true"],
  "docs/guides/nestjs.md": [
    "order 17 ships under order#17\ninvoices are sent once an hour, by one instance",
    "order 18 waited for nobody",
  ],
  "docs/guides/recipes.md": ["20 requests, 1 load, 1 answer"],
  "docs/guides/semaphores.md": [
    /^at most [1-4] at once$/,
    "holds 4 of 16",
    "3 of 4 calls in this minute",
    "rebuilt under index\nrebuilt under builds\nrebuilt under catalogue",
  ],
  "docs/guides/several-locks.md": ["70 and 30"],
  "docs/guides/single-flight.md": ["1 1 1 1\n1.08 after 1 run"],
  "docs/guides/testing.md": ["host-1", "a,b stolen", "ok", "2 26000", "paid 1", "true"],
  "docs/guides/shared-mutexes.md": ["first, first, second"],
};

/** The pages of blocks that use the library and are not run: such a block says nothing about what it does, or another test runs the same. */
const SHOWN_ONLY = [
  "SECURITY.md", // options alone
  "docs/guides/table.md", // options alone
  "docs/guides/table.md",
  "docs/guides/locks.md", // the forms of a call, as README has them
  "docs/guides/locks.md", // README's block again
  "docs/guides/regions.md", // a condition on an item of the reader's
  "docs/guides/nestjs.md", // options alone
  "docs/guides/nestjs.md", // a method that a schedule calls: nestjs/once-per.test.ts runs the decorator
  "docs/guides/getting-started.md", // all its steps run in getting-started.full.test.ts
  "docs/guides/getting-started.md",
];

/** Blocks that need a mutex and some work around them, by their page and their place among those that it marks. */
const SECTIONS = { "docs/guides/observability.md": 0, "README.md": 3 };

const TESTS = join(process.cwd(), "__tests__");

/** Declarations alone, which a tool writes. */
const API_REPORT = /^docs\/.*\.api\.md$/;

const BLOCKS = [
  pageAt("README.md"),
  pageAt("SECURITY.md"),
  pageAt("CONTRIBUTING.md"),
  pageAt("AGENTS.md"),
  ...docsPages(),
]
  .flatMap(blocksOf)
  .filter(({ language, page, files }) => language === "ts" && files.length === 0 && !API_REPORT.test(page))
  .map((block) => ({ ...block, file: `${block.page.replaceAll(/[/.]/g, "-")}-${block.line}` }));
const RUNNING = BLOCKS.filter(({ runs }) => runs);
const PROGRAMS = RUNNING.flatMap((block) => {
  const place = RUNNING.filter(({ page }) => page === block.page).indexOf(block);
  const printed = PRINTED[block.page]?.[place];
  return printed === undefined ? [] : [{ ...block, printed, table: `docs-${randomUUID()}` }];
});

/**
 * What each target makes of `await using`: TypeScript's helpers, or what Node 24 has of its own. The first has all blocks, the
 * second those of README and of what runs together with it.
 */
const TARGETS = [
  { target: "es2022", runs: true, blocks: BLOCKS },
  {
    target: "esnext",
    runs: Number(process.versions.node.split(".")[0]) >= 24,
    blocks: BLOCKS.filter(({ page }) => page in SECTIONS),
  },
];

/** How many programs run at once: each waits for the engine most of the time. */
const AT_ONCE = 3;

const client = testClient();
let folder: ConsumerFolder;

beforeAll(async () => {
  folder = await consumerFolder();
  for (const { file, text } of BLOCKS) {
    const table = PROGRAMS.find((program) => program.file === file)?.table;
    await folder.write(`${file}.ts`, table === undefined ? text : text.replaceAll('"locks"', `"${table}"`));
  }
});

afterAll(async () => {
  await folder[Symbol.asyncDispose]();
});

describe.each(TARGETS)("the blocks of README, SECURITY and docs/, compiled for $target", ({ target, runs, blocks }) => {
  const programs = PROGRAMS.filter(({ file }) => blocks.some((block) => block.file === file));
  const printed = new Map<string, Promise<string>>();

  beforeAll(async () => {
    // Whole programs are compiled by themselves, so that none relies on what is declared for the others.
    const whole = programs.map(({ file }) => `${file}.ts`);
    const parts = blocks.map(({ file }) => `${file}.ts`).filter((file) => !whole.includes(file));
    const outDir = join(folder.path, target);
    const told = await Promise.all([
      folder.compile(whole, { target, outDir }),
      folder.compile([...PRELUDE, ...parts], { target, outDir }),
    ]);
    expect(told).toEqual(["", ""]);
    if (!runs) return;
    const last: Promise<unknown>[] = [];
    for (const [index, program] of programs.entries()) {
      const output = Promise.resolve(last[index % AT_ONCE]).then(() => run(program, target));
      printed.set(program.file, output);
      last[index % AT_ONCE] = output.catch(() => undefined); // its test tells
    }
  });

  // The programs of the next target begin with tables of their own, under the same names.
  afterAll(async () => {
    for (const { table } of programs) {
      await client.send(new DeleteTableCommand({ TableName: table })).catch((error) => {
        if (error.name !== "ResourceNotFoundException") throw error;
      });
    }
  });

  it("compile, all of them", () => {
    expect(blocks.length).toBeGreaterThan(target === "es2022" ? 40 : 4);
  });

  // Node 20 compiles `using` and cannot run it.
  if (!runs) return;

  it.each(programs)("$page, line $line, runs and prints what it says", async (program) => {
    const { printed: says } = program;
    expect(await printed.get(program.file)).toEqual(says instanceof RegExp ? expect.stringMatching(says) : says);
    if (!program.text.includes("last.txt")) return;
    const { Items } = await client.send(new ScanCommand({ TableName: program.table }));
    expect(Items).toEqual([]); // released
  });

  it.each([
    { isLost: true, throws: true, says: "customers was lost (deleted): look at what was charged, then try again\n" },
    { isLost: true, throws: false, says: "customers was lost (deleted): look at what was charged, then try again\n" },
    { isLost: false, throws: true, says: "rejected: Error: the card was declined\n" },
    { isLost: false, throws: false, says: "" },
  ])("tell a lost lock from a failed section: lost $isLost, throws $throws", async ({ isLost, throws, says }) => {
    // Who listens first hears it.
    const examples = Object.entries(SECTIONS).map(([path, place]) => {
      const { file } = RUNNING.filter(({ page }) => page === path)[place] ?? { file: "none" };
      return pathToFileURL(join(folder.path, target, `${file}.js`)).href;
    });
    const config: ReadmeSectionConfig = { tableName: await createTestTable(), examples, isLost, throws };
    const env = { AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true" };
    await using host = startHost(new URL("./hosts/readme-section.js", import.meta.url), { config, env });
    expect((await host.exit).code).toBe(0);
    const warning = isLost ? "lock customers was lost: deleted\n" : "";
    expect(host.stderr).toBe(warning + says);
  });
});

async function run({ file, text, table }: (typeof PROGRAMS)[number], target: string): Promise<string> {
  if (!text.includes("locks.create()")) await createTestTable({ name: table });
  return await folder.run(join(folder.path, target, `${file}.js`));
}

test("every other block that uses the library leaves something to the reader, or does no more than make a LockTable", () => {
  const others = BLOCKS.filter(({ runs, text }) => !runs && / from "dynamutex/.test(text));
  expect(others.map(({ page }) => page).sort()).toEqual([...SHOWN_ONLY].sort());
});

test("every program that a page names is started, by a test of its own", () => {
  const tests = readdirSync(TESTS, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".test.ts"));
  const sources = tests.map((name) => readFileSync(join(TESTS, name), "utf8")).join("");
  // The matrix builds the program for Next.js and runs it: .ci/matrix/cells.js.
  const ofTheMatrix = /^(?:lib\/|app\/|instrumentation)/;
  const blocks = [pageAt("README.md"), ...docsPages()].flatMap(blocksOf);
  const files = new Set(blocks.flatMap((block) => block.files));
  const imported = new Set(
    blocks.flatMap(({ text }) => [...text.matchAll(/ from "\.\/(.+)\.js"/g)].map(([, name]) => `${name}.ts`)),
  );
  expect(files.size).toBeGreaterThan(4);
  const isStarted = (file: string) =>
    [`"${file}"`, `"./${file.replace(".ts", ".js")}"`].some((name) => sources.includes(name));
  expect([...files].filter((file) => !imported.has(file) && !isStarted(file) && !ofTheMatrix.test(file))).toEqual([]);
});

test("every block that a page marks as running is run", () => {
  const places = RUNNING.map(({ page }) => page).sort();
  const run = [...PROGRAMS.map(({ page }) => page), ...Object.keys(SECTIONS)].sort();
  expect(run).toEqual(places);
  expect(Object.values(PRINTED).flat()).toHaveLength(PROGRAMS.length);
});
