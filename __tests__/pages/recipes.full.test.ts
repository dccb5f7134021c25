import { execFile } from "node:child_process";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { CreateTableCommand, PutItemCommand } from "@aws-sdk/client-dynamodb";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { consumerEnv } from "../support/consumer-folder.js";
import { Desk } from "../support/desk.js";
import { type PagePrograms, pagePrograms } from "../support/page-programs.js";
import { blocksOf, docsPages, pageAt } from "../support/pages.js";
import { nameTestTable, testClient } from "../support/table.js";

const PAGE = "docs/guides/recipes.md";
const run = promisify(execFile);

/**
 * The reader's provider, which answers when the test does, and a program that needs three tokens at once. It tells when it polls
 * a lock that is held.
 */
const PROVIDER = `
export async function refresh(token: string, signal: AbortSignal) {
  await fetch(process.env.DESK + "/refresh/" + token, { method: "POST", signal });
  return { access: "access-2", refresh: "refresh-2", expires: Date.now() + 3_600_000 };
}
`;
const MAIN = `
import { subscribe } from "node:diagnostics_channel";
import type { Diagnostics } from "dynamutex";
import { accessToken } from "./access-token.js";

subscribe("dynamutex:request", (message) => {
  const { operation } = message as Diagnostics["dynamutex:request"];
  if (operation === "read") void fetch(process.env.DESK + "/waits", { method: "PUT" });
});
const tokens = await Promise.all([accessToken(), accessToken(), accessToken()]);
console.log(tokens.join(" "));
process.exit();
`;

const client = testClient();
const TOKENS = nameTestTable();
let programs: PagePrograms;
let bin: string;

beforeAll(async () => {
  const given = { "provider.ts": PROVIDER, "main.ts": MAIN };
  programs = await pagePrograms({ pages: [PAGE], only: ["access-token.ts"], given });
  const KeySchema = [{ AttributeName: "id", KeyType: "HASH" as const }];
  const AttributeDefinitions = [{ AttributeName: "id", AttributeType: "S" as const }];
  const BillingMode = "PAY_PER_REQUEST" as const;
  await client.send(new CreateTableCommand({ TableName: TOKENS, KeySchema, AttributeDefinitions, BillingMode }));
  bin = await mkdtemp(join(tmpdir(), "dynamutex-bin-"));
});

afterAll(async () => {
  await rm(bin, { recursive: true, force: true });
  await programs[Symbol.asyncDispose]();
});

async function store(expires: number): Promise<void> {
  const [id, access, refresh] = ["crm", "access-1", "refresh-1"].map((S) => ({ S }));
  const Item = { id, access, refresh, expires: { N: String(expires) }, version: { N: "1" } };
  await client.send(new PutItemCommand({ TableName: TOKENS, Item: Item as never }));
}

test("a refresh token is used once by two processes that need a token three times each", async () => {
  await store(0);
  await using desk = new Desk();
  const env = { DESK: await desk.start(), TOKENS_TABLE: TOKENS };
  await using one = programs.start("main.js", env);
  await desk.hears("POST /refresh/refresh-1");
  await using other = programs.start("main.js", env);
  await desk.hears("PUT /waits");
  await desk.answer("POST /refresh/refresh-1");
  await Promise.all([one.exit, other.exit]);
  expect([...one.lines, ...other.lines]).toEqual(Array(2).fill("access-2 access-2 access-2"));
  expect(desk.asked.filter((asked) => asked !== "PUT /waits")).toEqual(["POST /refresh/refresh-1"]);
});

test("a token that is valid for longer than a minute is not refreshed", async () => {
  await store(Date.now() + 120_000);
  await using one = programs.start("main.js", { TOKENS_TABLE: TOKENS });
  await one.exit;
  expect(one.lines).toEqual(["access-1 access-1 access-1"]);
});

/** Npm's own commands do not pass SIGTERM on: the lock would stay taken. */
const STARTED_ITSELF = /^node_modules\/\.bin\/dynamutex(?=, )/;

test("no page starts a run of the command by npx or npm, which keep SIGTERM to themselves", () => {
  const started = docsPages().flatMap(
    ({ text }) => text.match(/\bnpx,? dynamutex,? run\b|\bnpm exec .*dynamutex run\b/g) ?? [],
  );
  expect(started).toEqual([]);
});

/** What the page has people run: a line of a shell for each tool, and what the init container runs. */
function migrations(): readonly string[] {
  const blocks = blocksOf(pageAt(PAGE));
  const shell = blocks.find(({ files }) => files.includes("migrate.sh"))?.text ?? "";
  const [, command = ""] =
    /command: \[(.*)\]/.exec(blocks.find(({ language }) => language === "yaml")?.text ?? "") ?? [];
  const [table = "", ...lines] = shell.trim().split("\n");
  const all = [...lines, command.replace(STARTED_ITSELF, "dynamutex").replaceAll(", ", " ")];
  return all.map((line) => `${table.replace("=locks", `=${programs.tableName}`)}\n${line}`);
}

/** A program of this name on the path of the page's commands. */
async function provide(name: string, text: string): Promise<void> {
  await writeFile(join(bin, name), `#!/bin/sh\n${text}\n`);
  await chmod(join(bin, name), 0o755);
}

test("two instances that start at once migrate one after the other, with each line of the page", async () => {
  const log = join(bin, "log");
  const main = join(process.cwd(), "dist", "cli", "main.js");
  await provide("dynamutex", `exec "${process.execPath}" "${main}" "$@"`);
  await provide("npx", `echo "begin $*" >> "${log}"; sleep 0.2; echo "end $*" >> "${log}"`);
  const path = [bin, process.env.PATH].join(delimiter);
  const env = { ...consumerEnv(), PATH: path, DYNAMUTEX_TABLE: "" };
  expect(migrations()).toHaveLength(4);
  for (const line of migrations()) {
    await writeFile(log, "");
    await Promise.all([run("sh", ["-c", line], { env }), run("sh", ["-c", line], { env })]);
    const [, tool] = line.split(" -- npx ");
    expect((await readFile(log, "utf8")).trim().split("\n")).toEqual([
      `begin ${tool}`,
      `end ${tool}`,
      `begin ${tool}`,
      `end ${tool}`,
    ]);
  }
});

/** The reader's model, which takes its time, and its store of histories. */
const MODEL = `
const histories = new Map<string, readonly string[]>();
let running = 0;
export const load = async (conversation: string) => histories.get(conversation) ?? [];
export const save = async (conversation: string, history: readonly string[]) => void histories.set(conversation, history);
export async function complete(history: readonly string[], signal: AbortSignal): Promise<string> {
  running += 1;
  console.log("answers " + history.at(-1) + ", " + running + " at a time");
  try {
    await new Promise((done, fail) => {
      setTimeout(done, history.at(-1) === "long" ? 600_000 : 100).unref();
      signal.addEventListener("abort", () => fail(signal.reason), { once: true });
    });
    return "re: " + history.at(-1);
  } finally {
    running -= 1;
  }
}
`;

/** Three messages at once, then one whose client goes while it is answered, beside one that waits for too short a time. */
const TALK = `
import { answer } from "./conversation.js";
import { load } from "./model.js";

const stays = new AbortController().signal;
const keepAlive = setInterval(() => undefined, 1_000);
const first = answer("c", "one", stays);
await new Promise((done) => setTimeout(done, 30));
await Promise.all([first, answer("c", "two", stays), answer("c", "three", stays)]);
const client = new AbortController();
const long = answer("c", "long", client.signal).catch((error: Error) => error.message);
await new Promise((done) => setTimeout(done, 200));
console.log(JSON.stringify(await answer("c", "late", stays)));
client.abort(new Error("the client has gone"));
console.log(await long);
console.log((await load("c")).join(", "));
clearInterval(keepAlive);
process.exit();
`;

test("trap 53: messages of one conversation are answered one after the other, in order; the model's call ends with its client", async () => {
  const given = { "model.ts": MODEL, "talk.ts": TALK };
  await using talk = await pagePrograms({ pages: [PAGE], only: ["conversation.ts"], given });
  await using program = talk.start("talk.ts", { WAIT_MS: "1500" });
  const { code } = await program.exit;
  expect({ code, lines: program.lines }).toEqual({
    code: 0,
    lines: [
      ...[
        "answers one, 1 at a time",
        "answers two, 1 at a time",
        "answers three, 1 at a time",
        "answers long, 1 at a time",
      ],
      '{"status":409,"text":"still answering: try again"}',
      "the client has gone",
      "one, re: one, two, re: two, three, re: three",
    ],
  });
});

/** The reader's tool: it looks what is done, and does the rest. What is done, and how many are at it, stands in files. */
const MIGRATIONS = `
import { appendFile, mkdir, readFile, rmdir } from "node:fs/promises";
export async function migrate(): Promise<void> {
  await mkdir("migrating"); // fails where another is at it
  const done = await readFile("migrated", "utf8").catch(() => "");
  await new Promise((wait) => setTimeout(wait, 100));
  if (done === "") await appendFile("migrated", "1");
  if (done === "") console.log("migrates");
  await rmdir("migrating");
}
`;

test("trap 53: of processes that start at once, one migrates, and all go on", async () => {
  const given = { "migrations.ts": MIGRATIONS };
  await using deploy = await pagePrograms({ pages: [PAGE], only: ["migrate.ts"], given });
  const instances = [0, 1, 2].map(() => deploy.start("migrate.ts"));
  const codes = await Promise.all(instances.map(async (instance) => (await instance.exit).code));
  const lines = instances.flatMap((instance) => instance.lines).sort();
  const all = "the database is up to date";
  expect({ codes, lines }).toEqual({ codes: [0, 0, 0], lines: ["migrates", all, all, all] });
});
