import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";

const SCRIPT = join(process.cwd(), ".ci", "import-direction.js");

describe("the check of imports", () => {
  let lib: string;
  beforeEach(async () => {
    lib = await mkdtemp(join(tmpdir(), "dynamutex-lib-"));
  });
  afterEach(() => rm(lib, { recursive: true, force: true }));

  async function check(files: Record<string, string>): Promise<{ ok: boolean; problems: string[] }> {
    for (const [file, text] of Object.entries(files)) {
      await mkdir(dirname(join(lib, file)), { recursive: true });
      await writeFile(join(lib, file), text);
    }
    const { status, stderr } = spawnSync(process.execPath, [SCRIPT, lib], { encoding: "utf8" });
    return { ok: status === 0, problems: stderr.split("\n").filter(Boolean) };
  }

  it("accepts imports that point downward", async () => {
    const outcome = await check({
      "index.ts": 'export { LockTable } from "./lock-table.js";',
      "lock-table.ts": 'import { send } from "./dynamodb/send.js"; export class LockTable { send = send; }',
      "dynamodb/send.ts":
        'import { now } from "../clock.ts"; import "@aws-sdk/client-dynamodb"; export const send = now;',
      "lock.ts":
        'import type { TransactWriteItem } from "@aws-sdk/client-dynamodb"; export type X = TransactWriteItem;',
      "clock.ts": "export const now = () => Date.now(); setTimeout(now, 1);",
      "errors.ts": 'export const at = new Date(0), parsed = Date.parse("");',
    });
    expect(outcome).toEqual({ ok: true, problems: [] });
  });

  it.each<[string, Record<string, string>, RegExp]>([
    [
      "an import that points up",
      { "held-lock.ts": "", "row.ts": 'import "./held-lock.js";' },
      /^lib\/row\.ts:1: .*above it/,
    ],
    ["a dynamic import that points up", { "held-lock.ts": "", "row.ts": 'import("./held-lock.js");' }, /above it/],
    [
      "a re-export that points up",
      { "held-lock.ts": "", "row.ts": '\nexport * from "./held-lock.js";' },
      /^lib\/row\.ts:2: /,
    ],
    [
      "an import type that points up",
      { "held-lock.ts": "", "row.ts": 'type L = import("./held-lock.js").L;' },
      /above it/,
    ],
    ["an unknown file", { "novel.ts": "" }, /^lib\/novel\.ts: not in the list of layers: add it to LAYERS/],
    [
      "an import of dynamodb/",
      { "acquire.ts": 'import "./dynamodb/a.js";', "dynamodb/a.ts": "" },
      /only lib\/index\.ts/,
    ],
    ["AWS outside of dynamodb/", { "lock.ts": 'import { A } from "@aws-sdk/client-dynamodb";' }, /at run time/],
    ["AWS types far down", { "row.ts": 'import type { A } from "@aws-sdk/client-dynamodb";' }, /imports types from/],
    ["a circle", { "dynamodb/a.ts": 'import "./b.js";', "dynamodb/b.ts": 'import "./a.js";' }, /a\.ts -> .*b\.ts -> /],
    ["Date.now", { "lease.ts": "export const t = Date.now();" }, /uses Date\.now: time enters/],
    ["new Date()", { "lease.ts": "export const t = new Date();" }, /uses new Date\(\)/],
    ["performance.now", { "lease.ts": "const t = globalThis.performance.now();" }, /uses performance\.now/],
    ["setTimeout", { "lease.ts": "setTimeout(() => {}, 1);" }, /uses setTimeout/],
    ["node:timers/promises", { "lease.ts": 'import { setTimeout as s } from "node:timers/promises";' }, /Clock alone/],
  ])("refuses %s", async (_, files, problem) => {
    const outcome = await check(files);
    expect(outcome.ok).toBe(false);
    expect(outcome.problems.join("\n")).toMatch(problem);
  });
});
