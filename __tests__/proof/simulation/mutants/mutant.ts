import { existsSync } from "node:fs";
import { cp, mkdir, readFile, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import type { Defect } from "./defect.js";
import { ROOT, run, withDefect, writeLibrary } from "./edited-source.js";

/** What was found in a mutant. */
export interface Finding {
  /** The invariant of the simulation that did not hold, or undefined if nothing was found. */
  readonly invariant: string | undefined;
  /** After how many schedules. */
  readonly runs: number;
  /** The test that failed, where no schedule did. */
  readonly test?: string;
}

/** What the tests need of the repository, besides lib/ and what is installed. */
const COPIED = ["__tests__", "examples", "bench", "docs", ".ci", "jest.config.js", "package.json", "README.md", "dist"];

/** Makes a copy of the repository whose library has a defect. */
export async function makeMutant(defect: Defect, folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const edited = await withDefect(defect);
  const filter = (path: string): boolean => !path.endsWith("/node_modules");
  for (const name of COPIED.filter((one) => existsSync(join(ROOT, one)))) {
    await cp(join(ROOT, name), join(folder, name), { recursive: true, filter, force: true });
  }
  await writeLibrary(edited, folder);
  await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"), "junction");
  const { output, code } = await run([join(folder, ".ci/transpile.js")], { cwd: folder });
  if (code !== 0) throw new Error(output);
}

/** Explores the mutant in a process of its own, until something is found or for so many schedules. */
export async function hunt(folder: string, seed: number, runs: number): Promise<Finding> {
  const script = join(folder, ".jest/__tests__/proof/simulation/mutants/hunt.js");
  const { output, code } = await run([script, String(seed), String(runs)], { cwd: folder });
  if (code === undefined) return { invariant: "every schedule ends", runs };
  const finding = output
    .trim()
    .split("\n")
    .findLast((line) => line.startsWith('{"'));
  if (code !== 0 || finding === undefined) throw new Error(`the hunt ended with ${code}: ${output}`);
  return JSON.parse(finding) as Finding;
}

/** What `jest --json` says of a run, as far as it matters here. */
interface TestRun {
  readonly numRuntimeErrorTestSuites: number;
  readonly numTotalTests: number;
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

/**
 * Runs a file of tests on the mutant.
 * @returns the first test that fails; undefined if none does.
 * @throws if the tests did not run, which proves nothing.
 */
export async function failureIn(file: string, folder: string): Promise<string | undefined> {
  const json = join(folder, "tests.json");
  const command = [
    ...["--disable-warning=ExperimentalWarning", "--disable-warning=DynamutexWarning", "--experimental-vm-modules"],
    ...["node_modules/jest/bin/jest.js", "-w", "1", "--json", "--outputFile", json],
    // A test that hangs has failed.
    ...["--testTimeout", "60000", "--runTestsByPath", `__tests__/${file}.test.ts`],
  ];
  const { code } = await run(command, { cwd: folder });
  if (code === undefined) return "the tests do not end";
  const done = JSON.parse(await readFile(json, "utf8")) as TestRun;
  if (done.numRuntimeErrorTestSuites > 0 || done.numTotalTests === 0) throw new Error(`${file} did not run`);
  const results = done.testResults.flatMap(({ assertionResults }) => assertionResults);
  return results.find(({ status }) => status === "failed")?.fullName;
}
