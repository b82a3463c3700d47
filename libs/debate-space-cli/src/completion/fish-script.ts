import type { CompletedCommand, CompletedOption } from './completed-commands.js';

/** Runs nothing when a word is completed: all words are in the script. */
export function fishScript(commands: readonly CompletedCommand[]): string {
  const paths = commands.flatMap(({ at }) => (at === '' ? [] : [quoted(at)]));
  return `# fish completion of debate-space
function __debate_space_at
  set -l at ''
  for word in (commandline -opc)[2..-1]
    switch "$at $word"
      case ${paths.join(' ')}
        set at "$at $word"
    end
  end
  test "$at" = "$argv[1]"
end
${commands.flatMap(linesOf).join('\n')}`;
}

function linesOf({ at, commands, choices, options }: CompletedCommand): string[] {
  const here = `complete -c debate-space -n ${quoted(`__debate_space_at "${at}"`)}`;
  return [
    ...commands.map(({ name, description }) => `${here} -f -a ${quoted(name)} -d ${quoted(description)}`),
    ...(choices.length > 0 ? [`${here} -f -a ${quoted(choices.join(' '))}`] : []),
    ...options.map((option) => `${here} ${flagsOf(option)} -d ${quoted(option.description)}`),
  ];
}

function flagsOf({ flags, takesValue, choices }: CompletedOption): string {
  const named = flags.map((flag) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`));
  if (choices.length > 0) return `${named.join(' ')} -x -a ${quoted(choices.join(' '))}`;
  return takesValue ? `${named.join(' ')} -r` : named.join(' ');
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
