import { describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { PassThrough, Readable } from 'node:stream';
import { Output, pasteable, records } from './output.js';
import { progressDisplay } from './progress.js';
import { Scene } from './testing/command-line.js';

/** Marks, embeddings, overrides and isolates of the text direction. */
const BIDIRECTIONAL = '\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069';
const HOSTILE = 'of \u001b[31m\u009b2J\r';

const scene = new Scene();

describe('a stdout that cannot be written', () => {
  it.each([
    ['ENOSPC', '--help'],
    ['EPIPE', 'users list'],
    ['ENOSPC', 'users list --json'],
    ['EPIPE', 'users export'],
    ['ENOSPC', 'users export --format csv'],
    ['EPIPE', 'erase ada --mode anonymize --yes --json'],
    ['ENOSPC', 'doctor'],
  ])('ends the command with 1 and a message (%s): %s', async (stdoutError, command) => {
    const { code, err } = await scene.run(command, { stdoutError });
    expect(code).toBe(1);
    expect(err).toContain(`stdout cannot be written (${stdoutError}): the answer is missing or incomplete.`);
  });

  it.each(['ENOSPC', 'EPIPE'])('does not hide why the command itself failed (%s)', async (stdoutError) => {
    const { code, err } = await scene.run('users find dora --json', { stdoutError });
    expect([code, err]).toEqual([1, expect.stringContaining('The user is not found: the service lists')]);
    scene.service.faults.add({ operation: 'list', kind: 'status', status: 403 });
    expect(await scene.run('users list --json', { stdoutError })).toMatchObject({ code: 4 });
  });

  it('does not hide the failure of a source that fails at the same time', async () => {
    const stdout = new PassThrough();
    const output = new Output({ stdout, stderr: new PassThrough() });
    async function* source(): AsyncGenerator<string> {
      yield await Promise.resolve('ada\n');
      stdout.destroy(Object.assign(new Error('nobody reads'), { code: 'EPIPE' }));
      throw new Error('the service fails');
    }
    await expect(output.stream(source())).rejects.toThrow('the service fails');
  });
});

describe('a control character of the service', () => {
  const control = /(?!\n)\p{Cc}|[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/u;

  it.each(['users list', 'users find odd', 'users export --format csv', 'users export', 'users list --json'])(
    'does not reach a terminal, and stays in the data of a pipe: %s',
    async (command) => {
      scene.service.users.add({ uid: 'odd', last_name: HOSTILE, first_name: BIDIRECTIONAL });
      const { code, out } = await scene.run(command, { isOutTerminal: true });
      expect([code, out]).toEqual([0, expect.stringContaining('odd')]);
      expect(out).not.toMatch(control);
      if (command.includes('csv')) expect((await scene.run(command)).out).toContain(HOSTILE);
    },
  );

  it('reaches neither stdout nor stderr in what is said to people', async () => {
    const [stdout, stderr] = [new PassThrough({ encoding: 'utf8' }), new PassThrough({ encoding: 'utf8' })];
    const output = new Output({ stdout, stderr });
    const hostile = `a\u001b[31mb\u009b2Jc\rd\ne\tf${BIDIRECTIONAL}`;
    const harmless = `a\uFFFD[31mb\uFFFD2Jc\uFFFDd\ne\tf${'\uFFFD'.repeat(BIDIRECTIONAL.length)}`;
    output.note(hostile);
    output.failure(new Error(hostile));
    output.answer({}, hostile);
    await output.each(Readable.from([1]), () => hostile, 'HEADING');
    expect(stderr.read()).toBe(`${harmless}\n${harmless}\n`);
    expect(stdout.read()).toBe(`${harmless}\nHEADING\n${harmless}\n`);
  });
});

describe('a command that is printed to be pasted', () => {
  const hostile = [
    'TICKET-7 $(touch x)',
    '`id`',
    "it's",
    '"',
    '-rf',
    '~',
    '*',
    '#',
    '!x',
    'Zoë; ls',
    '\\',
    '',
  ];
  it.each(['TICKET-7', ...hostile])('passes the argument %j through a shell', (reference) => {
    const command = pasteable('erasures', 'resume', reference).replace(/^npx debate-space/, "printf '%s\\n'");
    const words = execFileSync('/bin/sh', ['-c', command], { encoding: 'utf8' }).split('\n');
    expect(words.slice(0, -1).filter((word) => word !== '--')).toEqual(['erasures', 'resume', reference]);
  });
});

it('a hint of the storage stays on its line', () => {
  const text = records([{ id: 1, hint: 'repair it\n  → run \u2028this' } as never]);
  expect(text.split(/[\n\u2028]/)).toHaveLength(3);
});

describe('the progress', () => {
  it('is a bar on a terminal, and elsewhere a line for each tenth', async () => {
    const displayed = async (isTTY: boolean): Promise<string> => {
      const stderr = Object.assign(new PassThrough(), { isTTY, columns: 80 });
      const display = await progressDisplay({ stderr });
      for (const done of [0, 1, 4, 40]) display.show(done, 40, ' | 12 a minute');
      display.note('a note');
      display.end();
      return String(stderr.read());
    };
    expect(await displayed(true)).toMatch(/█+ 100 % \| 40 of 40 \| 12 a minute/);
    expect(await displayed(false)).toBe(
      '0 of 40 | 12 a minute\n4 of 40 | 12 a minute\n40 of 40 | 12 a minute\na note\n',
    );
  });
});
