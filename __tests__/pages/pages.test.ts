import { existsSync, readFileSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { runInNewContext } from "node:vm";
import { DeleteTableCommand, type DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { describe, expect, it, test } from "@jest/globals";
import { LockTable, type LockTableOptions } from "dynamutex";
import { mutexSettings } from "../../lib/options/mutex.js";
import {
  anchorOf,
  blocksOf,
  docsPages,
  examplesPages,
  firstColumn,
  type Page,
  pageAt,
  withoutBlocks,
} from "../support/pages.js";
import { createTestTable, testClient } from "../support/table.js";

const ROOT = process.cwd();
const README = pageAt("README.md");
const INDEX = pageAt("docs/README.md");
const DOCS = docsPages();
const LINKED = [
  README,
  ...DOCS,
  ...examplesPages(),
  ...["CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "AGENTS.md"].map(pageAt),
  pageAt("__tests__/README.md"),
  ...["README", "reports/simulation", "reports/model", "reports/defects", "reports/chaos"].map((page) =>
    pageAt(`__tests__/proof/${page}.md`),
  ),
];

/** Written by a tool, and so without a question. */
const GENERATED = ["", "-testing", "-node-cron", "-prom-client", "-nestjs", "-otel"].map(
  (entry) => `docs/design/api/dynamutex${entry}.api.md`,
);

describe("links", () => {
  test("lead somewhere", () => {
    const wrong = LINKED.flatMap((page) =>
      linksOf(page)
        .filter((link) => !leadsSomewhere(page, link))
        .map((link) => `${page.path}: ${link}`),
    );
    expect(wrong).toEqual([]);
  });

  test("are found, and a wrong one is told from a right one", () => {
    expect(linksOf(README).length).toBeGreaterThan(20);
    const page: Page = { path: "docs/guides/x.md", text: "" };
    for (const link of [
      "cron.md#nothing",
      "nothing.md",
      "../guides",
      "#nothing",
      "/docs/guides/cron.md",
      "../nothing/",
    ]) {
      expect(leadsSomewhere(page, link)).toBe(link === "../guides");
    }
    for (const link of ["cron.md", "cron.md#held-and-done", "../../examples/ha-cron/", "https://example.org/nothing"]) {
      expect(leadsSomewhere(page, link)).toBe(true);
    }
  });
});

describe("the index", () => {
  const linked = new Map(
    [...INDEX.text.matchAll(/^- \[(.+?\?)\]\(([^)]+)\)$/gm)].map(([, question = "", link = ""]) => [
      join("docs", link),
      question,
    ]),
  );

  it("lists every page once, and none that is not there", () => {
    const rows = [...INDEX.text.matchAll(/^- \[/gm)];
    expect(rows).toHaveLength(linked.size);
    const pages = DOCS.map(({ path }) => path).filter((path) => path !== INDEX.path);
    expect([...linked.keys()].sort()).toEqual([...pages, "SECURITY.md", "AGENTS.md"].sort());
  });

  const asked = [...DOCS, pageAt("SECURITY.md"), pageAt("AGENTS.md")].filter(({ path }) => !GENERATED.includes(path));
  it("has for each page the question with which that opens", () => {
    const opening = asked.map((page) => [page.path, openingQuestion(page)] as const);
    expect(opening.filter(([, question]) => !/^[A-Z].+\?$/.test(question))).toEqual([]);
    expect(opening.filter(([path, question]) => path !== INDEX.path && linked.get(path) !== question)).toEqual([]);
  });
});

describe("the README", () => {
  it("names every code of an error that errors.md names, which are those of LockErrorCode", async () => {
    const library = await readFile(join(ROOT, "lib", "errors.ts"), "utf8");
    const [, type = ""] = /type LockErrorCode =([^;]+);/.exec(library) ?? [];
    const codes = [...type.matchAll(/"(LOCK_\w+)"/g)].map(([, code]) => code ?? "").sort();
    expect(codes.length).toBeGreaterThan(3);
    const told = [...firstColumn(pageAt("docs/reference/errors.md"), "Errors")].filter((cell) => cell !== "code");
    expect(told.sort()).toEqual(codes);
    expect([...firstColumn(README, "Errors")].filter((cell) => cell !== "code").sort()).toEqual(codes);
  });
});

describe("the tables that are looked up", () => {
  it("name every option, and none that is not there", () => {
    const tableOptions = ["tableName", "client", "keys", "keyPrefix", "owner", "clock"];
    const options = [...tableOptions, ...Object.keys(mutexSettings({}))];
    expect([...firstColumn(pageAt("docs/reference/options.md"), "Options")].sort()).toEqual(options.sort());
  });

  it("name every part of an option that has parts", () => {
    const rows = pageAt("docs/reference/options.md").text.split("\n");
    for (const [option, parts] of Object.entries(mutexSettings({}))) {
      if (typeof parts !== "object") continue;
      const row = rows.find((line) => line.startsWith(`| \`${option}\``)) ?? "";
      for (const part of Object.keys(parts)) expect(row).toMatch(new RegExp(`\\b${part}\\b`));
    }
  });

  it("name every public name of each entry point", () => {
    const [page = "", others = ""] = pageAt("docs/reference/api.md").text.split("\n## Other entry points\n");
    for (const report of GENERATED.map(pageAt)) {
      const names = [...report.text.matchAll(/^export (?:declare |abstract )*\w+ (\w+)/gm)].map(
        ([, name = ""]) => name,
      );
      expect(names.length).toBeGreaterThan(2);
      const [, entry] = /dynamutex-(.+)\.api/.exec(report.path) ?? [];
      const text =
        entry === undefined ? page : others.split("\n").find((line) => line.startsWith(`| \`dynamutex/${entry}\``));
      expect([report.path, names.filter((name) => !text?.match(new RegExp(`\`${name}\\b`)))]).toEqual([
        report.path,
        [],
      ]);
    }
  });

  it("give every reason of a loss", async () => {
    const library = await readFile(join(ROOT, "lib", "errors.ts"), "utf8");
    const [, type = ""] = /type LossReason = (.+);/.exec(library) ?? [];
    const reasons = [...type.matchAll(/"([\w-]+)"/g)].map(([, reason]) => reason);
    for (const [path, heading] of [
      ["docs/guides/locks.md", "Losing a lock"],
      ["docs/guides/troubleshooting.md", "Why was my lock lost\\?"],
    ] as const) {
      expect([...firstColumn(pageAt(path), heading)].sort()).toEqual([...reasons, "reason"].sort()); // and its head
    }
  });
});

describe("permissions", () => {
  const client = testClient();
  const asked: { readonly action: string; readonly leading: readonly string[] }[] = [];
  client.middlewareStack.add(
    (next, context) => (input) => {
      asked.push(...askedOf(String(context.commandName).replace(/Command$/, ""), input.input));
      return next(input);
    },
    { step: "initialize" },
  );
  const actions = () => [...new Set(asked.map(({ action }) => action))].sort();

  it("docs/guides/table.md names exactly those that are used", async () => {
    const tableName = `readme-${crypto.randomUUID()}`;
    await using locks = new LockTable({ tableName, client });
    await locks.create();
    try {
      expect(actions()).toEqual(permissions("`create()`"));
      asked.length = 0;
      await useMutex(locks, tableName, client);
      expect(actions()).toEqual(permissions("take, wait for, renew and release locks"));
      expect(actions()).toEqual([...policyOf("docs/guides/table.md").Action].sort());
    } finally {
      await client.send(new DeleteTableCommand({ TableName: tableName }));
    }
  });

  it("SECURITY.md's policy admits every request of locks of its prefix, and needs all of its actions", async () => {
    const policy = policyOf("SECURITY.md");
    const [prefix = ""] = policy.Condition?.["ForAllValues:StringLike"]["dynamodb:LeadingKeys"] ?? [];
    expect(prefix).toMatch(/^\w+#\*$/);
    const tableName = await createTestTable();
    asked.length = 0;
    await using locks = new LockTable({ tableName, client, keyPrefix: prefix.slice(0, -1) });
    await useEverythingElse(locks);
    for (const { action, leading } of asked) {
      expect(policy.Action).toContain(action);
      expect(leading.length).toBeGreaterThan(0); // or `Null` would refuse it
      for (const key of leading) expect(key.startsWith(prefix.slice(0, -1))).toBe(true);
    }
    expect(actions()).toEqual([...policy.Action].sort());
  });
});

/** Takes, renews, waits for, misses and releases. */
async function useMutex(locks: LockTable, tableName: string, client: DynamoDBClient): Promise<void> {
  await using lock = await locks.mutex("a").lock();
  await lock.extend();
  await using others = new LockTable({ tableName, client });
  await expect(others.mutex("a").lock({ waitMs: 1_000 })).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
  await lock.unlock();
}

/** Every kind of lock, and all that can be done with one. */
async function useEverythingElse(locks: LockTable): Promise<void> {
  const fair = locks.mutex("fair", { fair: true });
  const queued = await fair.lock();
  const next = fair.run(() => undefined);
  await fair.inspect();
  await queued.unlock();
  await next;
  await locks.mutex("fenced", { fencing: true }).run(() => undefined);
  await locks.mutex("tick").tryRun(() => undefined, { everyMs: 3_600_000 });
  await locks.mutex("parked").run(() => undefined, { holdAtLeastMs: 1 });
  const semaphore = locks.semaphore("permits", { permits: 2, fair: true });
  await Promise.all([1, 2, 3].map(() => semaphore.run(() => undefined)));
  const { shared, exclusive } = locks.sharedMutex("sides");
  await shared.run(() => undefined);
  await exclusive.run(() => undefined);
  const set = await locks.lockAll(["one", "two"]);
  await set.unlock();
  const handed = await (await locks.mutex("handed").lock()).handOff({ validForMs: 60_000 });
  const resumed = await locks.mutex("handed").resume(handed);
  await resumed.replaceData({ done: 1 });
  await resumed.transactWrite([]);
  await locks.mutex("handed").forceUnlock(resumed.uuid);
  await resumed.unlock().catch(() => undefined);
  await locks.mutex("handed").inspect();
}

interface Policy {
  readonly Action: readonly string[];
  readonly Condition?: { readonly "ForAllValues:StringLike": { readonly "dynamodb:LeadingKeys": readonly string[] } };
}

/** The first statement of the policy on a page. */
function policyOf(path: string): Policy {
  const policy = blocksOf(pageAt(path)).find(({ language }) => language === "json")?.text ?? "{}";
  return JSON.parse(policy).Statement[0];
}

/** What IAM would see of a request: for a transaction, the actions of its items. */
function askedOf(name: string, input: unknown): { readonly action: string; readonly leading: readonly string[] }[] {
  const { Key, Item, ExpressionAttributeValues, TransactItems } = input as {
    readonly Key?: Record<string, { readonly S?: string }>;
    readonly Item?: Record<string, { readonly S?: string }>;
    readonly ExpressionAttributeValues?: Record<string, { readonly S?: string }>;
    readonly TransactItems?: readonly Record<string, unknown>[];
  };
  if (TransactItems !== undefined) {
    return TransactItems.flatMap((item) =>
      Object.entries(item).flatMap(([kind, of]) =>
        askedOf(kind === "ConditionCheck" ? "ConditionCheckItem" : `${kind}Item`, of),
      ),
    );
  }
  const key = (Key ?? Item)?.name?.S ?? (name === "Query" ? ExpressionAttributeValues?.[":name"]?.S : undefined);
  return [{ action: `dynamodb:${name}`, leading: key === undefined ? [] : [key] }];
}

function permissions(to: string): readonly string[] {
  const row = pageAt("docs/guides/table.md")
    .text.split("\n")
    .find((line) => line.startsWith(`| ${to} |`));
  return [...(row ?? "").matchAll(/dynamodb:\w+/g)].map(([action]) => action).sort();
}

/** The first sentence of a page's first paragraph. */
function openingQuestion({ text }: Page): string {
  const [, paragraph = ""] = /^# .+\n\n((?:.+\n)+)/.exec(text) ?? [];
  return /^[^?]+\?/.exec(paragraph.replaceAll("\n", " "))?.[0] ?? "";
}

function linksOf(page: Page): readonly string[] {
  return [...withoutBlocks(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = ""]) => link);
}

function leadsSomewhere(page: Page, link: string): boolean {
  if (/^https?:/.test(link)) return true;
  const [path = "", anchor] = link.split("#");
  const file = path === "" ? page.path : join(dirname(page.path), path);
  if (link.startsWith("/") || !existsSync(join(ROOT, file))) return false;
  if (anchor === undefined) return true;
  return !statSync(join(ROOT, file)).isDirectory() && anchorsOf(pageAt(file)).includes(anchor);
}

function anchorsOf(page: Page): readonly string[] {
  return [...withoutBlocks(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => anchorOf(heading));
}

test("README keeps the two commands that try the project from a clone", () => {
  const readme = readFileSync("README.md", "utf8").split("\n");
  expect(readme).toEqual(expect.arrayContaining(["npm ci && npm run demo", "npm ci && npm test"]));
});

test("the worked examples of costs.md are computed as they say", () => {
  const sums = [...pageAt("docs/guides/costs.md").text.matchAll(/(\(?[\d.]+(?: [*+/]|[\d.() *+/])+) = ([\d .]*\d)/g)];
  expect(sums.length).toBeGreaterThan(8);
  for (const [, sum = "", result = ""] of sums) {
    expect(`${sum} = ${Number(runInNewContext(sum).toFixed(2))}`).toBe(`${sum} = ${result.replaceAll(" ", "")}`);
  }
});

test("docs/guides/local-development.md quotes what a LockTable says of an endpoint", () => {
  const options: LockTableOptions = { tableName: "locks" };
  let told = "";
  try {
    new LockTable({ ...options, ...{ endpoint: "http://127.0.0.1:8000" } });
  } catch (error) {
    told = (error as Error).message.replace(/ \(got .*\)$/, "");
  }
  expect(told).toMatch(/^endpoint: /);
  expect(pageAt("docs/guides/local-development.md").text.replaceAll("\n", " ")).toContain(`\`${told}\``);
});

test("a line of code has 120 letters at most, so that a block at a desk does not scroll", () => {
  const long = [README, ...DOCS]
    .filter(({ path }) => !path.startsWith("docs/design/"))
    .flatMap(blocksOf)
    .filter(({ language }) => language !== "console") // what a command prints, which wraps
    .flatMap(({ page, text }) => text.split("\n").flatMap((line) => (line.length > 120 ? [`${page}: ${line}`] : [])));
  expect(long).toEqual([]);
});
