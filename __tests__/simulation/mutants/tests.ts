import { spawn } from "node:child_process";
import { cp, readFile } from "node:fs/promises";
import { join } from "node:path";
import { COMPILED } from "./mutant.js";

/** Defects that no schedule meets, or too few, and the file of `__tests__/` whose tests notice them. */
export const TESTS: Readonly<Record<string, string>> = {
  "a renewal may leave the row as it was": "store-contract",
  "an attempt may wait until a lease ends": "last-second",
  "a pause may be longer than what is left of a lease": "last-second",
  "a look waits until the one before is answered": "single-flight",
  "a call waits for a read of the time however long that takes": "known-time",
  "a waiter is judged by what is known when the reply comes": "fair/queue",
  "a look serves those who ask while it is under way": "fair/shared-places",
  "a claim relies on a place that is not there": "fair/queue",
  "a reader judges a writer by what is known when the reply comes": "shared-mutexes/shared",
  "a renewal mends the lapse of a writer that waits": "shared-mutexes/exclusive",
  "sections join others although a writer was seen": "shared-mutexes/shared",
  "a late copy of the take is handed off once more": "hand-off/hand-off",
  "what an abandoned resumption takes is not given back": "hand-off/hand-off",
  "a stamp that lies too late is trusted for as long as it says": "loss",
  "a waiter that was renewed in between is swept": "store-contract-removals",
  "the lease goes on after a look that may be stale": "fair/shared-places",
  "a page of the queue counts as the whole of it": "fair/shared-places",
  "a place serves all who have asked by the time that its row is there": "fair/shared-places",
  "what falls due in a suspend waits for its timer": "agenda",
  "a mark does not say how long its writer needs": "far-waiters",
  "a process stands back for two of its own longest polls, whatever a waiter needs": "far-waiters",
  "a smaller need is written over a larger one": "far-waiters",
  "a waiter that needs longer counts on the mark of another": "far-waiters",
  "a set watches each row that has refused it, one after the other": "lock-set/free-rows",
  "a set is asked for again as soon as the row that it watches is free": "lock-set/free-rows",
  "a set forgets which rows have refused it before": "lock-set/free-rows",
  "a renewal leaves before one whose lease ends first": "scheduler",
};

const ROOT = join(COMPILED, "..");
const JEST = [
  ...["--disable-warning=ExperimentalWarning", "--disable-warning=DynamutexWarning", "--experimental-vm-modules"],
  join(ROOT, "node_modules/jest/bin/jest.js"),
];

/** What `jest --json` says of a run, as far as it matters here. */
interface Run {
  readonly numRuntimeErrorTestSuites: number;
  readonly numTotalTests: number;
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

/**
 * Runs such a file on a mutant.
 * @returns the first test that fails; undefined if none does.
 * @throws if the tests did not run, which proves nothing.
 */
export async function failureIn(file: string, folder: string): Promise<string | undefined> {
  const tests = join(folder, "__tests__");
  await cp(join(COMPILED, "__tests__"), tests, { recursive: true, force: false });
  const output = join(folder, `${file.replace("/", "-")}.json`);
  const how = ["--roots", tests, "-w", "1", "--json", "--outputFile", output];
  const which = ["--runTestsByPath", join(tests, `${file}.test.js`)];
  const child = spawn(process.execPath, [...JEST, ...how, ...which], { cwd: ROOT, stdio: "ignore" });
  await new Promise((resolve) => child.on("close", resolve));
  const run = JSON.parse(await readFile(output, "utf8")) as Run;
  if (run.numRuntimeErrorTestSuites > 0 || run.numTotalTests === 0) throw new Error(`${file} did not run`);
  const results = run.testResults.flatMap(({ assertionResults }) => assertionResults);
  return results.find(({ status }) => status === "failed")?.fullName;
}
