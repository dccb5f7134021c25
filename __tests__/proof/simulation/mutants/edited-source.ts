import { spawn } from "node:child_process";
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Defect } from "./defect.js";

/** The root of the repository, which is where the tests and `npm run` start programs. */
export const ROOT = process.cwd();
/** The folder of what is made of it with defects. */
export const MUTANTS = join(ROOT, "temp", "mutants");

/** The text of each file of lib/ that has been edited. */
export type Edited = ReadonlyMap<string, string>;

/** @throws unless each text that the defect replaces occurs exactly once: a defect that is not there proves nothing. */
export async function withDefect({ test, takesOut, ...files }: Defect, edited: Edited = new Map()): Promise<Edited> {
  const result = new Map(edited);
  for (const [file, edits] of Object.entries<Readonly<Record<string, string>>>(files)) {
    let source = result.get(file) ?? (await readFile(join(ROOT, "lib", file), "utf8"));
    for (const [text, replacement] of Object.entries(edits)) {
      const [before = "", after, ...more] = source.split(new RegExp(text.split(/\s+/).map(escaped).join("\\s+")));
      if (after === undefined || more.length > 0) throw new Error(`lib/${file} has not exactly one: ${text}`);
      source = before + replacement + after;
    }
    result.set(file, source);
  }
  return result;
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}

/** Writes lib/ with what was edited into a folder. */
export async function writeLibrary(edited: Edited, folder: string): Promise<void> {
  await cp(join(ROOT, "lib"), join(folder, "lib"), { recursive: true });
  for (const [file, text] of edited) await writeFile(join(folder, "lib", file), text);
}

/** Compiles all TypeScript below `src` in a folder, with the options of the tests, into the folder itself. @returns the errors. */
export async function compile(folder: string): Promise<string> {
  const config = {
    extends: join(ROOT, "tsconfig.json"),
    compilerOptions: { rootDir: "src", outDir: ".", noUnusedLocals: false, noUnusedParameters: false },
    include: ["src"],
    exclude: [],
  };
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify(config));
  const compiler = join(ROOT, "node_modules/typescript/bin/tsc");
  return (await run([compiler, "-p", folder, "--pretty", "false"])).output;
}

/** What became of a program: what it has written, to both streams, and its exit code; undefined if it did not end in its time. */
export interface Ran {
  readonly output: string;
  readonly code: number | undefined;
}

/** What ends the programs that run. */
const running = new Set<() => void>();

/** Ends all programs that run, with what they have started. */
export function endAll(): void {
  for (const end of running) end();
}

/** Runs a program of Node.js in a folder, the repository's root by default. @param mostMs for how long at most. */
export async function run(
  command: readonly string[],
  { cwd = ROOT, mostMs = 5 * 60_000 }: { readonly cwd?: string; readonly mostMs?: number } = {},
): Promise<Ran> {
  const child = spawn(process.execPath, command, {
    cwd,
    // The tests of the command run that of the mutant.
    env: { ...process.env, CLI_NOT_PACKED: "yes" },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  let output = "";
  let isEnded = false;
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
  const end = (): void => {
    isEnded = true;
    // What the program has started, such as an engine, ends with it. A program that has not started has no group.
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  };
  running.add(end);
  const timer = setTimeout(end, mostMs);
  try {
    const code = await new Promise<number>((resolve, reject) => child.on("error", reject).on("close", resolve));
    return { output, code: isEnded ? undefined : code };
  } finally {
    running.delete(end);
    clearTimeout(timer);
  }
}
