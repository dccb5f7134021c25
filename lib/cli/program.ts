import { createRequire } from "node:module";
import { Command, Option } from "commander";
import { Failure, NO_SEPARATOR } from "./failure.js";
import { duration, tick, timer, wholeNumber } from "./options.js";
import { print } from "./output.js";

/**
 * All commands. What they do is loaded when one is used, and with it the library and the AWS SDK: help needs
 * neither. Each sets the exit code.
 *
 * @param command what `run` runs: the words behind `--`; undefined without a `--`.
 */
export function programWith(command?: readonly string[]): Command {
  const program = new Command("dynamutex")
    .description("Run any command under a DynamoDB lock, and look after locks")
    .version(createRequire(import.meta.url)("dynamutex/package.json").version, "-V, --version", "show the version")
    .addHelpText("after", PROGRAM_HELP)
    .helpCommand("help [command]", "show the options of a command")
    .enablePositionalOptions()
    // Errors are thrown, and written by whoever parses. The commands inherit this.
    .exitOverride()
    .configureOutput({ writeOut: print, outputError: () => undefined });
  addRun(program, command);

  const ls = examples("dynamutex ls --prefix customer#", "dynamutex ls --json | jq -r '.[].name'");
  tableCommand(program, "ls", ls)
    .description("list the locks that are taken: who, since when, for how much longer, how many wait")
    .option("--prefix <text>", "only locks whose names begin with it")
    .option("--include-free", "free locks as well, whose rows remember a token or a tick")
    .option("--watch", "look again every 2 s, and redraw in place; each look reads the whole table")
    .option("--json", "JSON: an array with a line for each lock")
    .action(exits(async (options) => (await import("./ls.js")).ls(options)));

  const loop = "until dynamutex inspect deploy >/dev/null; [ $? -eq 1 ]; do sleep 5; done  # until it is free";
  const inspect = examples("dynamutex inspect nightly-report", loop);
  tableCommand(program, "inspect", inspect)
    .description("show who holds a lock and who waits: exit code 0 if it is held, 1 if it is free")
    .argument("<name>", "the lock's name")
    .option("--json", "one line of JSON")
    .action(exits(async (name, options) => (await import("./inspect.js")).inspect(name, options)));

  const unlock = examples("dynamutex unlock deploy --uuid 5f0c9a7e-…", "dynamutex unlock deploy --force --yes");
  tableCommand(program, "unlock", unlock)
    .description("end somebody's lock by force; it stays taken until their lease ends")
    .argument("<name>", "the lock's name")
    .option("--uuid <uuid>", "only if this acquisition still holds it, as inspect shows it")
    .option("--force", "whoever holds it")
    .option("--now", "free at once: its holder may still be at work beside the next one")
    .option("--yes", "do not ask")
    .action(exits(async (name, options) => (await import("./unlock.js")).unlock(name, options)));

  const formats = new Option("--print <format>", "print a definition and create nothing");
  const create = "dynamutex create-table --table locks";
  tableCommand(program, "create-table", examples(create, `${create} --print terraform > locks.tf`))
    .description("create the table, or print what creates it")
    .addOption(formats.choices(["cloudformation", "terraform", "cdk"]))
    .option(
      "--enable-ttl",
      "switch the TTL of a table on that exists: DynamoDB deletes each item whose TTL attribute is past",
    )
    .action(exits(async (options) => (await import("./table.js")).createTable(options)));

  tableCommand(program, "check", examples("dynamutex check --table locks"))
    .description("check whether locks work on the table with these credentials: exit code 0 if they do, 1 if not")
    .action(exits(async (options) => (await import("./table.js")).check(options)));

  const rehearse = examples(
    "dynamutex rehearse --table locks --dry-run",
    "dynamutex rehearse --table locks > report.md",
  );
  tableCommand(program, "rehearse", rehearse)
    .description(
      "see locks at work on the table: kills and freezes processes of its own that hold one; 0 if all was well",
    )
    .option("--ttl <duration>", "the length of the leases that are waited for, two of them (default: 5s)", timer)
    .option("--dry-run", "say what it would write and cost, and do nothing")
    .addOption(new Option("--host <name>").hideHelp())
    .action(exits(async (options) => (await import("./rehearse.js")).rehearse(options)));

  return program;
}

function addRun(program: Command, command: readonly string[] | undefined): void {
  const attempts = wholeNumber(1, 1_000_000, "Write --until-success=N, or another option between it and NAME.");
  const run = tableCommand(program, "run", RUN_HELP)
    .description("run a command while holding a lock")
    .usage("[options] NAME -- COMMAND ARGS…")
    .argument("<name>", "the lock's name")
    .option("--wait <duration>", "how long to wait for the lock; without this, for as long as it takes", timer)
    .option("--no-wait", "do not wait")
    .option("--ttl <duration>", "the length of a lease: how long the lock survives this process (default: 30s)", timer)
    .option("--fair", "wait in a queue: everybody who uses --fair gets the lock in the order of asking")
    .option("--at-least <duration>", "the lock stays taken for so long, even if the command ends sooner", timer)
    .option("--once <tick>", "at most once for this tick: a number or a date", tick)
    .option("--every <duration>", "at most once in each period of this length, by the table's clock", duration)
    .option("--until-success [n]", "run the tick again until one exits with 0, n times at most", attempts)
    .option("--permits <n>", "let so many run at once", wholeNumber(1, 1_000))
    .option("--per <duration>", "with --permits: let so many begin in any period of this length", timer)
    .option("--take <k>", "hold k of the permits, all or none (default: 1)", wholeNumber(1, 100))
    .option("--busy-code <n>", "the exit code if it did not run; 0 says nothing (default: 75)", wholeNumber(0, 255))
    .option("--kill-after <duration>", "after a loss, from TERM to KILL (default: a 15th of --ttl)", timer)
    .action(exits(async (name, options) => (await import("./run.js")).run(name, command, options)));
  // `run NAME grep -h` has forgotten the --.
  run.addHelpText("beforeAll", () => {
    if (run.args.findIndex((word) => /^(-h|--help)$/.test(word)) > 1) throw new Failure(NO_SEPARATOR);
    return "";
  });
  // A name in a variable may be `--help`: to show that and end with 0 would look as if the command had run.
  if (command !== undefined) run.helpOption(false);
}

/** What a command does, whose result is the exit code. */
function exits<Given extends readonly unknown[]>(act: (...given: Given) => Promise<number>) {
  return async (...given: Given): Promise<void> => {
    process.exitCode = await act(...given);
  };
}

/** A command on a table, with the options that say which. @param help what stands below them in its help. */
function tableCommand(program: Command, name: string, help: string): Command {
  const prefix = new Option("--key-prefix <text>", "what stands before every name in the table");
  return program
    .command(name)
    .addOption(new Option("--table <name>", "the table's name or ARN").env("DYNAMUTEX_TABLE"))
    .addOption(prefix.env("DYNAMUTEX_KEY_PREFIX"))
    .addOption(new Option("--keys <names>", "PARTITION[,SORT[,TTL]], if not name,sort,purge").env("DYNAMUTEX_KEYS"))
    .option("--region <region>", "as for the AWS CLI")
    .option("--profile <name>", "as for the AWS CLI")
    .option("--endpoint-url <url>", "as for the AWS CLI")
    .addHelpText("after", help);
}

const examples = (...lines: readonly string[]): string =>
  `\nExamples:\n${lines.map((line) => `  $ ${line}\n`).join("")}`;

const RUN_HELP = `
Exit codes: the command's own; 128 + n if signal n ended it; 75 if the lock was busy, or its tick granted before;
124 if the lock was lost; 125 if dynamutex failed; 126 if the command cannot be executed, 127 if there is none.

The command gets DYNAMUTEX_NAME, DYNAMUTEX_UUID and DYNAMUTEX_FENCING_TOKEN in its environment, with --permits
DYNAMUTEX_PERMIT in the place of the token, with --take DYNAMUTEX_PERMITS, and with --every or --once DYNAMUTEX_TICK,
and with --until-success DYNAMUTEX_ATTEMPT.

Examples:
  $ dynamutex run deploy -- ./deploy.sh production
  $ dynamutex run --wait 5m --ttl 2m migrate -- npm run migrate
  $ dynamutex run --every 1h --busy-code 0 send-invoices -- ./send-invoices.sh
  $ dynamutex run --permits 4 crm-api -- ./sync.sh
  $ dynamutex run --permits 16 --take 4 memory -- ./report.sh`;

const PROGRAM_HELP = `
Examples:
  $ export DYNAMUTEX_TABLE=locks
  $ dynamutex create-table
  $ dynamutex run deploy -- ./deploy.sh production
  $ dynamutex run --every 1d --busy-code 0 nightly-report -- ./report.sh
  $ dynamutex ls --watch

Region, endpoint and credentials are those of the AWS CLI: AWS_REGION, AWS_PROFILE, ~/.aws/config.
Exit code 125 is a failure of dynamutex itself. DEBUG=1 shows the stack of an error.`;
