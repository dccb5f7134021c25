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
        'import { now } from "../time/clock.ts"; import "@aws-sdk/client-dynamodb"; export const send = now;',
      "lock.ts":
        'import type { TransactWriteItem } from "@aws-sdk/client-dynamodb"; export type X = TransactWriteItem;',
      "time/clock.ts": "export const now = () => Date.now(); setTimeout(now, 1);",
      "errors.ts": 'export const at = new Date(0), parsed = Date.parse("");',
    });
    expect(outcome).toEqual({ ok: true, problems: [] });
  });

  it.each<[string, Record<string, string>, RegExp]>([
    [
      "an import that points up",
      { "holding/handle.ts": "", "protocol/row.ts": 'import "../holding/handle.js";' },
      /^lib\/protocol\/row\.ts:1: .*above it/,
    ],
    [
      "a dynamic import that points up",
      { "holding/handle.ts": "", "protocol/row.ts": 'import("../holding/handle.js");' },
      /above it/,
    ],
    [
      "a re-export that points up",
      { "holding/handle.ts": "", "protocol/row.ts": '\nexport * from "../holding/handle.js";' },
      /^lib\/protocol\/row\.ts:2: /,
    ],
    [
      "an import type that points up",
      { "holding/handle.ts": "", "protocol/row.ts": 'type L = import("../holding/handle.js").L;' },
      /above it/,
    ],
    ["an unknown file", { "novel.ts": "" }, /^lib\/novel\.ts: not in the list of layers: add it to LAYERS/],
    [
      "an import of dynamodb/",
      { "taking/claim.ts": 'import "../dynamodb/a.js";', "dynamodb/a.ts": "" },
      /only lib\/lock-table\.ts, lib\/testing\/ may import/,
    ],
    [
      "an import of protocol/ from outside of it",
      { "protocol/row.ts": 'import "../errors.js";', "errors.ts": "" },
      /lib\/protocol\/ may import only/,
    ],
    [
      "an import of more than the public names by the command",
      { "cli/run.ts": 'await import("../mutex.js");', "mutex.ts": "" },
      /lib\/cli\/ may import only lib\/cli\/, lib\/index\.ts/,
    ],
    ["AWS outside of dynamodb/", { "lock.ts": 'import { A } from "@aws-sdk/client-dynamodb";' }, /at run time/],
    [
      "AWS types far down",
      { "protocol/row.ts": 'import type { A } from "@aws-sdk/client-dynamodb";' },
      /imports types from/,
    ],
    ["a circle", { "dynamodb/a.ts": 'import "./b.js";', "dynamodb/b.ts": 'import "./a.js";' }, /a\.ts -> .*b\.ts -> /],
    ["Date.now", { "holding/lease.ts": "export const t = Date.now();" }, /uses Date\.now: time enters/],
    ["new Date()", { "holding/lease.ts": "export const t = new Date();" }, /uses new Date\(\)/],
    ["performance.now", { "holding/lease.ts": "const t = globalThis.performance.now();" }, /uses performance\.now/],
    ["setTimeout", { "holding/lease.ts": "setTimeout(() => {}, 1);" }, /uses setTimeout/],
    [
      "node:timers/promises",
      { "holding/lease.ts": 'import { setTimeout as s } from "node:timers/promises";' },
      /Clock alone/,
    ],
  ])("refuses %s", async (_, files, problem) => {
    const outcome = await check(files);
    expect(outcome.ok).toBe(false);
    expect(outcome.problems.join("\n")).toMatch(problem);
  });
});
