#!/usr/bin/env node
import { inspect } from "node:util";
import { CommanderError } from "commander";
import { complaintOf, EXIT, exitCodeOf, Failure } from "./failure.js";
import { complain, mention, printable } from "./output.js";
import { programWith } from "./program.js";

// What the library warns of is one line as well, without the number of the process.
process.removeAllListeners("warning");
process.on("warning", ({ message }) => mention(message));

// The kernel ends the first process of a container by no signal that it does not handle. These handle their own.
if (process.pid === 1 && !["run", "rehearse"].includes(process.argv[2] ?? "")) {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const) {
    process.once(signal, () => process.exit(exitCodeOf(signal)));
  }
}

/** Runs a command line, and sets the exit code. */
async function main(argv: readonly string[]): Promise<void> {
  // The command that `run` runs is behind the first `--`: the parser does not see it, whatever stands before it.
  const separator = argv[0] === "run" ? argv.indexOf("--") : -1;
  const [own, command] = separator < 0 ? [argv] : [argv.slice(0, separator), argv.slice(separator + 1)];
  try {
    await programWith(command).parseAsync(own, { from: "user" });
  } catch (error) {
    const ofParser = error instanceof CommanderError ? error : undefined;
    if (ofParser?.exitCode === EXIT.done) return; // help and version were shown
    process.exitCode = error instanceof Failure ? error.exitCode : EXIT.failed;
    if (ofParser?.code === "commander.help") return; // the same, without a command
    if (process.env.DEBUG && error instanceof Error) console.error(inspect(error).replace(/[^\n]+/g, printable));
    complain(ofParser === undefined ? complaintOf(error) : lineOf(ofParser, argv, command));
  }
}

/** What other commands call the options of `run`, such as flock, and what the library calls them. */
const FLAGS: Readonly<Record<string, RegExp>> = {
  "--wait": /^(acquire|lock)-?timeout(-?ms)?$|^max-?wait(-?ms)?$|^wait-?(ms|timeout(-?ms)?)$|^w$/i,
  "--no-wait": /^(nonblock|nb|no-?block|fail-?fast|n)$/i,
  "--ttl": /^(lease|lease-?(duration|time|ms)|ttl-?ms|expiry?)$/i,
  "--busy-code": /^(conflict-exit-code|E)$/,
  "--table": /^table-?name$/i,
};

/** What may be meant to bound the run. There is no such option: a lock is held until the command has ended. */
const BOUNDS_RUN = /^(max-?(hold|time|run-?time|duration)|run-?timeout|time-?limit|deadline)(-?ms)?$/i;

/** What is said of an option that others have. Undefined for any other. */
function insteadOf(option: string, argv: readonly string[]): string | undefined {
  const [command] = argv;
  const [, name = "", given] = /'--?([\w-]+)(?:=([^']*))?'/.exec(option) ?? [];
  const next = argv[argv.findIndex((word) => /^--?/.test(word) && word.replace(/^--?/, "") === name) + 1];
  const value = durationIn(given ?? next, name);
  const flag = Object.keys(FLAGS).find((known) => FLAGS[known]?.test(name));
  if (flag === "--table") return ` (Did you mean ${flag}?)`;
  if (command !== "run") return undefined;
  if (flag !== undefined) return ` (Did you mean ${flag}${/^--(wait|ttl)$/.test(flag) && value ? ` ${value}` : ""}?)`;
  const ofCoreutils = /^[\d.]+[smhd]$/.test(value ?? "") ? value : "5m";
  const bound = `put timeout, of coreutils, before the command: dynamutex run NAME -- timeout ${ofCoreutils} COMMAND`;
  if (/^timeout(-?ms)?$/i.test(name)) {
    return `: --wait ${value ?? "5m"} bounds the wait for the lock, and nothing else; to bound the run, ${bound}`;
  }
  return BOUNDS_RUN.test(name) ? `: to bound the run, ${bound}` : undefined;
}

/** A duration with its unit: a number without one is in seconds, as with flock and timeout, unless the option's name says otherwise. */
function durationIn(value = "", name: string): string | undefined {
  if (/^\d+(\.\d+)?$/.test(value)) return `${value}${/ms$/i.test(name) ? "ms" : "s"}`;
  return /^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(value) ? value : undefined;
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
  const instead = code === "commander.unknownOption" ? insteadOf(said, argv) : undefined;
  if (instead !== undefined) return `${said}${instead}`;
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
