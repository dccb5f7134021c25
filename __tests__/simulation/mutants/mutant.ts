import { spawn } from "node:child_process";
import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Patch } from "./patch.js";

/** The folder that the compiler wrote to: lib and __tests__ stand in it. */
export const COMPILED = fileURLToPath(new URL("../../..", import.meta.url));

/** What the simulation found in a mutant. */
export interface Finding {
  /** The invariant that did not hold, or undefined if nothing was found. */
  readonly invariant: string | undefined;
  /** After how many schedules. */
  readonly runs: number;
  /** The test that found it, where no schedule did. */
  readonly test?: string;
}

/** Copies the library and its simulation to a folder of their own, with the defect in it. */
export async function makeMutant(name: string, patches: readonly Patch[], folder: string): Promise<void> {
  const support = ["message-store.js", "seeded-random.js", "tokens.js"].map((file) => `__tests__/support/${file}`);
  for (const part of ["lib", "__tests__/simulation", ...support]) {
    await cp(join(COMPILED, part), join(folder, part), { recursive: true });
  }
  for (const patch of patches) {
    const file = join(folder, patch.file);
    await writeFile(file, patched(await readFile(file, "utf8"), patch, name));
  }
}

/** @throws unless the pattern matches exactly as often as stated: a defect that is not there proves nothing. */
function patched(text: string, { file, find, replace, matches }: Patch, defect: string): string {
  const found = [...text.matchAll(find)].length;
  if (found !== matches) {
    throw new Error(
      `"${defect}": ${find} occurs ${found} times in ${file}, not ${matches}. Adapt it in __tests__/simulation/mutants`,
    );
  }
  return text.replace(find, replace);
}

/** Explores the mutant in a process of its own, until something is found or for so many schedules. */
export async function hunt(folder: string, seed: number, runs: number): Promise<Finding> {
  const script = join(folder, "__tests__/simulation/mutants/hunt.js");
  const child = spawn(process.execPath, [script, String(seed), String(runs)], { stdio: ["ignore", "pipe", "pipe"] });
  let [output, errors] = ["", ""];
  child.stdout.on("data", (chunk) => {
    output += chunk;
  });
  child.stderr.on("data", (chunk) => {
    errors += chunk;
  });
  const code = await new Promise((resolve) => child.on("close", resolve));
  const last = output.trim().split("\n").at(-1) ?? "";
  if (code !== 0 || !last.startsWith("{")) throw new Error(`the hunt ended with ${code}: ${errors}${output}`);
  return JSON.parse(last) as Finding;
}
