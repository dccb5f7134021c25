import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "@jest/globals";

const ROOT = process.cwd();

/** The files whose doc comments a caller's editor shows. */
const FILES = "lock-table mutex semaphore shared-mutex lock lockable lock-set errors".split(" ");

/** What is not declared in an example is a caller's own. */
const PRELUDE = `
import type { DynamoDBClient, TransactWriteItem } from "@aws-sdk/client-dynamodb";
import type * as D from "dynamutex";
declare global {
  const locks: D.LockTable;
  const mutex: D.Mutex;
  const semaphore: D.Semaphore;
  const catalogue: D.SharedMutex;
  const lock: D.TransferableLock;
  const token: string;
  const message: string;
  const client: DynamoDBClient;
  const debit: TransactWriteItem;
  const credit: TransactWriteItem;
  const TableName: string;
  const Key: Record<string, { S: string }>;
  const documentClient: any, TransactWriteCommand: any, queue: any, server: any, order: any, customer: any;
  function charge(...args: unknown[]): Promise<void>;
  function work(...args: unknown[]): Promise<void>;
  function callApi(...args: unknown[]): Promise<void>;
  function respond(status: number): void;
  function refresh(): Promise<void>;
  function fetchCustomer(...args: unknown[]): Promise<unknown>;
  function buildReport(...args: unknown[]): Promise<void>;
  function sendInvoices(...args: unknown[]): Promise<void>;
  function sendReport(...args: unknown[]): Promise<void>;
  function transfer(...args: unknown[]): Promise<void>;
  function ship(...args: unknown[]): Promise<void>;
  function readAll(...args: unknown[]): Promise<void>;
  function rebuild(...args: unknown[]): Promise<void>;
  function compute(...args: unknown[]): any;
}
`;

const IMPORTS = `import { findLockLost, type Lockable, LockTable } from "dynamutex";
import { GetItemCommand, TransactWriteItemsCommand } from "@aws-sdk/client-dynamodb";
void [findLockLost, LockTable, GetItemCommand, TransactWriteItemsCommand, undefined as Lockable | undefined];
`;

test("every example in the doc comments of what is public compiles", async () => {
  const folder = await mkdtemp(join(tmpdir(), "dynamutex-examples-"));
  try {
    await mkdir(join(folder, "node_modules", "@aws-sdk"), { recursive: true });
    await symlink(ROOT, join(folder, "node_modules", "dynamutex"), "junction");
    for (const name of ["@types", "@aws-sdk/client-dynamodb"]) {
      await symlink(join(ROOT, "node_modules", name), join(folder, "node_modules", name), "junction");
    }
    await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module", private: true }));
    await writeFile(join(folder, "prelude.d.ts"), PRELUDE);
    const names = ["prelude.d.ts"];
    for (const file of FILES) {
      for (const [index, code] of examplesIn(await readFile(join(ROOT, "lib", `${file}.ts`), "utf8")).entries()) {
        names.push(`${file}-${index}.ts`);
        await writeFile(
          join(folder, `${file}-${index}.ts`),
          `${IMPORTS}export async function example() {\n${code}\n}\n`,
        );
      }
    }
    expect(names.length).toBeGreaterThan(30);
    const tsc = join(ROOT, "node_modules", "typescript", "bin", "tsc");
    const options = ["--noEmit", "--target", "es2022", "--lib", "es2023,esnext.disposable", "--module", "nodenext"];
    const told = await promisify(execFile)(
      process.execPath,
      [tsc, ...options, "--strict", "--types", "node", ...names],
      {
        cwd: folder,
      },
    ).catch((error: { stdout: string }) => error);
    expect(told.stdout).toBe("");
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

function examplesIn(text: string): readonly string[] {
  const blocks = text.matchAll(/\* @example\n((?:[ ]*\*(?! @|\/).*\n)+)/g);
  return [...blocks].map(([, block = ""]) => block.replace(/^[ ]*\* ?/gm, "").trim());
}
