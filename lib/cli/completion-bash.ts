import type { Completed } from "./completed.js";

/** A completion for bash 3.2 and newer. Behind `--` it is that of the command which is run. */
export function bashCompletion(commands: readonly Completed[]): string {
  const names = commands.map(({ name }) => name).join(" ");
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
${valueCases(commands)}
  esac
  case \${COMP_WORDS[1]} in
${commands.map(commandCase).join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _dynamutex dynamutex
`;
}

/** An option whose value is typed next: its choices, or nothing. */
function valueCases(commands: readonly Completed[]): string {
  const options = commands.flatMap(({ name, options }) => options.map((option) => ({ name, ...option })));
  const chosen = options.filter(({ choices }) => choices.length > 0);
  const typed = new Set(options.flatMap(({ flag, value, choices }) => (value && choices.length === 0 ? [flag] : [])));
  return [
    ...chosen.map(
      ({ name, flag, choices }) =>
        `    "${name} ${flag}") COMPREPLY=($(compgen -W "${choices.join(" ")}" -- "$current")); return ;;`,
    ),
    `    ${[...typed].map((flag) => `*" ${flag}"`).join("|")}) return ;;`,
  ].join("\n");
}

function commandCase({ name, options, choices }: Completed): string {
  return `    ${name}) words="${[...choices, ...options.map(({ flag }) => flag)].join(" ")}" ;;`;
}
