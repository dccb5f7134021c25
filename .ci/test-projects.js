/**
 * Which tests run together: `memory` needs no Java and no build, `engine` has what talks to DynamoDB Local or starts processes,
 * and `full` what takes its time. Nobody lists them: a test is `engine` if it, or what it imports, imports one of ON_THE_ENGINE.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

const ROOT = join(import.meta.dirname, "..");
const TESTS = join(ROOT, "__tests__");
const ON_THE_ENGINE = ["endpoint.ts", "compiled.ts", "consumer-folder.ts"].map((file) => join(TESTS, "support", file));

/** @returns the test files of each project, relative to the root. */
export function testProjects() {
  const projects = { memory: [], engine: [], full: [] };
  const reached = new Map(ON_THE_ENGINE.map((path) => [path, true]));
  for (const path of testsIn(TESTS)) {
    const project = path.endsWith(".full.test.ts") ? "full" : reachesEngine(path, reached) ? "engine" : "memory";
    projects[project].push(relative(ROOT, path));
  }
  return projects;
}

function reachesEngine(path, reached) {
  const known = reached.get(path);
  if (known !== undefined) return known;
  reached.set(path, false); // for circles
  const imports = [...readFileSync(path, "utf8").matchAll(/^(?:import|export|\}).* from "(\.{1,2}\/[^"]+)\.js"/gm)];
  const found = imports
    .map(([, specifier]) => `${join(dirname(path), specifier)}.ts`)
    .filter((file) => file.startsWith(TESTS) && existsSync(file))
    .some((file) => reachesEngine(file, reached));
  reached.set(path, found);
  return found;
}

function testsIn(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === "node_modules" ? [] : testsIn(path);
    return entry.name.endsWith(".test.ts") ? [path] : [];
  });
}
