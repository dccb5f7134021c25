import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { consumerFolder, PRELUDE } from "../support/consumer-folder.js";

const ROOT = process.cwd();

/** The files whose doc comments a caller's editor shows. */
const FILES =
  "lock-table table-locks mutex semaphore shared-mutex lock lockable sets/lock-set election errors testing/test-table testing/test-clock otel/index prom-client/index node-cron/index nestjs/tokens nestjs/held-lock nestjs/lock-module nestjs/decorators".split(
    " ",
  );

const IMPORTS = `import { findLockLost, type Lockable, LockTable } from "dynamutex";
import { instrumentLocks } from "dynamutex/otel";
import { runCoordinator } from "dynamutex/node-cron";
import { HeldLock, InjectLocks, Locked, LockModule, Once, OncePer, TryLocked } from "dynamutex/nestjs";
import { TestTable } from "dynamutex/testing";
import { GetItemCommand, TransactWriteItemsCommand } from "@aws-sdk/client-dynamodb";
import assert from "node:assert/strict";
void [assert, findLockLost, instrumentLocks, LockTable, TestTable, GetItemCommand, TransactWriteItemsCommand, undefined as Lockable | undefined];
`;

test("every example in the doc comments of what is public compiles", async () => {
  await using folder = await consumerFolder();
  const names: string[] = [];
  for (const file of FILES) {
    for (const [index, code] of examplesIn(await readFile(join(ROOT, "lib", `${file}.ts`), "utf8")).entries()) {
      const name = `${file.replaceAll("/", "-")}-${index}.ts`;
      names.push(name);
      await folder.write(name, `${IMPORTS}export async function example() {\n${code}\n}\n`);
    }
  }
  expect(names.length).toBeGreaterThan(29);
  expect(await folder.compile([...PRELUDE, ...names], { target: "es2022" })).toBe("");
});

function examplesIn(text: string): readonly string[] {
  const blocks = text.matchAll(/\* @example\n((?:[ ]*\*(?! @|\/).*\n)+)/g);
  return [...blocks].map(([, block = ""]) => block.replace(/^[ ]*\* ?/gm, "").trim());
}
