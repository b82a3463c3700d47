import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
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
import { programOf } from 'debate-space-fixtures/program.js';
import { startProxy, type ProxyServer } from 'debate-space-fixtures/proxy.js';
import { scenario } from 'debate-space-fixtures/scenario.js';
import { selfSigned } from 'debate-space-fixtures/self-signed.js';

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

/** The faults, each with its hint. */
async function faults(more: NodeJS.ProcessEnv): Promise<Record<string, string>> {
  const { code, results } = await examined(more);
  const found = results.filter(({ ok }) => ok === false);
  expect(code).toBe(found.length > 0 ? 6 : 0);
  for (const { hint } of found) expect(hint).toMatch(/\w/);
  return Object.fromEntries(found.map(({ check, detail, hint = '' }) => [check, `${detail} → ${hint}`]));
}

describe('doctor', () => {
  it('finds no fault where all is well, and touches no user', async () => {
    const { code, results } = await examined(await sqliteFile(join(folder, 'debate-space.db')));
    expect(code).toBe(0);
    expect(results.map(({ check, ok }) => [check, ok])).toEqual([
      ['values', true],
      ['secret-length', true],
      ['secret-encoding', true],
      ['address', true],
      ['proxy', true],
      ['reachability', true],
      ['clock', true],
      ['application-name', true],
      ['keys', true],
      ['scope-authentication', true],
      ['scope-public', true],
      ['storage', true],
      ['storage-settings', true],
      ['pending', true],
      ['parked', true],
      ['erasures', true],
    ]);
    const asked = scene.service.received.all.map(({ operation, accepted }) => [operation, accepted]);
    expect(asked).toEqual([
      ['logout', false],
      ['token', true],
      ['token', true],
      ['list', true],
    ]);
  });

  it('prints a line for each check, and under each fault its hint', async () => {
    const { code, out, err } = await run('doctor', {
      env: configuredFor(scene.service, { DEBATE_SPACE_APPLICATION_NAME: 'other' }),
    });
    expect(code).toBe(6);
    expect(out).toMatch(/^✓ keys +the service takes API key and secret key$/m);
    expect(out).toMatch(/^✗ application-name .*\n +→ Compare DEBATE_SPACE_APPLICATION_NAME/m);
    expect(out).toMatch(/^– pending +not checked: /m);
    expect(err).toBe('1 problem found.\n');
  });

  it('says only what is missing where nothing is set', async () => {
    const { code, out } = await run('doctor', { env: {} });
    expect(code).toBe(6);
    expect(out.match(/^✗ values/gm)).toHaveLength(4);
    expect(out).not.toContain('not checked');
  });

  it('finds a wrong secret', async () => {
    const found = await faults({ DEBATE_SPACE_SECRET_KEY: 'another secret key, long enough for HS256' });
    expect(found).toEqual({
      keys: expect.stringMatching(/knows the API key, and refuses the secret key.*DEBATE_SPACE_SECRET_KEY/),
    });
  });

  it('does not take the page of a firewall for refused keys', async () => {
    const page = '<!doctype html><title>Blocked</title>';
    const blocked = { kind: 'body', status: 403, body: page, contentType: 'text/html' } as const;
    scene.service.faults.add({ ...blocked, operation: 'token' });
    expect(await faults({})).toEqual({
      keys: expect.stringMatching(/answers 403 with a web page → Something else than the service answers/),
    });
  });

  it('finds a wrong API key', async () => {
    const found = await faults({ DEBATE_SPACE_API_KEY: 'another-api-key' });
    expect(found).toEqual({ keys: expect.stringMatching(/does not know the API key.*DEBATE_SPACE_API_KEY/) });
  });

  it('finds a wrong application name', async () => {
    const found = await faults({ DEBATE_SPACE_APPLICATION_NAME: 'other' });
    expect(found).toEqual({ 'application-name': expect.stringContaining('DEBATE_SPACE_APPLICATION_NAME') });
  });

  it.each([
    [120, 'behind'],
    [-120, 'ahead of'],
  ])('finds a clock that is two minutes off (%d s)', async (seconds, where) => {
    scene.service.clockOffsetSeconds = seconds;
    const found = await faults({});
    expect(found).toEqual({
      clock: expect.stringMatching(new RegExp(`is (2 min|1 min 5\\d s|2 min 1 s) ${where}.*NTP`)),
    });
  });

  it('takes a clock that is a few seconds off', async () => {
    scene.service.clockOffsetSeconds = 20;
    expect(await faults({})).toEqual({});
  });

  it('finds http instead of https, and sends no key to such an address', async () => {
    const open = await scene.startService({ host: '0.0.0.0' });
    const http = open.url.replace(/\/\/[^:]+:/, '//0.0.0.0:');
    const { results } = await examined({ DEBATE_SPACE_AUTH_URL: http });
    const hint = expect.stringMatching(/https:.*keys and tokens travel/);
    expect(results).toContainEqual({
      check: 'address',
      ok: false,
      detail: expect.stringContaining('http:'),
      hint,
    });
    expect(results).toContainEqual({
      check: 'keys',
      ok: null,
      detail: expect.stringContaining('travel readable'),
    });
    expect(open.received.of('token')).toEqual([]);

    const found = await faults({ DEBATE_SPACE_AUTH_URL: http, DEBATE_SPACE_ALLOW_INSECURE_HTTP: 'true' });
    expect(found).toEqual({
      address: expect.stringContaining('DEBATE_SPACE_ALLOW_INSECURE_HTTP permits it'),
    });
    expect(open.received.of('token')).toHaveLength(2);
  });

  it('finds a host that does not exist', async () => {
    const found = await faults({ DEBATE_SPACE_AUTH_URL: 'https://debate.invalid' });
    expect(found).toEqual({
      reachability: expect.stringMatching(/debate\.invalid: the host is not found \(\w+\).*DNS/),
    });
  });

  it('finds a host where nobody listens', async () => {
    const found = await faults({ DEBATE_SPACE_AUTH_URL: `http://127.0.0.1:${await freePort()}` });
    expect(found).toEqual({
      reachability: expect.stringMatching(/refuses the connection \(ECONNREFUSED\).*port/),
    });
  });

  it('finds values that are missing, malformed or short, and goes on with the others', async () => {
    const env = {
      DEBATE_SPACE_AUTH_URL: scene.service.url,
      DEBATE_SPACE_SECRET_KEY: 'short',
      DEBATE_SPACE_RATE_LIMIT: 'no',
    };
    const { code, out } = await run('doctor --json', { env });
    const results = JSON.parse(out) as Result[];
    expect(code).toBe(6);
    const details = results.filter(({ check }) => check === 'values').map(({ detail }) => detail);
    expect(details).toEqual([
      'DEBATE_SPACE_API_KEY is not set',
      'DEBATE_SPACE_APPLICATION_NAME is not set',
      'DEBATE_SPACE_RATE_LIMIT must be off, or requests/time such as 100/60s',
    ]);
    expect(results).toContainEqual({
      check: 'values',
      ok: false,
      detail: 'DEBATE_SPACE_API_KEY is not set',
      hint: 'copy it from the administration panel, Configuration > General',
    });
    expect(results).toContainEqual(expect.objectContaining({ check: 'secret-length', ok: false }));
    expect(results).toContainEqual(expect.objectContaining({ check: 'reachability', ok: true }));
    expect(results).toContainEqual(expect.objectContaining({ check: 'keys', ok: null }));
    expect(out).not.toContain('short');
  });

  it('finds an address that is no URL, or that of the API', async () => {
    expect(await faults({ DEBATE_SPACE_AUTH_URL: 'debate.example.org' })).toMatchObject({
      address: expect.stringContaining('DEBATE_SPACE_AUTH_URL is not a URL'),
    });
    expect(await faults({ DEBATE_SPACE_AUTH_URL: scene.service.baseUrl })).toMatchObject({
      address:
        'DEBATE_SPACE_AUTH_URL ends like the address of the API; it is the host root → leave out /api/v1, or give that address as DEBATE_SPACE_BASE_URL',
    });
    expect(await faults({ DEBATE_SPACE_BASE_URL: `${scene.service.url}/api/v2` })).toEqual({
      'scope-public': expect.stringContaining('DEBATE_SPACE_BASE_URL'),
    });
  });

  it('mentions that a secret may be meant as Base64, and finds one that is not Base64', async () => {
    const secret = Buffer.alloc(48, 'secret').toString('base64');
    const { results } = await examined({ DEBATE_SPACE_SECRET_KEY: secret });
    expect(results).toContainEqual({
      check: 'secret-encoding',
      ok: true,
      detail: expect.stringContaining('DEBATE_SPACE_SECRET_KEY_ENCODING=base64'),
    });
    expect(await faults({ DEBATE_SPACE_SECRET_KEY_ENCODING: 'base64' })).toMatchObject({
      values: expect.stringContaining('is not Base64'),
    });
  });

  it('finds a scope that is not granted', async () => {
    scene.service.faults.add({
      kind: 'status',
      status: 400,
      operation: 'token',
      body: { error: 'invalid_scope' },
      times: 1,
    });
    expect(await faults({})).toEqual({ 'scope-authentication': expect.stringContaining('erasures need it') });
  });

  it('does not blame the keys for a service that fails', async () => {
    scene.service.faults.add({ kind: 'status', status: 503 });
    const { results } = await examined();
    expect(results).toContainEqual({
      check: 'keys',
      ok: false,
      detail: 'the token route answers 503',
      hint: 'Try again later.',
    });
    expect(results).toContainEqual({
      check: 'application-name',
      ok: null,
      detail: expect.stringContaining('503'),
    });
  });

  it('does not show a header of the service that is no number', async () => {
    // The bytes of U+009B, which begins a control sequence as ESC [ does.
    scene.service.faults.add({
      kind: 'status',
      status: 200,
      operation: 'list',
      headers: { total: '\u00c2\u009b2J' },
      body: [],
    });
    const { out } = await run('doctor', { env: configuredFor(scene.service) });
    expect(out).toMatch(/^✓ scope-public +the user list answers$/m);
    expect((await run('doctor --json', { env: configuredFor(scene.service) })).out).not.toContain('\u009b');
  });

  it('finds logouts that are parked', async () => {
    const env = await sqliteFile(join(folder, 'debate-space.db'));
    scene.service.faults.add({ kind: 'status', status: 401, operation: 'logout', times: 1 });
    await run('logout alice --execute-here', { env: configuredFor(scene.service, env) });
    const found = await faults(env);
    expect(found).toEqual({ parked: expect.stringMatching(/1 logout parked \(401\).*outbox retry --all/) });
    expect(JSON.stringify(found)).not.toContain('alice');
  });

  it.each([
    ['Postgres', 'postgres'],
    ['MySQL', 'mysql'],
  ])('finds a storage in %s that cannot be reached, and does not show its password', async (name, scheme) => {
    const url = `${scheme}://desk:hunter2@127.0.0.1:${await freePort()}/app`;
    const found = await faults({ ...storageKey, DEBATE_SPACE_STORAGE: url });
    const problem = new RegExp(`${name} cannot be reached \\(ECONNREFUSED\\) → .*DEBATE_SPACE_STORAGE`);
    expect(found).toEqual({ storage: expect.stringMatching(problem) });
    expect(JSON.stringify(found)).not.toContain('hunter2');
  });

  it('finds a storage key that is too short, and one that is the API key, and shows neither', async () => {
    const keys = `short-key, ${configuredFor(scene.service, {}).DEBATE_SPACE_API_KEY}`;
    const file = await sqliteFile(join(folder, 'debate-space.db'));
    const { results } = await examined({ ...file, DEBATE_SPACE_STORAGE_KEY: keys });
    const wrong = JSON.stringify(results.filter(({ check }) => check === 'values'));
    expect(wrong).toContain('DEBATE_SPACE_STORAGE_KEY.0 must have at least 16 characters');
    expect(wrong).toContain('DEBATE_SPACE_STORAGE_KEY.1 has the value of DEBATE_SPACE_API_KEY');
    for (const key of keys.split(', ')) expect(wrong).not.toContain(key);
  });
});

describe('doctor behind a proxy', () => {
  const names = ['http_proxy', 'https_proxy', 'all_proxy', 'no_proxy'].flatMap((name) => [
    name,
    name.toUpperCase(),
  ]);
  let before: Record<string, string | undefined>;
  let proxy: ProxyServer;
  beforeEach(async () => {
    before = Object.fromEntries(names.map((name) => [name, process.env[name]]));
    for (const name of names) Reflect.deleteProperty(process.env, name);
    proxy = await startProxy(scene.service.url);
  });
  afterEach(async () => {
    for (const [name, value] of Object.entries(before)) {
      if (value === undefined) Reflect.deleteProperty(process.env, name);
      else process.env[name] = value;
    }
    await proxy.stop();
  });

  it.each([
    ['HTTP_PROXY', 'http://[::', 'http://debate.example.org'],
    ['HTTPS_PROXY', 'http://user:secret@[::', 'https://debate.example.org'],
    ['https_proxy', 'socks5://user:secret@proxy:1080', 'https://debate.example.org'],
    ['ALL_PROXY', 'http://user:secret@:3128', 'https://debate.example.org'],
  ])('finds that %s is not the URL of a proxy: %s', async (name, value, address) => {
    process.env[name] = value;
    const { code, results } = await examined({ DEBATE_SPACE_AUTH_URL: address });
    expect(code).toBe(6);
    const hint = expect.stringContaining(`Set ${name} to an http: or https: URL`);
    expect(results).toContainEqual({
      check: 'proxy',
      ok: false,
      detail: `${name} is not the URL of a proxy`,
      hint,
    });
    for (const check of ['reachability', 'clock', 'application-name', 'keys', 'scope-public'])
      expect(results).toContainEqual({ check, ok: null, detail: 'not checked: there is no usable proxy' });
    expect(JSON.stringify(results)).not.toContain('secret@');
  });

  it('sends nothing for loopback through the proxy', async () => {
    process.env.HTTP_PROXY = proxy.url;
    expect(await faults({})).toEqual({});
    expect(scene.service.received.of('token')).toHaveLength(2);
    expect(proxy.requests).toEqual([]);
  });

  it('asks the service through the proxy, with a password in which a % is not escaped', async () => {
    process.env.HTTP_PROXY = proxy.url.replace('//', '//desk:50%@');
    const { results } = await examined({
      DEBATE_SPACE_AUTH_URL: 'http://debate.example.org',
      DEBATE_SPACE_ALLOW_INSECURE_HTTP: 'true',
    });
    expect(results).toContainEqual({
      check: 'proxy',
      ok: true,
      detail: `${new URL(proxy.url).host}, of HTTP_PROXY`,
    });
    expect(results).toContainEqual(expect.objectContaining({ check: 'scope-public', ok: true }));
    const authorization = `Basic ${Buffer.from('desk:50%').toString('base64')}`;
    expect(proxy.requests[0]).toEqual({ url: 'http://debate.example.org/auth/logout/demo', authorization });
  });
});

for (const { engine, describe: describeThese, start } of storageServers)
  describeThese(`doctor with a storage on a server of ${engine}`, () => {
    let server: StorageServer;
    beforeAll(async () => {
      server = await start();
    });
    afterAll(async () => {
      await server.stop();
    });

    it('finds a server that may lose commits in a crash, as that of the tests, and no other fault', async () => {
      expect(await faults(server.env)).toEqual({
        'storage-settings': expect.stringMatching(/may lose its last commits .* → set \w+ = /),
      });
    });

    it('finds that the tables are missing, and does not create them', async () => {
      const elsewhere = {
        DEBATE_SPACE_STORAGE_SCHEMA: 'elsewhere',
        DEBATE_SPACE_STORAGE_PREFIX: 'elsewhere_',
      };
      const found = await faults({ ...server.env, ...elsewhere });
      expect(found).toEqual({
        storage: expect.stringMatching(/not in .*elsewhere.* → .*DEBATE_SPACE_STORAGE_(SCHEMA|PREFIX)/),
      });
    });

    it('finds a database that does not exist', async () => {
      const url = server.env.DEBATE_SPACE_STORAGE?.replace(/\w+$/, 'nothing');
      const found = await faults({ ...server.env, DEBATE_SPACE_STORAGE: url });
      expect(found).toEqual({
        storage: expect.stringMatching(/cannot be reached \((3D000|ER_BAD_DB_ERROR)\)/),
      });
    });

    it('finds that the storage key is missing', async () => {
      const env = { ...server.env, DEBATE_SPACE_STORAGE_KEY: undefined };
      expect(await faults(env)).toEqual({
        values: expect.stringMatching(/DEBATE_SPACE_STORAGE_KEY is not set → .*storageKey of your app/),
      });
      const { results } = await examined(env);
      expect(results).toContainEqual(expect.objectContaining({ check: 'storage', ok: null }));
    });

    it('takes a new storage key in front of the present one', async () => {
      const keys = `a-new-storage-key-of-a-test,${server.env.DEBATE_SPACE_STORAGE_KEY ?? ''}`;
      const found = await faults({ ...server.env, DEBATE_SPACE_STORAGE_KEY: keys });
      expect(Object.keys(found)).toEqual(['storage-settings']);
    });
  });

programOf('openssl', 'OpenSSL').describe('doctor with an https: address', () => {
  let server: Server;
  afterEach(() => {
    server.close();
  });

  /** A certificate of its own making. */
  async function serve(...more: string[]): Promise<string> {
    server = createServer(await selfSigned(folder, ...more));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return `https://localhost:${(server.address() as AddressInfo).port}`;
  }

  it('finds a certificate that nobody trusts', async () => {
    const found = await faults({ DEBATE_SPACE_AUTH_URL: await serve() });
    expect(found).toEqual({
      tls: expect.stringMatching(/\(DEPTH_ZERO_SELF_SIGNED_CERT\).*NODE_EXTRA_CA_CERTS/),
    });
  });

  it('finds a port that does not speak TLS', async () => {
    server = createServer(); // closed afterwards, whatever the test did
    const found = await faults({ DEBATE_SPACE_AUTH_URL: scene.service.url.replace('http:', 'https:') });
    expect(found).toEqual({ tls: expect.stringContaining('does not speak TLS') });
  });
});
