import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";

/** The script is JavaScript without types. */
const { checkImports } = await import(pathToFileURL(join(process.cwd(), ".ci", "import-direction.js")).href);

describe("the check of imports", () => {
  let lib: string;
  beforeEach(async () => {
    lib = await mkdtemp(join(tmpdir(), "dynamutex-lib-"));
  });
  afterEach(() => rm(lib, { recursive: true, force: true }));

  async function check(files: Record<string, string>): Promise<readonly string[]> {
    for (const [file, text] of Object.entries(files)) {
      await mkdir(dirname(join(lib, file)), { recursive: true });
      await writeFile(join(lib, file), text);
    }
    return checkImports(lib).problems;
  }

  it("accepts imports that point downward", async () => {
    const problems = await check({
      "index.ts": 'export { LockTable } from "./lock-table.js";',
      "lock-table.ts": 'import { send } from "./dynamodb/send.js"; export class LockTable { send = send; }',
      "dynamodb/send.ts":
        'import { now } from "../time/clock.ts"; import "@aws-sdk/client-dynamodb"; export const send = now;',
      "lock.ts":
        'import type { TransactWriteItem } from "@aws-sdk/client-dynamodb"; export type X = TransactWriteItem;',
      "time/clock.ts": "export const now = () => Date.now(); setTimeout(now, 1);",
      "errors.ts": 'export const at = new Date(0), parsed = Date.parse("");',
    });
    expect(problems).toEqual([]);
  });

  const THERE = { "dynamodb/b.ts": 'import "./a.js";', "holding/handle.ts": "", "errors.ts": "", "mutex.ts": "" };

  it.each<[string, string, RegExp]>([
    ["protocol/row.ts", 'import "../holding/handle.js";', /^lib\/protocol\/row\.ts:1: .*above it/],
    ["protocol/row.ts", 'import("../holding/handle.js");', /above it/],
    ["protocol/row.ts", '\nexport * from "../holding/handle.js";', /^lib\/protocol\/row\.ts:2: /],
    ["protocol/row.ts", 'type L = import("../holding/handle.js").L;', /above it/],
    ["protocol/row.ts", 'import "../errors.js";', /lib\/protocol\/ may import only/],
    ["protocol/row.ts", 'import type { A } from "@aws-sdk/client-dynamodb";', /imports types from/],
    ["novel.ts", "", /^lib\/novel\.ts: not in the list of layers: add it to LAYERS/],
    ["taking/claim.ts", 'import "../dynamodb/a.js";', /only lib\/lock-table\.ts, lib\/testing\/ may import/],
    ["cli/run.ts", 'await import("../mutex.js");', /lib\/cli\/ may import only lib\/cli\/, lib\/index\.ts/],
    ["lock.ts", 'import { A } from "@aws-sdk/client-dynamodb";', /at run time/],
    ["dynamodb/a.ts", 'import "./b.js";', /a\.ts -> .*b\.ts -> /],
    ["holding/lease.ts", "export const t = Date.now();", /uses Date\.now: time enters/],
    ["holding/lease.ts", "export const t = new Date();", /uses new Date\(\)/],
    ["holding/lease.ts", "const t = globalThis.performance.now();", /uses performance\.now/],
    ["holding/lease.ts", "setTimeout(() => {}, 1);", /uses setTimeout/],
    ["holding/lease.ts", 'import { setTimeout as s } from "node:timers/promises";', /Clock alone/],
  ])("refuses in %s: %s", async (file, text, problem) => {
    expect((await check({ "dynamodb/a.ts": "", ...THERE, [file]: text })).join("\n")).toMatch(problem);
  });
});
