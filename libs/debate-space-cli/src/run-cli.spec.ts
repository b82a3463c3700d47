import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { DebateSpaceSimulator } from 'debate-space-simulator';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import { runCli } from './run-cli.js';
import { configuredFor, keys, run } from './testing/command-line.js';

describe('a command line that cannot be understood', () => {
  it.each([
    ['users fnd ada', 'find'],
    ['users list --loud', '--loud'],
    ['users find', 'uid'],
    ['erasures', 'Usage: debate-space erasures'],
  ])('is refused: %s', async (command, part) => {
    const { code, out, err } = await run(command);
    expect(code).toBe(2);
    expect(out).toBe('');
    expect(err).toContain(part);
  });

  it('is answered in JSON with --json', async () => {
    const { out, err } = await run('users list --loud --json');
    expect(JSON.parse(out)).toEqual({
      error: { code: 'ERR_DEBATE_SPACE_CLI_USAGE', message: "error: unknown option '--loud'" },
    });
    expect(err).toContain("unknown option '--loud'");
  });
});

describe('where stdout and stderr are one file', () => {
  it('the verdict of the doctor is the last line, however late stdout takes the others', async () => {
    let written = '';
    const sink = (isLate: boolean): Writable =>
      new Writable({
        write: (chunk, _, done) => {
          const take = (): void => {
            written += String(chunk);
            done();
          };
          if (isLate) setImmediate(take);
          else take();
        },
      });
    const { signal } = new AbortController();
    const io = {
      env: {},
      folder: '/nowhere',
      stdin: new PassThrough(),
      stdout: sink(true),
      stderr: sink(false),
    };
    expect(await runCli(['doctor'], { ...io, interrupted: signal })).toBe(6);
    expect(written.trimEnd().split('\n').at(-1)).toMatch(/^\d+ problems? found\.$/);
  });
});

describe('the configuration', () => {
  let service: DebateSpaceSimulator;
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'cli-env-'));
    service = await DebateSpaceSimulator.start({
      apiKey: keys.DEBATE_SPACE_API_KEY,
      secretKey: keys.DEBATE_SPACE_SECRET_KEY,
      users: [{ uid: 'ada' }],
    });
  });
  afterEach(async () => {
    await service.stop();
    await rm(folder, { recursive: true });
  });

  const write = (name: string, variables: NodeJS.ProcessEnv): Promise<void> =>
    writeFile(
      join(folder, name),
      Object.entries(variables)
        .map(([key, value]) => `${key}="${value ?? ''}"\n`)
        .join(''),
    );

  it('comes from .env where the environment says nothing, or nothing but an empty text', async () => {
    await write('.env', configuredFor(service, { DEBATE_SPACE_APPLICATION_NAME: 'other' }));
    const env = { DEBATE_SPACE_API_KEY: '' };
    expect(await run('users find ada', { env, folder })).toMatchObject({ code: 0 });
    expect(await run('logout ada', { env, folder })).toMatchObject({ code: 4 });
    const named = { ...env, DEBATE_SPACE_APPLICATION_NAME: 'demo' };
    expect(await run('logout ada', { env: named, folder })).toMatchObject({ code: 0 });
  });

  it('comes from the file that is named, and no other', async () => {
    await write('.env', { DEBATE_SPACE_APPLICATION_NAME: 'other' });
    await write('stage.env', configuredFor(service));
    expect(await run('logout ada --config stage.env', { folder })).toMatchObject({ code: 0 });
    const { code, err } = await run('logout ada --config none.env', { folder });
    expect(code).toBe(3);
    expect(err).toContain('none.env cannot be read (ENOENT)');
  });

  it('is complete, or the problems are listed with their hints', async () => {
    const env = {
      ...keys,
      DEBATE_SPACE_STORAGE: 'oracle://db',
      DEBATE_SPACE_LIST_AUTH: 'none',
      DEBATE_SPACE_SECRET_KEY_ENCODING: 'hex',
      DEBATE_SPACE_ALLOW_INSECURE_HTTP: 'yes',
    };
    const { code, err } = await run('users list', { env });
    expect(code).toBe(3);
    for (const problem of [
      'DEBATE_SPACE_APPLICATION_NAME is not set; hint: it is the last part of the logout route',
      'DEBATE_SPACE_AUTH_URL is not set; hint: it is the host root',
      'DEBATE_SPACE_SECRET_KEY_ENCODING must be utf8 or base64',
      'DEBATE_SPACE_STORAGE must be memory, sqlite:<file>, or a URL postgres://…, mysql://… or mariadb://…',
      'DEBATE_SPACE_LIST_AUTH must be bearer or apiKey',
      'DEBATE_SPACE_ALLOW_INSECURE_HTTP must be true or false',
    ])
      expect(err).toContain(`  - ${problem}`);
    expect(err).not.toContain('oracle');
  });

  it('is refused in the words of its variables', async () => {
    const env = configuredFor(service, {
      DEBATE_SPACE_STORAGE_KEY: 'short',
      DEBATE_SPACE_AUTH_URL: 'http://example.org',
    });
    const { code, err } = await run('users list', { env });
    expect(code).toBe(3);
    expect(err).toContain('DEBATE_SPACE_AUTH_URL has the scheme http:');
    expect(err).toContain('only DEBATE_SPACE_ALLOW_INSECURE_HTTP permits it');
    expect(err).toContain('DEBATE_SPACE_STORAGE_KEY must have at least 16 characters');
  });

  it('may ask for the user list without a token', async () => {
    const env = configuredFor(service, { DEBATE_SPACE_LIST_AUTH: 'apiKey' });
    expect(await run('users find ada', { env })).toMatchObject({ code: 0 });
    expect(service.received.of('token')).toEqual([]);
  });

  it('distinguishes a service that refuses from one that is not configured', async () => {
    const env = configuredFor(service, {
      DEBATE_SPACE_SECRET_KEY: 'another secret key, long enough for HS256',
    });
    const { code, out, err } = await run('users list --json', { env });
    expect(code).toBe(4);
    expect(JSON.parse(out)).toMatchObject({ error: { code: 'ERR_DEBATE_SPACE_AUTHENTICATION' } });
    expect(err).not.toContain('another secret key');
  });
});
