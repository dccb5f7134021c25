#!/usr/bin/env node
import { inspect } from "node:util";
import { CommanderError } from "commander";
import { complaintOf, EXIT, exitCodeOf, Failure } from "./failure.js";
import { complain, mention, printable } from "./output.js";
import { programWith } from "./program.js";
process.removeAllListeners("warning");
process.on("warning", ({ message }) => mention(message));
if (process.pid === 1 && process.argv[2] !== "run") {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]) {
        process.once(signal, () => process.exit(exitCodeOf(signal)));
    }
}
async function main(argv) {
    const separator = argv[0] === "run" ? argv.indexOf("--") : -1;
    const [own, command] = separator < 0 ? [argv] : [argv.slice(0, separator), argv.slice(separator + 1)];
    try {
        await programWith(command).parseAsync(own, { from: "user" });
    }
    catch (error) {
        const ofParser = error instanceof CommanderError ? error : undefined;
        if (ofParser?.exitCode === EXIT.done)
            return;
        process.exitCode = error instanceof Failure ? error.exitCode : EXIT.failed;
        if (ofParser?.code === "commander.help")
            return;
        if (process.env.DEBUG && error instanceof Error)
            console.error(inspect(error).replace(/[^\n]+/g, printable));
        complain(ofParser === undefined ? complaintOf(error) : lineOf(ofParser, argv, command));
    }
}
const ONE_NAME = "give exactly one NAME before --, in quotes if it is a variable, and none that begins with -";
function lineOf({ code, message }, argv, command) {
    const [first = ""] = argv;
    const [said = "", guess] = message.replace(/^error: |\.$/g, "").split("\n");
    if (code === "commander.unknownCommand" && /^(locks|list)$/.test(first))
        return `${said} (Did you mean ls?)`;
    if (code === "commander.unknownOption" && first.startsWith("-")) {
        return `${said}: give the command first, and its options behind it: dynamutex COMMAND [options]`;
    }
    const isMaybeName = first === "run" && command !== undefined;
    if (guess !== undefined)
        return `${said} ${guess}${isMaybeName ? `: otherwise ${ONE_NAME}` : ""}`;
    if (code === "commander.unknownCommand")
        return `${said}: dynamutex --help lists them`;
    if (!/\.(missingArgument|excessArguments|unknownOption|optionMissingArgument)$/.test(code))
        return said;
    if (first === "completion")
        return `${said}: dynamutex completion bash, zsh or fish`;
    if (first !== "run")
        return code === "commander.missingArgument" ? `${said}: dynamutex ${first} NAME` : said;
    return command === undefined
        ? `${said}; put -- before the command that is run: dynamutex run NAME -- COMMAND`
        : `${said}: ${ONE_NAME}`;
}
await main(process.argv.slice(2));
