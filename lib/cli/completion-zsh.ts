import type { Completed, CompletedOption } from "./completed.js";

/** A completion for zsh: a file `_dynamutex` in `fpath`, or something to evaluate. Behind `--` it is that of the command which is run. */
export function zshCompletion(commands: readonly Completed[]): string {
  return `#compdef dynamutex
_dynamutex() {
  local -a names
  names=(
${commands.map(({ name, description }) => `    ${quoted(`${name}:${description}`)}`).join("\n")}
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
${commands.map(commandCase).join("\n")}
  esac
}
if [[ $funcstack[1] == _dynamutex ]]; then _dynamutex "$@"; else compdef _dynamutex dynamutex; fi
`;
}

function commandCase({ name, options, choices }: Completed): string {
  const value = choices.length > 0 ? `1:value:(${choices.join(" ")})` : "1:name:";
  return `    ${name}) _arguments ${[...options.map(optionSpec), value].map(quoted).join(" ")} ;;`;
}

/** `--flag=[description]:value:(choices)`, and without a value `--flag[description]`. */
function optionSpec({ flag, description, value, choices }: CompletedOption): string {
  const text = description.replace(/[[\]:\\]/g, "\\$&");
  if (value === undefined) return `${flag}[${text}]`;
  return `${flag}=[${text}]:${value}:${choices.length > 0 ? `(${choices.join(" ")})` : ""}`;
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
