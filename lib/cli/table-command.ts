import { Command, Option } from "commander";

/** Told of the exit code when a command has ended. */
export type Ended = (exitCode: number) => void;

/** A command on a table, with the options that say which. */
export function tableCommand(name: string): Command {
  return new Command(name)
    .addOption(new Option("--table <name>", "the table's name or ARN").env("DYNAMUTEX_TABLE"))
    .addOption(
      new Option("--key-prefix <text>", "what stands before every name in the table").env("DYNAMUTEX_KEY_PREFIX"),
    )
    .addOption(new Option("--keys <names>", "PARTITION[,SORT[,TTL]], if not name,sort,purge").env("DYNAMUTEX_KEYS"))
    .option("--region <region>", "as for the AWS CLI")
    .option("--profile <name>", "as for the AWS CLI")
    .option("--endpoint-url <url>", "as for the AWS CLI");
}

/** Shown under the help of a command. */
export function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}\n`).join("")}`;
}
