import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { EXIT } from "./exit-codes.js";
import { Failure } from "./failure.js";

/**
 * Checks that there is such a command before a lock is taken for it: a tick must not be used up by a spelling mistake.
 *
 * @throws {@link Failure} with the exit code 126 or 127.
 */
export function findCommand(command: string, path: string = process.env.PATH ?? ""): void {
  if (process.platform === "win32") return; // the system looks in more places, by rules of its own
  const files = command.includes("/") ? [command] : path.split(delimiter).map((folder) => join(folder || ".", command));
  const found = files.map(judge);
  if (found.includes("executable")) return;
  if (found.includes("forbidden")) {
    throw new Failure(`${command} cannot be executed: it is a folder, or chmod +x is missing`, EXIT.cannotExecute);
  }
  const remedy = command.includes("/") ? "correct its path" : "give its path, or correct PATH";
  throw new Failure(`${command} was not found: ${remedy}`, EXIT.notFound);
}

function judge(file: string): "executable" | "forbidden" | "missing" {
  try {
    if (!statSync(file).isFile()) return "forbidden";
  } catch {
    return "missing";
  }
  try {
    accessSync(file, constants.X_OK);
    return "executable";
  } catch {
    return "forbidden";
  }
}
