#!/usr/bin/env node
import { readFileSync } from "node:fs";
import { type Command, CommanderError } from "commander";
import { complaintOf } from "./complaint.js";
import { EXIT } from "./exit-codes.js";
import { Failure } from "./failure.js";
import { complain, print } from "./output.js";
import { programWith } from "./program.js";

/** Runs a command line. @returns the exit code. */
async function main(argv: readonly string[]): Promise<number> {
  let exitCode: number = EXIT.done;
  const program = programWith((code) => {
    exitCode = code;
  });
  for (const command of [program, ...program.commands]) quiet(command);
  program.on("option:version", () => {
    print(`${JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")).version}\n`);
    throw new CommanderError(EXIT.done, "version", "");
  });
  try {
    await program.parseAsync(argv, { from: "user" });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return usage(error, argv[0]);
    if (process.env.DEBUG && error instanceof Error) console.error(error);
    complain(complaintOf(error));
    return error instanceof Failure ? error.exitCode : EXIT.failed;
  }
}

/** Errors are thrown, and written here alone. */
function quiet(command: Command): void {
  command.exitOverride().configureOutput({ writeOut: print, outputError: () => undefined });
}

function usage({ exitCode, code, message }: CommanderError, command: string | undefined): number {
  if (exitCode === EXIT.done) return EXIT.done;
  if (code === "commander.help") return EXIT.failed; // no command: the help was shown
  const dashes =
    command === "run" && code === "commander.unknownOption" ? "; put -- before the command that is run" : "";
  complain(`${message.replace(/^error: /, "")}${dashes}`);
  return EXIT.failed;
}

process.exitCode = await main(process.argv.slice(2));
