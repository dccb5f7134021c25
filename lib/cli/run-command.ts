import type { Command } from "commander";
import { Failure } from "./failure.js";
import { duration, tick, wholeNumber } from "./option-values.js";
import { type Ended, examples, tableCommand } from "./table-command.js";

/** `run`, of the command that stands behind `--`; undefined without a `--`. */
export function runCommand(ended: Ended, command: readonly string[] | undefined): Command {
  const run = tableCommand("run")
    .description("run a command while holding a lock")
    .usage("[options] NAME -- COMMAND ARGS…")
    .argument("<name>", "the lock's name")
    .option("--wait <duration>", "how long to wait for the lock; without this, for as long as it takes", duration)
    .option("--no-wait", "do not wait")
    .option(
      "--ttl <duration>",
      "the length of a lease: how long the lock survives this process (default: 30s)",
      duration,
    )
    .option("--fair", "wait in a queue: everybody who uses --fair gets the lock in the order of asking")
    .option("--at-least <duration>", "the lock stays taken for so long, even if the command ends sooner", duration)
    .option("--once <tick>", "at most once for this tick: a number or a date", tick)
    .option("--every <duration>", "at most once in each period of this length, by the table's clock", duration)
    .option("--permits <n>", "let so many run at once", wholeNumber(1, 1_000))
    .option("--busy-code <n>", "the exit code if it did not run; 0 says nothing (default: 75)", wholeNumber(0, 255))
    .option("--kill-after <duration>", "after a loss, from TERM to KILL (default: a 15th of --ttl)", duration)
    .addHelpText("after", HELP)
    .action(async (name, options) => {
      if (command?.[0] === undefined) throw new Failure(command === undefined ? NO_SEPARATOR : NO_COMMAND);
      ended(await (await import("./commands.js")).run(name, command, options));
    });
  // A name in a variable may be `--help`: to show that and end with 0 would look as if the command had run.
  return command === undefined ? run : run.helpOption(false);
}

const NO_SEPARATOR = "there is no command: put -- before the command that is run: dynamutex run NAME -- COMMAND";

const NO_COMMAND = "there is no command behind --: give the one to run";

const HELP = `
Exit codes: the command's own; 128 + n if signal n ended it; 75 if the lock was busy, or its tick granted before;
124 if the lock was lost; 125 if dynamutex failed; 126 if the command cannot be executed, 127 if there is none.

The command gets DYNAMUTEX_NAME, DYNAMUTEX_UUID and DYNAMUTEX_FENCING_TOKEN in its environment, with --permits
DYNAMUTEX_PERMIT in the place of the token, and with --every or --once DYNAMUTEX_TICK.
${examples(
  "dynamutex run deploy -- ./deploy.sh production",
  "dynamutex run --wait 5m --ttl 2m migrate -- npm run migrate",
  "dynamutex run --every 1h --busy-code 0 send-invoices -- ./send-invoices.sh",
  "dynamutex run --permits 4 crm-api -- ./sync.sh",
)}`;
