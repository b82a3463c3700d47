import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { configuredFor, run } from '../../libs/debate-space-cli/src/testing/command-line.js';
import {
  sqliteFile,
  storageKey,
  storageServers,
  type StorageServer,
} from '../../libs/debate-space-cli/src/testing/storages.js';
import { freePort } from 'debate-space-fixtures/free-port.js';
import { scenario } from 'debate-space-fixtures/scenario.js';

interface Result {
  readonly check: string;
  readonly ok: boolean | null;
  readonly detail: string;
  readonly hint?: string;
}

const scene = scenario();
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cli-doctor-'));
  scene.afterwards(() => rm(folder, { recursive: true }));
});

async function examined(more: NodeJS.ProcessEnv = {}): Promise<{ code: number; results: readonly Result[] }> {
  const { code, out } = await run('doctor --json', { env: configuredFor(scene.service, more) });
  return { code, results: JSON.parse(out) as Result[] };
}

/** The problems, each with its hint. */
async function problems(more: NodeJS.ProcessEnv): Promise<Record<string, string>> {
  const { code, results } = await examined(more);
  const found = results.filter(({ ok }) => ok === false);
  expect(code).toBe(found.length > 0 ? 6 : 0);
  for (const { hint } of found) expect(hint).toMatch(/\w/);
  return Object.fromEntries(found.map(({ check, detail, hint = '' }) => [check, `${detail} → ${hint}`]));
}

describe('doctor', () => {
  it('finds no problem where all is well, and touches no user', async () => {
    const { code, results } = await examined(await sqliteFile(join(folder, 'debate-space.db')));
    expect(results.map(({ check, ok }) => [check, ok])).toEqual(
      ['options', 'address', 'clock', 'token', 'users', 'storage'].map((check) => [check, true]),
    );
    expect(code).toBe(0);
    const requests = scene.service.received.all.map(({ operation, accepted }) => [operation, accepted]);
    expect(requests).toEqual([
      ['logout', false],
      ['token', true],
      ['token', true],
      ['list', true],
    ]);
  });

  it('prints a line for each check, and under each problem its hint', async () => {
    const env = configuredFor(scene.service, { DEBATE_SPACE_APPLICATION_NAME: 'other' });
    const { code, out, err } = await run('doctor', { env });
    expect(code).toBe(6);
    expect(out).toMatch(/^✓ token +the service takes API key and secret key$/m);
    expect(out).toMatch(/^✗ address .*\n +→ Compare DEBATE_SPACE_APPLICATION_NAME/m);
    expect(out).toMatch(/^– storage +not checked: /m);
    expect(err).toContain('1 problem found.\n');
  });

  it('says what is missing, and sends nothing, where nothing is set', async () => {
    const { code, out } = await run('doctor', { env: {} });
    expect(code).toBe(6);
    expect(out.match(/^✗ options/gm)).toHaveLength(4);
    expect(out).toContain('– token      not checked: the options are wrong');
    expect(scene.service.received.count).toBe(0);
  });

  it.each([
    ['a wrong key', { DEBATE_SPACE_API_KEY: 'another-api-key' }, 'token', /compare DEBATE_SPACE_API_KEY/],
    ['an address that is no URL', { DEBATE_SPACE_AUTH_URL: 'nowhere' }, 'options', /DEBATE_SPACE_AUTH_URL/],
    [
      'plain http',
      { DEBATE_SPACE_AUTH_URL: 'http://debate.invalid' },
      'options',
      /DEBATE_SPACE_ALLOW_INSECURE_HTTP permits it → write it with https:/,
    ],
    [
      'a host that does not exist',
      { DEBATE_SPACE_AUTH_URL: 'https://debate.invalid' },
      'address',
      /debate\.invalid.*\((ENOTFOUND|EAI_AGAIN)\).*HTTPS_PROXY/,
    ],
    [
      'a key that is not Base64',
      { DEBATE_SPACE_SECRET_KEY_ENCODING: 'base64', DEBATE_SPACE_SECRET_KEY: 'no base64!' },
      'options',
      /DEBATE_SPACE_SECRET_KEY/,
    ],
  ])('finds %s', async (_what, env, check, problem) => {
    expect(await problems(env)).toMatchObject({ [check]: expect.stringMatching(problem) });
  });

  it('finds a host where nobody listens', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    expect(await problems({ DEBATE_SPACE_AUTH_URL: url })).toEqual({
      address: expect.stringContaining('ECONNREFUSED'),
    });
  });

  it('finds a clock that is wrong', async () => {
    scene.service.clockOffsetSeconds = 20;
    expect(await problems({})).toEqual({});
    scene.service.clockOffsetSeconds = -100;
    expect(await problems({})).toEqual({
      clock: expect.stringMatching(/1 min 4\d s ahead of .* → Set the clock/),
    });
  });

  it('does not take the page of a firewall for a refusal of the keys', async () => {
    const page = '<!doctype html><title>Blocked</title>';
    const blocked = { kind: 'body', status: 403, body: page, contentType: 'text/html' } as const;
    scene.service.faults.add({ ...blocked, operation: 'token' });
    expect(await problems({})).toEqual({
      token: expect.stringMatching(/403 with a web page/),
    });
  });

  it('finds logouts that are parked', async () => {
    const env = await sqliteFile(join(folder, 'debate-space.db'));
    scene.service.faults.add({ kind: 'status', status: 401, operation: 'logout', times: 1 });
    await run('logout alice --execute-here', { env: configuredFor(scene.service, env) });
    const found = await problems(env);
    expect(found).toEqual({ storage: expect.stringMatching(/1 logout parked.*outbox retry --all/) });
    expect(JSON.stringify(found)).not.toContain('alice');
  });

  it.each(['postgres', 'mysql'])(
    'finds a %s server that cannot be reached, and does not show the password',
    async (scheme) => {
      const url = `${scheme}://desk:hunter2@127.0.0.1:${await freePort()}/app`;
      const found = await problems({ ...storageKey, DEBATE_SPACE_STORAGE: url });
      expect(found).toEqual({
        storage: expect.stringMatching(/cannot be reached \(ECONNREFUSED\) → .*DEBATE_SPACE_STORAGE/),
      });
      expect(JSON.stringify(found)).not.toContain('hunter2');
    },
  );
});

for (const { engine, describe: describeServer, start } of storageServers)
  describeServer(`doctor with a storage in ${engine}`, () => {
    let server: StorageServer;
    beforeAll(async () => {
      server = await start();
    });
    afterAll(() => server.stop());

    it('finds a server that may lose commits in a crash, as that of the tests', async () => {
      expect(await problems(server.env)).toEqual({
        storage: expect.stringMatching(/may lose its last commits .* → set \w+ = /),
      });
    });

    it('finds that the tables are missing, and does not create them', async () => {
      const elsewhere = {
        DEBATE_SPACE_STORAGE_SCHEMA: 'elsewhere',
        DEBATE_SPACE_STORAGE_PREFIX: 'elsewhere_',
      };
      expect(await problems({ ...server.env, ...elsewhere })).toEqual({
        storage: expect.stringMatching(/not in .*elsewhere.* → .*DEBATE_SPACE_STORAGE_(SCHEMA|PREFIX)/),
      });
    });

    it('finds that the storage key is missing', async () => {
      const env = { ...server.env, DEBATE_SPACE_STORAGE_KEY: undefined };
      expect(await problems(env)).toEqual({
        options: expect.stringMatching(/DEBATE_SPACE_STORAGE_KEY is not set → .*storageKey of your app/),
      });
    });
  });
