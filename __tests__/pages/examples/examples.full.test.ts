import { execFile } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { compiled } from "../../support/compiled.js";
import { nameTestTable } from "../../support/table.js";

const EXAMPLES = join(process.cwd(), "examples");

/** What a reader should see, in the words of the example. */
const SHOWN: Readonly<Record<string, readonly string[]>> = {
  "http-service": [
    "24 requests at once for 3 orders: 3 shipped, 21 had been shipped",
    "a ships order 4, and the carrier takes its time",
    "a client goes away; b waits for order 4 no longer: the client has gone",
    "a gets SIGTERM; who waits there gets 503",
    "who has the lock there gets 200 shipped; a exits with 0",
    "who was refused asks b, and gets 200 had been shipped",
    "",
    "The carrier has parcels for orders 1, 2, 3, 4",
  ],
  "guarded-writes": [
    "a reads 100, and is to pay out 10",
    "a is frozen",
    "the lock of a is ended by force",
    "b reads 100, and is to pay out 30",
    "b writes 70",
    "a wakes",
    "a has lost the lock (deleted), and must not pay",
    "",
    "Of 100, b has paid out 30, and a nothing: the balance is 70",
  ],
  "fair-queue": [
    "job 1 comes to b; in the queue: b",
    "job 2 comes to a; in the queue: b a",
    "job 3 comes to c; in the queue: b a c",
    "job 4 comes to a; in the queue: b a c a",
    "job 5 comes to c; in the queue: b a c a c",
    "job 6 comes to b; in the queue: b a c a c b",
    "b plots job 1",
    "a plots job 2",
    "c plots job 3",
    "a plots job 4",
    "c plots job 5",
    "b plots job 6",
    "",
    "In the order of arrival: yes",
  ],
  lambda: [
    "a, order 1: 200 shipped",
    "a is frozen; locks that are held: 0",
    "b, order 1: 200 had been shipped",
    "a, order 2: 200 shipped",
    "a, order 3: the carrier does not answer",
    "b, order 3: 409 busy with request a-3",
    "a, order 3: fails: TimeoutError; locks that are held: 0",
    "b, order 3: 200 had been shipped",
    "",
    "The carrier has parcels for orders 1, 2, 3",
  ],
  "single-table": [
    "The table can hold locks: yes; problems: 0",
    "",
    "All items, while main has the lock:",
    ...[1, 2, 3, 4, 5, 6].map((order) => `  customer#jane       order#${order}`),
    "  customer#jane       profile",
    "  lock#customer#jane  lock",
    "",
    "main has customer#jane",
    "",
    "Orders, placed by two processes: 1, 2, 3, 4, 5, 6",
  ],
};

test.each(Object.keys(SHOWN))("%s shows what it should", async (example) => {
  const { code, printed } = await run(example);
  expect(printed).toEqual(SHOWN[example]);
  expect(code).toBe(0);
});

test.each(["cron-croner", "cron-nestjs", "cron-node-cron"])(
  "%s: three hosts, one of them killed in the middle, run every tick at most once",
  async (example) => {
    const { code, printed } = await run(example);
    expect(printed.at(-1)).toMatch(/^\d+ ticks were run by .*; 0 of them twice$/);
    expect(printed).toContainEqual(expect.stringMatching(/^[abc] is killed$/));
    expect(printed).toContainEqual(expect.stringMatching(/left it to [abc]: (done|held)/));
    expect(code).toBe(0);
  },
);

test("semaphore-slow-api: three workers get all of their customers, three calls at a time", async () => {
  const { code, printed } = await run("semaphore-slow-api");
  expect(printed.slice(0, 3).sort()).toEqual(
    ["a", "b", "c"].map((name) => `${name} has ${[1, 2, 3, 4, 5, 6].map((customer) => name + customer).join(" ")}`),
  );
  expect(printed.slice(3)).toEqual(["", "The API has seen 18 calls, at most 3 at once, and has refused 0"]);
  expect(code).toBe(0);
});

test("leader-election: a leader is killed, the next resigns, and the observer sees each that leads", async () => {
  const { code, printed } = await run("leader-election");
  expect(printed.filter((line) => / is killed$/.test(line))).toHaveLength(1);
  expect(printed.filter((line) => / is told to end$/.test(line))).toHaveLength(1);
  expect(printed.at(-1)).toBe("3 leaders, one after the other, each another process: yes");
  expect(code).toBe(0);
});

test("the page of examples has a line and a command for each of them, and the command knows them all", async () => {
  const names = readdirSync(EXAMPLES).filter((name) => existsSync(join(EXAMPLES, name, "main.ts")));
  const page = await readFile(join(EXAMPLES, "README.md"), "utf8");
  const listed = [...page.matchAll(/^\| \[(.+)\]\(\1\/\) \|.*\| `npm run demo -- \1` \|$/gm)].map(([, name]) => name);
  expect(listed.sort()).toEqual(names);
  const { code, printed } = await outcome("main.js", ["--help"]);
  expect(printed).toEqual([`npm run demo -- NAME, where NAME is one of ${names.join(", ")}`]);
  expect(code).toBe(1);
});

/** Runs an example by the command's own program, on tables of its own. */
function run(example: string): Promise<Outcome> {
  return outcome("main.js", [example], { TABLE_NAME: nameTestTable(), ACCOUNTS_TABLE: nameTestTable() });
}

interface Outcome {
  readonly code: unknown;
  /** The lines that it printed, errors first. */
  readonly printed: readonly string[];
}

function outcome(program: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Outcome> {
  const path = compiled(new URL(`../../../examples/${program}`, import.meta.url));
  return new Promise((resolve) => {
    execFile(process.execPath, [path, ...args], { env: { ...process.env, ...env } }, (error, stdout, stderr) => {
      const printed = `${stderr}${stdout}`.trimEnd().split("\n");
      resolve({ code: error === null ? 0 : error.code, printed });
    });
  });
}
