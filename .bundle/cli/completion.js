export const COMPLETIONS = { bash, zsh, fish };
const TABLE_FLAGS = "--table|--key-prefix|--keys|--region|--profile|--endpoint-url";
const WITH_VALUE = TABLE_FLAGS.split("|").map((flag) => `${flag}=*`);
const isName = (argument) => argument.name() === "name";
function bash(commands) {
    const names = commands.map((command) => command.name()).join(" ");
    const cases = commands.flatMap((command) => {
        const values = optionsOf(command).filter(({ required }) => required);
        const words = [...command.registeredArguments.flatMap(choicesOf), ...optionsOf(command).map(flagOf)];
        return [
            ...values.map((option) => bashCase(`"${command.name()} ${flagOf(option)}"`, choicesOf(option))),
            bashCase(`"${command.name()} "*`, words, command.registeredArguments.some(isName) ? " isName=1" : ""),
        ];
    });
    return `_dynamutex() {
  local current=\${COMP_WORDS[COMP_CWORD]} words= index isName= name whole at=$COMP_CWORD
  local -a table=()
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
  if [[ -z $isName || $current == -* ]]; then return; fi
  for ((index = 2; index < COMP_CWORD; index++)); do
    case \${COMP_WORDS[index]} in
      ${TABLE_FLAGS})
        if [[ \${COMP_WORDS[index+1]} == = ]]; then table+=("\${COMP_WORDS[index]}" "\${COMP_WORDS[index+2]}")
        else table+=("\${COMP_WORDS[index]}" "\${COMP_WORDS[index+1]}"); fi ;;
    esac
  done
  whole=$current
  while ((at > 2)) && [[ \${COMP_WORDS[at]} == : || \${COMP_WORDS[at-1]} == : ]]; do
    ((at--))
    whole=\${COMP_WORDS[at]}$whole
  done
  whole=\${whole//\\\\/}
  while IFS= read -r name; do
    if [[ $COMP_WORDBREAKS == *:* ]]; then name=\${name#"\${whole%"\${whole##*:}"}"}; fi
    COMPREPLY+=("$(printf %q "$name")")
  done < <(dynamutex names \${table[@]+"\${table[@]}"} --prefix "$whole" 2>/dev/null)
}
complete -F _dynamutex dynamutex
`;
}
const bashCase = (pattern, words, also = "") => `    ${pattern}) words="${words.join(" ")}"${also} ;;`;
function zsh(commands) {
    const names = commands.map((command) => `    ${quoted(`${command.name()}:${command.description()}`)}`);
    const cases = commands.map((command) => {
        const operands = command.registeredArguments.map((argument) => `1:${argument.name()}:${zshChoices(argument)}`);
        const specs = [...optionsOf(command).map(zshSpec), ...operands];
        return `    ${command.name()}) _arguments ${specs.map(quoted).join(" ")} ;;`;
    });
    return `#compdef dynamutex
_dynamutex_names() {
  local -a table found
  local -i index
  for ((index = 1; index < $#words; index++)); do
    case $words[index] in
      ${TABLE_FLAGS}) table+=("$words[index]" "$words[index+1]") ;;
      ${WITH_VALUE.join("|")}) table+=("$words[index]") ;;
    esac
  done
  found=(\${(f)"$(dynamutex names $table --prefix "\${(Q)PREFIX}" 2>/dev/null)"})
  compadd -a found
}
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
function fish(commands) {
    const lines = commands.flatMap((command) => {
        const name = command.name();
        const inside = `-n '__dynamutex_in ${name}'`;
        const operands = command.registeredArguments.map((argument) => isName(argument) ? `${inside} -a '(__dynamutex_names)'` : `${inside} -a '${choicesOf(argument).join(" ")}'`);
        const options = optionsOf(command).map((option) => {
            const value = option.required ? ` -x -a '${choicesOf(option).join(" ")}'` : "";
            return `${inside} -l ${option.name()}${value} -d ${quoted(option.description)}`;
        });
        return [`-n __fish_use_subcommand -a ${name} -d ${quoted(command.description())}`, ...options, ...operands];
    });
    return `function __dynamutex_in
  set -l words (commandline -opc)
  not contains -- -- $words; and test (count $words) -gt 1; and test $words[2] = $argv[1]
end
function __dynamutex_behind
  contains -- -- (commandline -opc)
end
function __dynamutex_names
  string match -q -- '-*' (commandline -ct); and return
  set -l words (commandline -opc)
  set -l table
  for index in (seq 2 (count $words))
    switch $words[$index]
      case ${TABLE_FLAGS.replaceAll("|", " ")}
        set table $table $words[$index] $words[(math $index + 1)]
      case ${WITH_VALUE.map((flag) => `'${flag}'`).join(" ")}
        set table $table $words[$index]
    end
  end
  dynamutex names $table --prefix (commandline -ct) 2>/dev/null
end
complete -c dynamutex -f
complete -c dynamutex -n __dynamutex_behind -F -a '(__fish_complete_command)'
${lines.map((line) => `complete -c dynamutex ${line}`).join("\n")}
`;
}
function zshSpec(option) {
    const text = option.description.replace(/[[\]:\\]/g, "\\$&");
    if (!option.required)
        return `${flagOf(option)}[${text}]`;
    return `${flagOf(option)}=[${text}]:${/<(.+)>/.exec(option.flags)?.[1]}:${zshChoices(option)}`;
}
const optionsOf = (command) => command.createHelp().visibleOptions(command);
const choicesOf = ({ argChoices }) => argChoices ?? [];
function zshChoices(given) {
    if (given.argChoices)
        return `(${choicesOf(given).join(" ")})`;
    return "flags" in given || !isName(given) ? "" : "_dynamutex_names";
}
const flagOf = (option) => `--${option.name()}`;
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
