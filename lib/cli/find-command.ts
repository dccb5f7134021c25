import { accessSync, constants, statSync } from "node:fs";
import { open } from "node:fs/promises";
import { basename, delimiter, join } from "node:path";
import { EXIT, Failure } from "./failure.js";
import { findOnWindows } from "./find-on-windows.js";

/** What the kernel reads of a script to find its interpreter. */
const FIRST_LINE_BYTES = 256;

/** Where the system looks for a command if PATH is not set. */
const DEFAULT_PATH = "/bin:/usr/bin";

/** How many scripts the kernel follows whose interpreter is a script again. */
const MOST_INTERPRETERS = 4;

/**
 * Checks that a command can be executed before a lock is taken for it: a tick must not be used up by a spelling mistake.
 * For a script, that includes the interpreter in its first line, and what `#!/usr/bin/env` looks for.
 *
 * @throws {@link Failure} with the exit code 126 or 127.
 */
export async function findCommand(command: string): Promise<void> {
  if (process.platform === "win32") return findOnWindows(command);
  const remedy = command.includes("/") ? "correct its path" : "give its path, or correct PATH";
  let file = located(command, remedy);
  for (let depth = 0; depth < MOST_INTERPRETERS; depth++) {
    const [, interpreter, argument = ""] = /^#![ \t]*([^ \t\n]+)[ \t]*(.*)/.exec(await beginningOf(file)) ?? [];
    if (interpreter === undefined) return;
    const fix = interpreter.endsWith("\r")
      ? `${file} ends its lines with \r, as on Windows: save it with the line ends of Unix`
      : `it is the interpreter of ${file}: install it, or correct the first line of the script`;
    const program = basename(interpreter) === "env" ? soughtByEnv(argument) : undefined;
    // The kernel does not look for an interpreter in PATH.
    file = located(interpreter.includes("/") ? interpreter : `./${interpreter}`, fix);
    if (program !== undefined) file = located(program, fix);
  }
}

/** The program that `env` executes; undefined if its options say more than that. */
function soughtByEnv(argument: string): string | undefined {
  const split = /^-S[ \t]*(.*)/.exec(argument)?.[1]?.split(/[ \t]+/);
  const program = split === undefined ? argument : split.find((word) => !word.includes("="));
  return program === undefined || /^-|^$|[\\"'$]/.test(program) ? undefined : program;
}

/** @returns the file that is executed. */
function located(command: string, remedy: string): string {
  const folders = (process.env.PATH ?? DEFAULT_PATH).split(delimiter);
  const files = command.includes("/") ? [command] : folders.map((folder) => join(folder || ".", command));
  let isForbidden = false;
  for (const file of files) {
    try {
      accessSync(file, constants.X_OK);
      if (statSync(file).isFile()) return file;
      isForbidden = true;
    } catch (error) {
      isForbidden ||= (error as NodeJS.ErrnoException).code === "EACCES";
    }
  }
  if (!isForbidden) throw new Failure(`${command} was not found: ${remedy}`, EXIT.notFound);
  throw new Failure(`${command} cannot be executed: it is a folder, or chmod +x is missing`, EXIT.cannotExecute);
}

/** Nothing if it cannot be read: a program may be executed all the same. */
async function beginningOf(file: string): Promise<string> {
  try {
    await using handle = await open(file);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(FIRST_LINE_BYTES));
    return buffer.toString("utf8", 0, bytesRead);
  } catch {
    return "";
  }
}
