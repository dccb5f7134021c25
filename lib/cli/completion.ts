import type { Command, Option } from "commander";
import type { Completed, CompletedOption } from "./completed.js";
import { bashCompletion } from "./completion-bash.js";
import { zshCompletion } from "./completion-zsh.js";
import { print } from "./output.js";

/** Prints what a shell evaluates. */
export function completion(shell: "bash" | "zsh", program: Command): number {
  const commands = program.commands.map(completed);
  print(shell === "bash" ? bashCompletion(commands) : zshCompletion(commands));
  return 0;
}

function completed(command: Command): Completed {
  const options = [...command.createHelp().visibleOptions(command)].map(completedOption);
  const choices = command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []);
  return { name: command.name(), description: command.description(), options, choices };
}

function completedOption({ long, short, description, flags, argChoices }: Option): CompletedOption {
  const value = /<(.+?)>/.exec(flags)?.[1];
  return { flag: long ?? short ?? flags, description, value, choices: argChoices ?? [] };
}
