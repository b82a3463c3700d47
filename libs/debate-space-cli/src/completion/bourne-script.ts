import type { CompletedCommand } from './completed-commands.js';

/** What bash and zsh say differently. */
interface Dialect {
  readonly head: string;
  readonly previous: string;
  /** The words between the program and the one that is completed. */
  readonly before: string;
  /** Offers words. */
  readonly offer: string;
  readonly offerFiles: string;
  readonly foot: string;
}

const dialects: Readonly<Record<'bash' | 'zsh', Dialect>> = {
  bash: {
    head: '# bash completion of debate-space',
    previous: '${COMP_WORDS[COMP_CWORD-1]}',
    before: '"${COMP_WORDS[@]:1:COMP_CWORD-1}"',
    offer: 'COMPREPLY=($(compgen -W "$*" -- "${COMP_WORDS[COMP_CWORD]}"))',
    offerFiles: 'COMPREPLY=()', // then complete -o default
    foot: 'complete -o default -F _debate_space debate-space',
  },
  zsh: {
    head: '#compdef debate-space',
    previous: '${words[CURRENT-1]}',
    before: '"${(@)words[2,CURRENT-1]}"',
    offer: 'compadd -- "$@"',
    offerFiles: '_files',
    foot: 'compdef _debate_space debate-space',
  },
};

/** Runs nothing when a word is completed: all words are in the script. */
export function bourneScript(shell: 'bash' | 'zsh', commands: readonly CompletedCommand[]): string {
  const { head, previous, before, offer, offerFiles, foot } = dialects[shell];
  const paths = commands.flatMap(({ at }) => (at === '' ? [] : [quoted(at)]));
  return `${head}
_debate_space_offer() {
  ${offer}
}
_debate_space() {
  local at='' word previous="${previous}"
  for word in ${before}; do
    case "$at $word" in
      ${paths.join('|')}) at="$at $word" ;;
    esac
  done
  case "$at $previous" in
${commands.flatMap(valuesOf).join('\n')}
  esac
  case "$previous" in
    ${flagsWithValue(commands).join('|')}) ${offerFiles}; return ;;
  esac
  case "$at" in
${commands.map(wordsOf).join('\n')}
  esac
}
${foot}`;
}

function valuesOf({ at, options }: CompletedCommand): string[] {
  const chosen = options.filter(({ choices }) => choices.length > 0);
  return chosen.map(
    ({ flags, choices }) =>
      `    ${flags.map((flag) => quoted(`${at} ${flag}`)).join('|')}) _debate_space_offer ${choices.join(' ')}; return ;;`,
  );
}

function wordsOf({ at, commands, choices, options }: CompletedCommand): string {
  const words = [...commands.map(({ name }) => name), ...choices, ...options.flatMap(({ flags }) => flags)];
  return `    ${quoted(at)}) _debate_space_offer ${words.join(' ')} ;;`;
}

function flagsWithValue(commands: readonly CompletedCommand[]): readonly string[] {
  const taking = commands.flatMap(({ options }) => options).filter(({ takesValue }) => takesValue);
  return [...new Set(taking.flatMap(({ flags }) => flags))];
}

function quoted(text: string): string {
  return `'${text}'`;
}
