import { describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { PassThrough } from 'node:stream';
import { completionScript } from './completion-script.js';
import { Output } from './output.js';
import { buildProgram } from './program.js';

const stream = new PassThrough();
const io = {
  env: {},
  folder: '/',
  stdin: stream,
  stdout: stream,
  stderr: stream,
  interrupted: new AbortController().signal,
};
const program = buildProgram({ io, output: new Output(io) });

/** What bash offers for the last word of a line. */
function offered(line: string): string[] {
  const words = line.split(' ');
  const script = `${completionScript(program, 'bash')}
COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}) COMP_CWORD=${words.length - 1}
_debate_space
printf '%s\\n' "\${COMPREPLY[@]}"`;
  return execFileSync('bash', ['-c', script], { encoding: 'utf8' }).trim().split('\n');
}

describe('the completion for bash', () => {
  it('offers commands', () => {
    expect(offered('debate-space eras')).toEqual(['erase', 'erasures']);
    expect(offered('debate-space erasures re')).toEqual(['receipts', 'resume', 'retry']);
  });

  it('offers the options of the command, and those of all commands', () => {
    expect(offered('debate-space users list --')).toEqual([
      '--page',
      '--per-page',
      '--filter',
      '--json',
      '--config',
      '--help',
    ]);
  });

  it('knows the command behind options and arguments', () => {
    expect(offered('debate-space --json erase 4711 --mo')).toEqual(['--mode']);
  });
});

it.each(['zsh', 'fish'] as const)('the completion for %s has each command', (shell) => {
  const script = completionScript(program, shell);
  for (const command of program.commands) expect(script).toContain(`/${command.name()}`);
});
