import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { DebateSpaceSimulator } from 'debate-space-simulator';
import { PassThrough, Readable } from 'node:stream';
import { Output } from './output.js';
import { configuredFor, keys, run, type Terminal } from './testing/command-line.js';

/** Marks, embeddings, overrides and isolates of the text direction. */
const BIDIRECTIONAL = '\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069';

let service: DebateSpaceSimulator;
let terminal: Terminal;
beforeEach(async () => {
  service = await DebateSpaceSimulator.start({
    apiKey: keys.DEBATE_SPACE_API_KEY,
    secretKey: keys.DEBATE_SPACE_SECRET_KEY,
    users: [{ uid: 'ada' }, { uid: 'ben', last_name: 'of \u001b[31m\u009b2J\r', first_name: BIDIRECTIONAL }],
  });
  terminal = { env: configuredFor(service) };
});
afterEach(async () => {
  await service.stop();
});

describe('a stdout that cannot be written', () => {
  const commands = [
    '--help',
    '--version',
    'users list',
    'users list --json',
    'users find ada',
    'users export',
    'users export --format csv',
    'logout ada',
    'erase ada --mode anonymize --yes --json',
    'doctor',
    'doctor --json',
  ];

  const refusals = commands.flatMap((command) => ['ENOSPC', 'EPIPE'].map((code) => [code, command] as const));
  it.each(refusals)('ends the command with 1 and a message (%s): %s', async (stdoutError, command) => {
    const { code, err } = await run(command, { ...terminal, stdoutError });
    expect(code).toBe(1);
    expect(err).toContain(`stdout cannot be written (${stdoutError}): the answer is missing or incomplete.`);
  });

  it('does not hide why the command itself failed', async () => {
    const { code, err } = await run('users find dora --json', { ...terminal, stdoutError: 'ENOSPC' });
    expect(code).toBe(1);
    expect(err).toContain('The service lists no user of this uid.');
    await service.goDown();
    expect(await run('users list --json', { ...terminal, stdoutError: 'ENOSPC' })).toMatchObject({ code: 4 });
    expect(await run('users list --json', { ...terminal, stdoutError: 'EPIPE' })).toMatchObject({ code: 4 });
  });
});

describe('a control character of the service', () => {
  const control = /(?!\n)\p{Cc}|[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/u;

  it.each(['users list', 'users find ben', 'users export --format csv', 'users export', 'users list --json'])(
    'does not reach a terminal: %s',
    async (command) => {
      const { code, out } = await run(command, { ...terminal, isOutTerminal: true });
      expect(code).toBe(0);
      expect(out).toContain('ben');
      expect(out).not.toMatch(control);
    },
  );

  it.each([
    ['on a terminal', true, {}, true],
    ['in a file', false, {}, false],
    ['where NO_COLOR is set', true, { NO_COLOR: '1' }, false],
  ])('is printed for the color of a verdict %s: %p', (_where, isTTY, env, isColored) => {
    const stdout = Object.assign(new PassThrough({ encoding: 'utf8' }), { isTTY });
    new Output({ stdout, stderr: new PassThrough(), env }).answer({}, '✓ keys\n✗ clock');
    const colored = '\u001b[32m✓\u001b[39m keys\n\u001b[31m✗\u001b[39m clock\n';
    expect(stdout.read()).toBe(isColored ? colored : '✓ keys\n✗ clock\n');
  });

  it('stays in the data of a pipe or a file', async () => {
    expect((await run('users export --format csv', terminal)).out).toContain('of \u001b[31m\u009b2J\r');
    const { users } = JSON.parse((await run('users list --json', terminal)).out) as { users: unknown[] };
    const kept = { last_name: 'of \u001b[31m\u009b2J\r', first_name: BIDIRECTIONAL };
    expect(users).toContainEqual(expect.objectContaining(kept));
  });

  it('reaches neither stdout nor stderr in what is said to people', async () => {
    const [stdout, stderr] = [new PassThrough({ encoding: 'utf8' }), new PassThrough({ encoding: 'utf8' })];
    const output = new Output({ stdout, stderr });
    const hostile = `a\u001b[31mb\u009b2Jc\rd\ne\tf${BIDIRECTIONAL}`;
    const harmless = `a\uFFFD[31mb\uFFFD2Jc\uFFFDd\ne\tf${'\uFFFD'.repeat(BIDIRECTIONAL.length)}`;
    output.note(hostile);
    output.failure(new Error(hostile));
    output.answer(undefined, hostile);
    await output.each(Readable.from([1]), () => hostile, 'HEADING');
    expect(stderr.read()).toBe(`${harmless}\n${harmless}\n`);
    expect(stdout.read()).toBe(`${harmless}\nHEADING\n${harmless}\n`);
  });
});
