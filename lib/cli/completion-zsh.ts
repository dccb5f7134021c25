import type { Completed, CompletedOption } from "./completed.js";

/** A completion for zsh: a file `_dynamutex` in `fpath`, or something to evaluate. */
export function zshCompletion(commands: readonly Completed[]): string {
  return `#compdef dynamutex
_dynamutex() {
  local -a commands
  commands=(
${commands.map(({ name, description }) => `    ${quoted(`${name}:${description}`)}`).join("\n")}
  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
${commands.map(commandCase).join("\n")}
  esac
}
if [[ $funcstack[1] == _dynamutex ]]; then _dynamutex "$@"; else compdef _dynamutex dynamutex; fi
`;
}

function commandCase({ name, options, choices }: Completed): string {
  const described = options.map((option) => quoted(optionSpec(option)));
  const positional = choices.length > 0 ? [`${quoted(`:value:(${choices.join(" ")})`)}`] : [quoted(":name:")];
  const rest = name === "run" ? [quoted("*:::command:_normal")] : [];
  return `    ${name}) _arguments ${[...described, ...positional, ...rest].join(" ")} ;;`;
}

/** `--flag=[description]:value:(choices)`, and without a value `--flag[description]`. */
function optionSpec({ flag, description, value, choices }: CompletedOption): string {
  const text = description.replace(/[[\]:\\]/g, "\\$&");
  if (value === undefined) return `${flag}[${text}]`;
  return `${flag}=[${text}]:${value}:${choices.length > 0 ? `(${choices.join(" ")})` : ""}`;
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
