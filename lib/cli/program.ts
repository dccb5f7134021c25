import { Argument, Command, Option } from "commander";
import { runCommand } from "./run-command.js";
import { type Ended, examples, tableCommand } from "./table-command.js";

/** All commands. `command` is what `run` runs. What they do is loaded when one is used: help and completion need none of it. */
export function programWith(ended: Ended, command?: readonly string[]): Command {
  const program = new Command("dynamutex")
    .description("Locks on DynamoDB, for whatever can be started from a prompt")
    .option("-V, --version", "show the version")
    .addHelpText("after", HELP)
    .helpCommand(false)
    .enablePositionalOptions();
  program.addCommand(runCommand(ended, command));

  program.addCommand(
    tableCommand("ls")
      .description("list the locks that are taken: who, since when, for how much longer, how many wait")
      .option("--prefix <text>", "only locks whose names begin with it")
      .option("--kept", "free locks as well, whose rows remember a token or a tick")
      .option("--watch", "look again every 2 s, and redraw in place; each look reads the whole table")
      .option("--json", "JSON: an array with a line for each lock")
      .addHelpText("after", examples("dynamutex ls --prefix customer#", "dynamutex ls --json | jq -r '.[].name'"))
      .action(async (options) => ended(await (await import("./commands.js")).ls(options))),
  );

  program.addCommand(
    tableCommand("inspect")
      .description("show who holds a lock and who waits: exit code 0 if it is held, 1 if it is free")
      .argument("<name>", "the lock's name")
      .option("--json", "one line of JSON")
      .addHelpText(
        "after",
        examples("dynamutex inspect nightly-report", "until ! dynamutex inspect deploy >/dev/null; do sleep 5; done"),
      )
      .action(async (name, options) => ended(await (await import("./commands.js")).inspect(name, options))),
  );

  program.addCommand(
    tableCommand("unlock")
      .description("end somebody's lock by force; it stays taken until their lease ends")
      .argument("<name>", "the lock's name")
      .option("--uuid <uuid>", "only if this acquisition still holds it, as inspect shows it")
      .option("--force", "whoever holds it")
      .option("--now", "free at once: its holder may still be at work beside the next one")
      .option("--yes", "do not ask")
      .addHelpText(
        "after",
        examples("dynamutex unlock deploy --uuid 5f0c9a7e-…", "dynamutex unlock deploy --force --yes"),
      )
      .action(async (name, options) => ended(await (await import("./commands.js")).unlock(name, options))),
  );

  program.addCommand(
    tableCommand("create-table")
      .description("create the table, or print what creates it")
      .addOption(
        new Option("--print <format>", "print a definition and create nothing").choices([
          "cloudformation",
          "terraform",
          "cdk",
        ]),
      )
      .addHelpText(
        "after",
        examples(
          "dynamutex create-table --table locks",
          "dynamutex create-table --table locks --print terraform > locks.tf",
        ),
      )
      .action(async (options) => ended(await (await import("./commands.js")).createTable(options))),
  );

  program.addCommand(
    tableCommand("check")
      .description("check whether locks work on the table with these credentials: exit code 0 if they do, 1 if not")
      .addHelpText("after", examples("dynamutex check --table locks"))
      .action(async (options) => ended(await (await import("./commands.js")).check(options))),
  );

  program.addCommand(
    new Command("completion")
      .description("print the completion for a shell")
      .addArgument(new Argument("<shell>").choices(["bash", "zsh"]))
      .addHelpText(
        "after",
        examples('eval "$(dynamutex completion bash)"', "dynamutex completion zsh > ~/.zfunc/_dynamutex"),
      )
      .action(async (shell) => ended((await import("./completion.js")).completion(shell, program))),
  );
  return program;
}

const HELP = `
Examples:
  $ export DYNAMUTEX_TABLE=locks
  $ dynamutex create-table
  $ dynamutex run nightly-report -- ./report.sh
  $ dynamutex run --every 1h --busy-code 0 send-invoices -- ./send-invoices.sh
  $ dynamutex ls --watch

Region, endpoint and credentials are those of the AWS CLI: AWS_REGION, AWS_PROFILE, ~/.aws/config.
Exit code 125 is a failure of dynamutex itself. DEBUG=1 shows the stack of an error.`;
