import { describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { run } from '../testing/command-line.js';

const runProgram = promisify(execFile);

/** What bash offers for the last word of a line. */
async function offered(...line: readonly string[]): Promise<readonly string[]> {
  const { code, out } = await run('completion bash');
  expect(code).toBe(0);
  const tab = 'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _debate_space; printf "%s\\n" "${COMPREPLY[@]}"';
  const { stdout } = await runProgram('bash', ['-c', `${out}\n${tab}`, 'bash', 'debate-space', ...line]);
  return stdout.split('\n').filter((word) => word !== '');
}

describe('completion', () => {
  it.each([
    [['er'], ['erase', 'erasures']],
    [
      ['erasures', 're'],
      ['receipts', 'resume', 'retry'],
    ],
    [['users', 'list', '--per'], ['--per-page']],
    [['--json', 'outbox', 'dis'], ['discard']],
    [['erase', '--config', 'a.env', '--req'], ['--requested-by']],
    [
      ['erase', '--mode', ''],
      ['anonymize', 'delete'],
    ],
    [['erase', '--file', ''], []],
    [
      ['completion', ''],
      ['bash', 'zsh', 'fish'],
    ],
  ])('of bash offers for %j what there is', async (line, words) => {
    expect((await offered(...line)).slice(0, Math.max(1, words.length))).toEqual(words);
  });

  it('runs nothing that stands in the line', async () => {
    expect(await offered('erase', '--reference', '$(echo users)', '--dry')).toEqual(['--dry-run']);
  });

  it.each(['zsh', 'fish'])('has all commands and options for %s', async (shell) => {
    const { code, out } = await run(`completion ${shell}`);
    expect(code).toBe(0);
    for (const word of ['erasures', 'receipts', 'requested-by', 'anonymize delete'])
      expect(out).toContain(word);
  });

  it('is refused for another shell', async () => {
    expect(await run('completion tcsh')).toMatchObject({ code: 2, out: '' });
  });
});
