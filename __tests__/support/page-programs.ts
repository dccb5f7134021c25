/// <reference lib="esnext.disposable" preserve="true" />
import { expect } from "@jest/globals";
import { type ConsumerFolder, consumerEnv, consumerFolder } from "./consumer-folder.js";
import { blocksOf, pageAt } from "./pages.js";
import { RunningProgram } from "./running-program.js";
import { createTestTable } from "./table.js";

export interface PageProgramsOptions {
  /**
   * Their blocks below `<!-- file: worker.ts -->` are saved under this name. Several of one name are one file, as where a page says
   * what to add to a program of another.
   */
  readonly pages: readonly string[];
  /** The files that are meant. Default: all. */
  readonly only?: readonly string[];
  /** What the programs leave to the reader: modules that they import, by the file's name. */
  readonly given?: Readonly<Record<string, string>>;
}

/**
 * The programs of pages, as they stand there. Only the table has a name of its own: so the programs of one page, which is
 * also what two hosts have in common, share a table, and no others do.
 */
export class PagePrograms implements AsyncDisposable {
  readonly tableName: string;
  readonly #folder: ConsumerFolder;

  /** Use {@link pagePrograms}. */
  constructor(folder: ConsumerFolder, tableName: string) {
    this.#folder = folder;
    this.tableName = tableName;
  }

  /** Starts the program that its page has readers save as this file. */
  start(file: string, env: Readonly<Record<string, string | undefined>> = {}): RunningProgram {
    const path = file.replace(/ts$/, "js");
    return new RunningProgram(path, { cwd: this.#folder.path, env: { ...consumerEnv(), ...env } });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#folder[Symbol.asyncDispose]();
  }
}

/** Saves and compiles them, as a reader would. */
export async function pagePrograms({ pages, only, given = {} }: PageProgramsOptions): Promise<PagePrograms> {
  const folder = await consumerFolder();
  const tableName = await createTestTable();
  const files = new Map(Object.entries(given));
  for (const { files: named, text } of pages.flatMap((page) => blocksOf(pageAt(page)))) {
    const code = text.replaceAll('"locks"', `"${tableName}"`);
    for (const file of only === undefined ? named : named.filter((each) => only.includes(each))) {
      files.set(file, `${files.get(file) ?? ""}${code}`);
    }
  }
  for (const [file, text] of files) await folder.write(file, text);
  expect(await folder.compile([...files.keys()], { target: "es2022", outDir: folder.path })).toBe("");
  return new PagePrograms(folder, tableName);
}
