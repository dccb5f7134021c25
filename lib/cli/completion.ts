import type { Argument, Command, Option } from "commander";

export type Shell = "bash" | "zsh";

/** What a shell evaluates to complete these commands. Behind `--`, the completion is that of the command which is run. */
export const COMPLETIONS: Readonly<Record<Shell, (commands: readonly Command[]) => string>> = { bash, zsh };

/** For bash 3.2 and newer. */
function bash(commands: readonly Command[]): string {
  const names = commands.map((command) => command.name()).join(" ");
  // What may follow a command: the value of an option that was typed just before, or one of its words.
  const cases = commands.flatMap((command) => {
    const values = optionsOf(command).filter(({ required }) => required);
    const words = [...command.registeredArguments.flatMap(choicesOf), ...optionsOf(command).map(flagOf)];
    return [
      ...values.map((option) => bashCase(`"${command.name()} ${flagOf(option)}"`, choicesOf(option))),
      bashCase(`"${command.name()} "*`, words),
    ];
  });
  return `_dynamutex() {
  local current=\${COMP_WORDS[COMP_CWORD]} words= index
  COMPREPLY=()
  for ((index = 2; index < COMP_CWORD; index++)); do
    if [[ \${COMP_WORDS[index]} == -- ]]; then
      if declare -F _command_offset >/dev/null; then _command_offset $((index + 1))
      elif ((index + 1 == COMP_CWORD)); then COMPREPLY=($(compgen -c -- "$current"))
      else COMPREPLY=($(compgen -f -- "$current")); fi
      return
    fi
  done
  case "\${COMP_WORDS[1]} \${COMP_WORDS[COMP_CWORD-1]}" in
${cases.join("\n")}
  esac
  if ((COMP_CWORD == 1)); then words="${names} --help --version"; fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _dynamutex dynamutex
`;
}

const bashCase = (pattern: string, words: readonly string[]): string => `    ${pattern}) words="${words.join(" ")}" ;;`;

/** A file `_dynamutex` in `fpath`, or something to evaluate. */
function zsh(commands: readonly Command[]): string {
  const names = commands.map((command) => `    ${quoted(`${command.name()}:${command.description()}`)}`);
  const cases = commands.map((command) => {
    const operands = command.registeredArguments.map((argument) => `1:${argument.name()}:${zshChoices(argument)}`);
    const specs = [...optionsOf(command).map(zshSpec), ...operands];
    return `    ${command.name()}) _arguments ${specs.map(quoted).join(" ")} ;;`;
  });
  return `#compdef dynamutex
_dynamutex() {
  local -a names
  names=(
${names.join("\n")}
  )
  if ((CURRENT == 2)); then
    _describe command names
    return
  fi
  local -i separator=\${words[(i)--]}
  if ((separator < CURRENT)); then
    shift $separator words
    ((CURRENT -= separator))
    _normal
    return
  fi
  shift words
  ((CURRENT--))
  case $words[1] in
${cases.join("\n")}
  esac
}
if [[ $funcstack[1] == _dynamutex ]]; then _dynamutex "$@"; else compdef _dynamutex dynamutex; fi
`;
}

/** `--flag=[description]:value:(choices)`, and without a value `--flag[description]`. */
function zshSpec(option: Option): string {
  const text = option.description.replace(/[[\]:\\]/g, "\\$&");
  if (!option.required) return `${flagOf(option)}[${text}]`;
  return `${flagOf(option)}=[${text}]:${/<(.+)>/.exec(option.flags)?.[1]}:${zshChoices(option)}`;
}

/** Its own, and `--help`. */
const optionsOf = (command: Command): readonly Option[] => command.createHelp().visibleOptions(command);

/** What an argument or the value of an option may be; nothing where that is not known. */
const choicesOf = ({ argChoices }: Argument | Option): readonly string[] => argChoices ?? [];

const zshChoices = ({ argChoices }: Argument | Option): string => (argChoices ? `(${argChoices.join(" ")})` : "");

const flagOf = (option: Option): string => `--${option.name()}`;

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
