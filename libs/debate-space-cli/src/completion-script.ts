import type { Command, Option } from 'commander';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/** A command, with what may come behind it. */
interface Place {
  /** Its names from the program on, such as `/users/list`; empty for the program. */
  readonly at: string;
  readonly subcommands: readonly Command[];
  readonly options: readonly Option[];
}

/** A script by which a shell completes the commands and options of a program. The program is not run for it. */
export function completionScript(program: Command, shell: Shell): string {
  const places = placesOf(program, '');
  if (shell === 'bash') return bash(program.name(), places);
  return shell === 'zsh' ? zsh(program.name(), places) : fish(program.name(), places);
}

function placesOf(command: Command, at: string): Place[] {
  const inner = command.commands.flatMap((each) => placesOf(each, `${at}/${each.name()}`));
  const global = command
    .createHelp()
    .visibleGlobalOptions(command)
    .filter(({ long }) => long !== '--version');
  return [{ at, subcommands: command.commands, options: [...command.options, ...global] }, ...inner];
}

/** All places but the program itself. */
const knownPlaces = (places: readonly Place[], or: string): string =>
  places.flatMap(({ at }) => (at === '' ? [] : [at])).join(or);

const wordsOf = ({ subcommands, options }: Place): string =>
  [
    ...subcommands.map((each) => each.name()),
    ...options.flatMap(({ long }) => (long ? [long] : [])),
    '--help',
  ].join(' ');

function bash(name: string, places: readonly Place[]): string {
  const cases = places.map((place) => `    '${place.at}') words='${wordsOf(place)}' ;;`);
  return `# Completion of ${name} for bash. In ~/.bashrc: source <(${name} completion bash)
_${identifier(name)}() {
  local at= word words=
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$at/$word" in ${knownPlaces(places, '|')}) at="$at/$word" ;; esac
  done
  case "$at" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _${identifier(name)} ${name}`;
}

function zsh(name: string, places: readonly Place[]): string {
  const cases = places.map((place) => `    '${place.at}') compadd -- ${wordsOf(place)} ;;`);
  return `# Completion of ${name} for zsh. In ~/.zshrc, behind compinit: source <(${name} completion zsh)
_${identifier(name)}() {
  local at= word
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$at/$word" in ${knownPlaces(places, '|')}) at="$at/$word" ;; esac
  done
  case "$at" in
${cases.join('\n')}
  esac
  [[ "$PREFIX" == -* ]] || _files
}
compdef _${identifier(name)} ${name}`;
}

function fish(name: string, places: readonly Place[]): string {
  const place = `__${identifier(name)}_place`;
  const lines = places.flatMap(({ at, subcommands, options }) => {
    const here = `complete -c ${name} -n 'test (${place}) = ${at}/'`;
    return [
      ...subcommands.map((each) => `${here} -f -a ${each.name()} -d ${quoted(each.description())}`),
      ...options.flatMap(({ long, required, description }) =>
        long ? [`${here} -l ${long.slice(2)}${required ? ' -r' : ''} -d ${quoted(description)}`] : [],
      ),
    ];
  });
  return `# Completion of ${name} for fish: ${name} completion fish > ~/.config/fish/completions/${name}.fish
function ${place}
  set -l at ''
  for word in (commandline -opc)[2..-1]
    if contains -- "$at/$word" ${knownPlaces(places, ' ')}
      set at "$at/$word"
    end
  end
  echo "$at/"
end
${lines.join('\n')}`;
}

const identifier = (name: string): string => name.replaceAll('-', '_');
const quoted = (text: string): string => `'${text.replaceAll(/['\\]/g, String.raw`\$&`)}'`;
