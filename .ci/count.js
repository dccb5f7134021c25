// Prints the numbers of the test runs whose results (`jest --json --outputFile`) lie in a folder.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const [folder] = process.argv.slice(2);
let passed = 0;
let failed = 0;
for (const file of readdirSync(folder)) {
  const run = JSON.parse(readFileSync(join(folder, file), "utf8"));
  passed += run.numPassedTests;
  failed += run.numFailedTests + run.numRuntimeErrorTestSuites; // a file that does not load has no tests to fail
}
console.log(`${passed} passed, ${failed} failed`);
if (passed === 0 || failed > 0) process.exitCode = 1;
