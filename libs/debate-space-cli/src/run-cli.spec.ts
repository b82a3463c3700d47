import { describe, expect, it } from '@jest/globals';
import { PassThrough, Writable } from 'node:stream';
import { runCli } from './run-cli.js';
import { configuredFor, run, Scene } from './testing/command-line.js';

describe('a command line that cannot be understood', () => {
  it.each([
    ['users fnd ada', 'find'],
    ['users list --loud', '--loud'],
    ['users find', 'uid'],
    ['erasures', 'Usage: debate-space erasures'],
  ])('is refused: %s', async (command, part) => {
    expect(await run(command)).toMatchObject({ code: 2, out: '', err: expect.stringContaining(part) });
  });

  it('is answered in JSON with --json', async () => {
    const { out, err } = await run('users list --loud --json');
    const message = "error: unknown option '--loud'";
    expect(JSON.parse(out)).toEqual({ error: { code: 'ERR_DEBATE_SPACE_CLI_USAGE', message } });
    expect(err).toContain(message);
  });
});

it('the verdict of a command comes last where stdout and stderr are one file, however late stdout is', async () => {
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
  const [stdin, stdout, stderr] = [new PassThrough(), sink(true), sink(false)];
  const interrupted = new AbortController().signal;
  const io = { env: {}, folder: '/nowhere', stdin, stdout, stderr, interrupted };
  expect(await runCli(['doctor'], io)).toBe(6);
  expect(written.trimEnd().split('\n').at(-1)).toBe('4 problems found.');
});

describe('the configuration', () => {
  const scene = new Scene();
  const write = (name: string, env: NodeJS.ProcessEnv): Promise<void> => {
    const lines = Object.entries(env).map(([key, value]) => `${key}="${value ?? ''}"\n`);
    return scene.write(name, lines.join(''));
  };

  it('comes from .env where the environment says nothing, or nothing but an empty text', async () => {
    await write('.env', configuredFor(scene.service, { DEBATE_SPACE_APPLICATION_NAME: 'other' }));
    const env = { DEBATE_SPACE_API_KEY: '' };
    expect(await scene.run('users find ada', { env })).toMatchObject({ code: 0 });
    expect(await scene.run('logout ada', { env })).toMatchObject({ code: 4 });
    const named = { ...env, DEBATE_SPACE_APPLICATION_NAME: 'demo' };
    expect(await scene.run('logout ada', { env: named })).toMatchObject({ code: 0 });
  });

  it('comes from the file that is named, and no other', async () => {
    await write('.env', { DEBATE_SPACE_APPLICATION_NAME: 'other' });
    await write('stage.env', configuredFor(scene.service));
    expect(await scene.run('logout ada --config stage.env', { env: {} })).toMatchObject({ code: 0 });
    const missing = await scene.run('logout ada --config none.env', { env: {} });
    expect(missing).toMatchObject({ code: 3, err: expect.stringContaining('cannot be read (ENOENT)') });
  });

  it.each([
    [{ STORAGE: 'oracle://db' }, 'STORAGE must be memory, sqlite:<file>, or a URL postgres://'],
    [{ ALLOW_INSECURE_HTTP: 'yes' }, 'ALLOW_INSECURE_HTTP must be true or false'],
    [{ RATE_LIMIT: 'no' }, 'RATE_LIMIT must be off, or requests/time such as 100/60s'],
    [
      { API_KEY: '' },
      'API_KEY must be a string (found nothing); hint: copy it from the administration panel',
    ],
    [
      { APPLICATION_NAME: '' },
      'APPLICATION_NAME must be a string (found nothing); hint: it is the last part',
    ],
    [{ SECRET_KEY_ENCODING: 'hex' }, "SECRET_KEY_ENCODING must be 'utf8' or 'base64' (found a string of 3"],
    [{ LIST_AUTH: 'none' }, "LIST_AUTH must be 'bearer' or 'apiKey' (found a string of 4 characters)"],
    [
      { STORAGE: 'mysql://127.0.0.1:1/app' },
      'STORAGE_KEY is not set; hint: give the option storageKey of your',
    ],
    [{ STORAGE_KEY: 'hunter2' }, 'STORAGE_KEY must have at least 16 characters'],
    [
      { AUTH_URL: 'http://x.org' },
      'AUTH_URL has the scheme http:, and only DEBATE_SPACE_ALLOW_INSECURE_HTTP',
    ],
  ])('is refused in the words of its variables, and shows no key: %j', async (wrong, problem) => {
    const named = Object.entries(wrong).map(([name, value]) => [`DEBATE_SPACE_${name}`, value] as const);
    const { code, err } = await run('users list', { env: { ...scene.env, ...Object.fromEntries(named) } });
    expect([code, err]).toEqual([3, expect.stringContaining(`  - DEBATE_SPACE_${problem}`)]);
    expect(err).not.toMatch(/oracle|of a test|hunter2/);
  });

  it('may ask for the user list without a token', async () => {
    const env = { ...scene.env, DEBATE_SPACE_LIST_AUTH: 'apiKey' };
    expect(await run('users find ada', { env })).toMatchObject({ code: 0 });
    expect(scene.service.received.of('token')).toEqual([]);
  });

  it('is told from a service that refuses the keys, and the keys are not shown', async () => {
    const env = { ...scene.env, DEBATE_SPACE_SECRET_KEY: 'another secret key, long enough for HS256' };
    const { code, out, err } = await run('users list --json', { env });
    expect(code).toBe(4);
    expect(JSON.parse(out)).toMatchObject({ error: { code: 'ERR_DEBATE_SPACE_AUTHENTICATION' } });
    expect(out + err).not.toMatch(/another secret key|api-key-of-a-test/);
  });
});
