import { cp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Defect } from "./defect.js";
import { COMPILED, compile, ROOT, run, withDefect, writeLibrary } from "./edited-source.js";

/** What was found in a mutant. */
export interface Finding {
  /** The invariant of the simulation that did not hold, or undefined if nothing was found. */
  readonly invariant: string | undefined;
  /** After how many schedules. */
  readonly runs: number;
  /** The test that failed, where no schedule did. */
  readonly test?: string;
}

/** Compiles the library with a defect in it to a folder, beside a copy of the tests. */
export async function makeMutant(defect: Defect, folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await writeLibrary(await withDefect(defect), join(folder, "src"));
  const errors = await compile(folder);
  if (errors !== "") throw new Error(errors);
  await cp(join(COMPILED, "__tests__"), join(folder, "__tests__"), { recursive: true });
}

/** Explores the mutant in a process of its own, until something is found or for so many schedules. */
export async function hunt(folder: string, seed: number, runs: number): Promise<Finding> {
  const script = join(folder, "__tests__/proof/simulation/mutants/hunt.js");
  const { output, code } = await run([script, String(seed), String(runs)]);
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
  const tests = join(folder, "__tests__");
  const json = join(folder, "tests.json");
  const { code } = await run([
    ...["--disable-warning=ExperimentalWarning", "--disable-warning=DynamutexWarning", "--experimental-vm-modules"],
    ...[join(ROOT, "node_modules/jest/bin/jest.js"), "--roots", tests, "-w", "1", "--json", "--outputFile", json],
    // Tests that take their time are left out otherwise.
    ...(file.endsWith(".full") ? ["-c", join(ROOT, "jest.full.config.js")] : []),
    // A test that hangs has failed.
    ...["--testTimeout", "60000", "--runTestsByPath", join(tests, `${file}.test.js`)],
  ]);
  if (code === undefined) return "the tests do not end";
  const done = JSON.parse(await readFile(json, "utf8")) as TestRun;
  if (done.numRuntimeErrorTestSuites > 0 || done.numTotalTests === 0) throw new Error(`${file} did not run`);
  const results = done.testResults.flatMap(({ assertionResults }) => assertionResults);
  return results.find(({ status }) => status === "failed")?.fullName;
}
