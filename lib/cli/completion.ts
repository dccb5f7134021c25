import type { Command, Option } from "commander";

export type Shell = "bash" | "zsh";

/** What a shell evaluates to complete these commands. Behind `--`, the completion is that of the command which is run. */
export const COMPLETIONS: Readonly<Record<Shell, (commands: readonly Command[]) => string>> = { bash, zsh };

/** For bash 3.2 and newer. */
function bash(commands: readonly Command[]): string {
  const names = commands.map((command) => command.name()).join(" ");
  const cases = commands.map(
    (command) =>
      `    ${command.name()}) words="${[...choicesOf(command), ...optionsOf(command).map(flagOf)].join(" ")}" ;;`,
  );
  return `_dynamutex() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} words= index
  COMPREPLY=()
  for ((index = 2; index < COMP_CWORD; index++)); do
    if [[ \${COMP_WORDS[index]} == -- ]]; then
      if declare -F _command_offset >/dev/null; then _command_offset $((index + 1)); return; fi
      if ((index + 1 == COMP_CWORD)); then COMPREPLY=($(compgen -c -- "$current")); return; fi
      COMPREPLY=($(compgen -f -- "$current"))
      return
    fi
  done
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "${names} --help --version" -- "$current"))
    return
  fi
  case "\${COMP_WORDS[1]} $previous" in
${commands.flatMap(valueCases).join("\n")}
  esac
  case \${COMP_WORDS[1]} in
${cases.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _dynamutex dynamutex
`;
}

/** The options of a command whose value is typed next: one of its choices, or anything. */
function valueCases(command: Command): string[] {
  return optionsOf(command)
    .filter((option) => placeholderOf(option) !== undefined)
    .map((option) => {
      const words = `compgen -W "${(option.argChoices ?? []).join(" ")}" -- "$current"`;
      return `    "${command.name()} ${flagOf(option)}") COMPREPLY=($(${words})); return ;;`;
    });
}

/** A file `_dynamutex` in `fpath`, or something to evaluate. */
function zsh(commands: readonly Command[]): string {
  const names = commands.map((command) => `    ${quoted(`${command.name()}:${command.description()}`)}`);
  const cases = commands.map((command) => {
    const choices = choicesOf(command).join(" ");
    const specs = [...optionsOf(command).map(zshSpec), choices === "" ? "1:name:" : `1:value:(${choices})`];
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
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
${cases.join("\n")}
  esac
}
if [[ $funcstack[1] == _dynamutex ]]; then _dynamutex "$@"; else compdef _dynamutex dynamutex; fi
`;
}

/** `--flag=[description]:value:(choices)`, and without a value `--flag[description]`. */
function zshSpec(option: Option): string {
  const [value, choices = []] = [placeholderOf(option), option.argChoices];
  const text = option.description.replace(/[[\]:\\]/g, "\\$&");
  if (value === undefined) return `${flagOf(option)}[${text}]`;
  return `${flagOf(option)}=[${text}]:${value}:${choices.length > 0 ? `(${choices.join(" ")})` : ""}`;
}

/** Its own, and `--help`. */
const optionsOf = (command: Command): readonly Option[] => command.createHelp().visibleOptions(command);

/** What its argument may be, where that is known. */
const choicesOf = (command: Command): readonly string[] =>
  command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []);

const flagOf = ({ long, short, flags }: Option): string => long ?? short ?? flags;

/** What stands for its value; undefined if it has none. */
const placeholderOf = ({ flags }: Option): string | undefined => /<(.+?)>/.exec(flags)?.[1];

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
