import { readFileSync, statSync } from "node:fs";
import { win32 } from "node:path";
import { EXIT, Failure } from "./failure.js";

/** What Windows starts without a shell. */
const PROGRAMS = [".com", ".exe"];

/** What a shell starts as well, where PATHEXT does not say. */
const SCRIPTS = ".COM;.EXE;.BAT;.CMD";

/** The script of Node's that npm's `.cmd` file starts. */
const STARTED_BY_NPM = /"%(?:~dp0|dp0%)\\([^"]+?\.[cm]?js)"/i;

/** What is asked of the system. */
export interface WindowsSystem {
  /** Its names have no case there. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly isFile: (path: string) => boolean;
  readonly read: (file: string) => string;
}

const SYSTEM: WindowsSystem = {
  env: process.env,
  isFile: (path) => {
    try {
      return statSync(path).isFile();
    } catch {
      return false; // also a folder of PATH that this user may not read
    }
  },
  read: (file) => readFileSync(file, "latin1"),
};

/**
 * Looks for a command as Windows does, before a lock is taken for it: in the current folder and those of PATH, for a `.com` or `.exe`.
 *
 * Other files of PATHEXT, such as npm's `.cmd`, run in a shell. They are refused: after a loss only that shell could be ended, and what it
 * has started would go on beside the next holder.
 *
 * @throws {@link Failure} with the exit code 126 or 127.
 */
export function findOnWindows(command: string, { env, isFile, read }: WindowsSystem = SYSTEM): void {
  const isPath = /[\\/:]/.test(command);
  const folders = isPath ? [""] : [".", ...(env.PATH ?? "").split(";")].filter(Boolean);
  const hasEnding = win32.extname(command) !== "";
  const files = (endings: readonly string[]) =>
    folders.flatMap((folder) => endings.map((ending) => win32.join(folder, `${command}${ending}`)));
  const isProgram = (file: string): boolean => PROGRAMS.includes(win32.extname(file).toLowerCase());
  const found = files(hasEnding ? ["", ...PROGRAMS] : PROGRAMS).find((file) => isProgram(file) && isFile(file));
  if (found !== undefined) return;
  const endings = (env.PATHEXT || SCRIPTS).split(";").map((ending) => ending.toLowerCase());
  for (const script of files(hasEnding ? [""] : endings)) {
    if (!isFile(script)) continue;
    const instead = insteadOf(script, () => read(script));
    throw new Failure(`${script} ${NEEDS_SHELL}: ${instead}`, EXIT.cannotExecute);
  }
  const remedy = isPath ? "correct its path" : "give its path, or correct PATH";
  throw new Failure(`${command} was not found: ${remedy}`, EXIT.notFound);
}

const NEEDS_SHELL = "runs in a shell, and after a loss of the lock only the shell could be ended";

/** What to start in the place of a script. */
function insteadOf(script: string, read: () => string): string {
  if (/\.(cmd|bat)$/i.test(script)) {
    const [, started] = STARTED_BY_NPM.exec(read()) ?? [];
    if (started === undefined) return "start the program that it starts";
    return `start what it starts: node ${win32.join(win32.dirname(script), started)}`;
  }
  return `start the program that runs ${win32.extname(script)} files, with this one as its argument`;
}
