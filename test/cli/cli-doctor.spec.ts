import { describe, expect, it } from '@jest/globals';
import { rm } from 'node:fs/promises';
import { Scene } from '../../libs/debate-space-cli/src/testing/command-line.js';
import { freePort } from '#support/servers/free-port.js';

interface Result {
  readonly check: string;
  readonly ok: boolean | null;
  readonly detail: string;
  readonly hint?: string;
}

const scene = new Scene();

async function examined(more: NodeJS.ProcessEnv = {}): Promise<{ code: number; results: readonly Result[] }> {
  const { code, out } = await scene.run('doctor --json', { env: { ...scene.env, ...more } });
  return { code, results: JSON.parse(out) as Result[] };
}

/** The problems, each with its hint. */
async function problems(more: NodeJS.ProcessEnv = {}): Promise<Record<string, string>> {
  const { code, results } = await examined(more);
  const found = results.filter(({ ok }) => ok === false);
  expect(code).toBe(found.length > 0 ? 6 : 0);
  for (const { hint } of found) expect(hint).toMatch(/\w/);
  return Object.fromEntries(found.map(({ check, detail, hint = '' }) => [check, `${detail} → ${hint}`]));
}

describe('doctor', () => {
  it('finds no problem where all is well, and changes no user', async () => {
    await scene.useSqlite();
    const { code, results } = await examined();
    expect([code, results.map(({ check, ok }) => [check, ok])]).toEqual([
      0,
      ['options', 'address', 'token', 'users', 'clock', 'storage'].map((check) => [check, true]),
    ]);
    const requests = scene.service.received.all.map(({ operation, accepted }) => [operation, accepted]);
    expect(requests.join(' ')).toBe('logout,false token,true token,true list,true');
  });

  it('prints a line for each check, and under each problem its hint', async () => {
    const env = { ...scene.env, DEBATE_SPACE_APPLICATION_NAME: 'other' };
    const { code, out, err } = await scene.run('doctor', { env });
    expect([code, err]).toEqual([6, expect.stringContaining('1 problem found.\n')]);
    expect(out).toMatch(/^✓ options +of application other$/m);
    expect(out).toMatch(/^✗ address +.* answers 404 .*\n +→ Compare DEBATE_SPACE_APPLICATION_NAME/m);
    expect(out).toMatch(/^– token +not checked: fix address first$/m);
    expect(out).toMatch(/^– storage +not checked: set DEBATE_SPACE_STORAGE/m);
  });

  it('says what is missing, and sends nothing, where nothing is set', async () => {
    const { code, out } = await scene.run('doctor', { env: {} });
    expect([code, out.match(/^✗ options/gm)?.length]).toEqual([6, 4]);
    expect(out).toContain('– token      not checked: fix options first');
    expect(scene.service.received.count).toBe(0);
  });

  it.each([
    ['a wrong key', { API_KEY: 'another-api-key' }, 'token', /DEBATE_SPACE_API_KEY/],
    ['an address that is no URL', { AUTH_URL: 'nowhere' }, 'options', /DEBATE_SPACE_AUTH_URL is not a URL/],
    ['plain http', { AUTH_URL: 'http://x.invalid' }, 'options', /ALLOW_INSECURE_HTTP permits it → .*https:/],
    ['an unknown host', { AUTH_URL: 'https://debate.invalid' }, 'address', /ENOTFOUND|EAI_AGAIN/],
    ['a short storage key', { STORAGE_KEY: 'hunter2' }, 'options', /STORAGE_KEY must have at least 16/],
  ])('finds %s, and shows no key', async (_what, env, check, problem) => {
    const named = Object.entries(env).map(([name, value]) => [`DEBATE_SPACE_${name}`, value] as const);
    const found = await problems(Object.fromEntries(named));
    expect(found).toEqual({ [check]: expect.stringMatching(problem) });
    expect(JSON.stringify(found)).not.toMatch(/another-api-key|hunter2|of a test/);
  });

  it('finds a host where nobody listens', async () => {
    await scene.service.goDown();
    expect(await problems()).toEqual({
      address: expect.stringMatching(/ECONNREFUSED.*DEBATE_SPACE_AUTH_URL/),
    });
  });

  it('finds something else that answers in place of the service', async () => {
    const body = '<!doctype html><title>Blocked</title>';
    const page = { kind: 'body', body, contentType: 'text/html' } as const;
    scene.service.faults.add({ ...page, status: 200, operation: 'logout', times: 1 });
    expect(await problems()).toEqual({ address: expect.stringContaining('answers 200') });
    scene.service.faults.add({ ...page, status: 403, operation: 'token' });
    expect(await problems()).toEqual({ token: expect.stringContaining('403 with a web page') });
  });

  it('finds a clock that is wrong', async () => {
    scene.service.clockOffsetSeconds = 20;
    expect(await problems()).toEqual({});
    scene.service.clockOffsetSeconds = -100;
    const clock = expect.stringMatching(/1 min 4\d s ahead of .* → Set the clock/);
    expect(await problems()).toEqual({ clock });
  });

  it('finds a storage that lacks its key file', async () => {
    const path = await scene.useSqlite();
    await scene.run('logout ada --no-wait');
    await rm(`${path}.key`);
    const storage = expect.stringMatching(/\.key is missing .* → restore it/);
    expect(await problems()).toEqual({ storage });
  });

  it('finds a server that cannot be reached, and does not show the password', async () => {
    const url = `postgres://desk:hunter2@127.0.0.1:${await freePort()}/app`;
    const found = await problems({
      DEBATE_SPACE_STORAGE_KEY: 'a-storage-key-of-a-test',
      DEBATE_SPACE_STORAGE: url,
    });
    const storage = expect.stringMatching(/failed \(ECONNREFUSED\)/);
    expect(found).toEqual({ storage });
    expect(JSON.stringify(found)).not.toContain('hunter2');
  });
});
