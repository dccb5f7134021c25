import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type * as TypeScript from "typescript-5.9";

const ROOT = process.cwd();

/** The last major version of the compiler that is also an editor's service. It is CommonJS, without names for an import. */
const { default: ts } = (await import("typescript-5.9")) as unknown as { readonly default: typeof TypeScript };

let folder: string;
let entries: readonly { readonly name: string; readonly file: string }[];

beforeAll(async () => {
  ({ MODULES: entries } = await import(pathToFileURL(join(ROOT, ".ci", "entries.js")).href));
  folder = await mkdtemp(join(tmpdir(), "dynamutex-hovers-"));
  const modules = join(folder, "node_modules");
  await mkdir(modules);
  await symlink(ROOT, join(modules, "dynamutex"), "junction");
  for (const name of ["@aws-sdk", "@nestjs", "@types", "rxjs", "reflect-metadata", "prom-client"]) {
    await symlink(join(ROOT, "node_modules", name), join(modules, name), "junction");
  }
});

afterAll(async () => await rm(folder, { recursive: true }));

/** An editor's service for one file. */
async function editorFor(file: string, text: string): Promise<(at: number) => string> {
  const path = join(folder, file);
  await writeFile(path, text);
  const { sys } = ts;
  const service = ts.createLanguageService({
    getScriptFileNames: () => [path],
    getScriptVersion: () => "1",
    getScriptSnapshot: (each) =>
      existsSync(each) ? ts.ScriptSnapshot.fromString(readFileSync(each, "utf8")) : undefined,
    getCurrentDirectory: () => folder,
    getCompilationSettings: () => ({ module: ts.ModuleKind.NodeNext, skipLibCheck: true, types: [] }),
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    fileExists: sys.fileExists,
    readFile: sys.readFile,
    directoryExists: sys.directoryExists,
    getDirectories: sys.getDirectories,
  });
  const messages = service.getSemanticDiagnostics(path).map(({ messageText }) => messageText);
  expect(messages).toEqual([]);
  return (at) => ts.displayPartsToString(service.getQuickInfoAtPosition(path, at)?.documentation);
}

/** The names that an entry point exports, which have a value. */
function namesOf(file: string): readonly string[] {
  const text = readFileSync(join(ROOT, "dist", `${file}.mjs`), "utf8");
  return /\{ (.*) \}/.exec(text)?.[1]?.split(", ") ?? [];
}

/** A link to a member of a class is spelt in two ways, by how its name was found. */
const beginning = (text: string): string => text.replace(/\s+\}/g, "}").slice(0, 60);

describe("an editor shows what a name is for, as much where it is imported by CommonJS as by a module:", () => {
  test("every name of every entry point", async () => {
    for (const { name, file } of entries) {
      const from = `dynamutex${name.slice(1)}`;
      const names = namesOf(file);
      expect(names.length).toBeGreaterThan(0);
      const text = `import { ${names.join(", ")} } from "${from}";\nexport const all = [${names.join(", ")}];\n`;
      const places = names.map((each) => text.search(new RegExp(`(?<=\\[.*)\\b${each}\\b`)));
      const [module, commonJs] = await Promise.all(
        ["mts", "cts"].map(async (ending) => {
          const hover = await editorFor(`${file.replace("/", "-")}.${ending}`, text);
          return places.map((at, index) => `${names[index]}: ${beginning(hover(at))}`);
        }),
      );
      expect(commonJs).toEqual(module);
      expect(module?.filter((line) => line.endsWith(": "))).toEqual([]);
    }
  });

  test("`new` of a class has the text of the class, and a type that of its class", async () => {
    const text = [
      'import { LockTable, LockTimeoutError } from "dynamutex";',
      'import { TestTable } from "dynamutex/testing";',
      'export const locks = new LockTable({ tableName: "locks" });',
      "export const table = new TestTable();",
      "export function late(error: LockTimeoutError): LockTable { throw error; }",
    ].join("\n");
    for (const ending of ["mts", "cts"]) {
      const hover = await editorFor(`news.${ending}`, text);
      const told = ["new LockTable", "new TestTable", "error: LockTimeoutError", "): LockTable"].map((place) =>
        beginning(hover(text.indexOf(place) + place.lastIndexOf(" ") + 1)),
      );
      expect(told).toEqual([
        expect.stringMatching(/^The locks of one DynamoDB table/),
        expect.stringMatching(/^A (DynamoDB )?table in memory/),
        expect.stringMatching(/^The wait ended before the lock was free/),
        expect.stringMatching(/^The locks of one DynamoDB table/),
      ]);
    }
  });
});

test("no text of a declaration begins with what it is the same as, which an editor does not show", () => {
  const files = readdirSync(join(ROOT, "dist"), { recursive: true, encoding: "utf8" }).filter((file) =>
    /\.d\.c?ts$/.test(file),
  );
  expect(files.length).toBeGreaterThan(10);
  const told = files.flatMap((file) =>
    [...readFileSync(join(ROOT, "dist", file), "utf8").matchAll(/\/\*\*[\s*]+(?:The same|As above|Likewise)\b.*/g)].map(
      ([text]) => `${file}: ${text}`,
    ),
  );
  expect(told).toEqual([]);
});
