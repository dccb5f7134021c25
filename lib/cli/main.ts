#!/usr/bin/env node
import { readFileSync } from "node:fs";
import { inspect } from "node:util";
import { CommanderError } from "commander";
import { complaintOf, EXIT, Failure } from "./failure.js";
import { complain, mention, print, printable } from "./output.js";
import { programWith } from "./program.js";

// What the library warns of is one line as well, without the number of the process.
process.removeAllListeners("warning");
process.on("warning", ({ message }) => mention(message));

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
      process.exitCode = error.exitCode === EXIT.done ? EXIT.done : EXIT.failed;
      // Without a command, the help was shown.
      if (error.exitCode !== EXIT.done && error.code !== "commander.help") complain(lineOf(error, argv, command));
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

const ONE_NAME = "give exactly one NAME before --, in quotes if it is a variable, and none that begins with -";

/** One line on arguments that do not come to a command, one name and what `run` runs: what is wrong, and what to do. */
function lineOf({ code, message }: CommanderError, argv: readonly string[], command?: readonly string[]): string {
  const [first = ""] = argv;
  const [said = "", guess] = message.replace(/^error: |\.$/g, "").split("\n");
  // The parser would guess `unlock`.
  if (code === "commander.unknownCommand" && /^(locks|list)$/.test(first)) return `${said} (Did you mean ls?)`;
  if (code === "commander.unknownOption" && first.startsWith("-")) {
    return `${said}: give the command first, and its options behind it: dynamutex COMMAND [options]`;
  }
  // A name that begins with - is taken for an option: then the guess is wrong.
  const isMaybeName = first === "run" && command !== undefined;
  if (guess !== undefined) return `${said} ${guess}${isMaybeName ? `: otherwise ${ONE_NAME}` : ""}`;
  if (code === "commander.unknownCommand") return `${said}: dynamutex --help lists them`;
  if (!/\.(missingArgument|excessArguments|unknownOption|optionMissingArgument)$/.test(code)) return said;
  if (first !== "run") return code === "commander.missingArgument" ? `${said}: dynamutex ${first} NAME` : said;
  return command === undefined
    ? `${said}; put -- before the command that is run: dynamutex run NAME -- COMMAND`
    : `${said}: ${ONE_NAME}`;
}

await main(process.argv.slice(2));
