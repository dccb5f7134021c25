#!/usr/bin/env node
import { readFileSync } from "node:fs";
import { inspect } from "node:util";
import { CommanderError } from "commander";
import { complaintOf, EXIT, Failure } from "./failure.js";
import { complain, print, printable } from "./output.js";
import { programWith } from "./program.js";

/** Runs a command line, and sets the exit code. */
async function main(argv: readonly string[]): Promise<void> {
  const [own, command] = argv[0] === "run" ? atSeparator(argv) : [argv];
  const program = programWith(command);
  program.on("option:version", () => {
    print(`${JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")).version}\n`);
    throw new CommanderError(EXIT.done, "version", "");
  });
  try {
    await program.parseAsync(own, { from: "user" });
  } catch (error) {
    if (error instanceof CommanderError) {
      process.exitCode = usage(error, remedyFor(error, argv[0], command));
      return;
    }
    if (process.env.DEBUG && error instanceof Error) console.error(inspect(error).replace(/[^\n]+/g, printable));
    complain(complaintOf(error));
    process.exitCode = error instanceof Failure ? error.exitCode : EXIT.failed;
  }
}

/** The command that `run` runs is behind the first `--`: the parser does not see it, whatever stands before it. */
function atSeparator(argv: readonly string[]): readonly [readonly string[], (readonly string[])?] {
  const at = argv.indexOf("--");
  return at < 0 ? [argv] : [argv.slice(0, at), argv.slice(at + 1)];
}

/** What to do about arguments of `run` that do not come to one name and a command. */
function remedyFor({ code }: CommanderError, name: string | undefined, command: readonly string[] | undefined): string {
  const isOfOperands = /\.(missingArgument|excessArguments|unknownOption|optionMissingArgument)$/.test(code);
  if (name !== "run" || !isOfOperands) return "";
  return command === undefined
    ? "; put -- before the command that is run"
    : ": give exactly one NAME before --, in quotes if it is a variable, and none that begins with -";
}

function usage({ exitCode, code, message }: CommanderError, remedy: string): number {
  if (exitCode === EXIT.done) return EXIT.done;
  if (code === "commander.help") return EXIT.failed; // no command: the help was shown
  complain(`${message.replace(/^error: /, "")}${remedy}`);
  return EXIT.failed;
}

await main(process.argv.slice(2));
