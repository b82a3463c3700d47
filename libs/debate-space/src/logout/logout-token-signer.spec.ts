import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { createHmac } from 'node:crypto';
import { inspect } from 'node:util';
import { Secret } from '../secrets/secret.js';
import { LogoutTokenSigner, type LogoutTokenOptions } from './logout-token-signer.js';

type Json = Record<string, unknown>;
const key = 'a secret key of a test, long enough for HS512, that is 64 bytes.';
const logout = { uid: 'alice', id: 'logout-1' };

function signer(options: Partial<LogoutTokenOptions> & { key?: string } = {}): LogoutTokenSigner {
  return new LogoutTokenSigner({
    secretKey: new Secret(options.key ?? key),
    secretKeyEncoding: 'utf8',
    algorithm: 'HS256',
    issuer: 'demo',
    audience: 'the-api-key',
    lifetimeSeconds: 120,
    ...options,
  });
}

const json = (part = ''): Json => JSON.parse(Buffer.from(part, 'base64url').toString()) as Json;

/** Verified with nothing but a hash: RFC 7515 by hand. */
function verified(
  token: string,
  hash = 'sha256',
  secret: string | Buffer = key,
): { header: Json; claims: Json } {
  const [header = '', claims = '', signature, ...more] = token.split('.');
  expect(more).toEqual([]);
  expect(signature).toBe(createHmac(hash, secret).update(`${header}.${claims}`).digest('base64url'));
  return { header: json(header), claims: json(claims) };
}

describe('a logout token', () => {
  afterEach(() => {
    jest.useRealTimers();
  });

  it('has the header and every claim of Back-Channel Logout 1.0, and the id of the logout', async () => {
    jest.useFakeTimers({ now: 1_750_000_000_900, doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] });
    const { header, claims } = verified(await signer().sign(logout));
    expect(header).toEqual({ alg: 'HS256', typ: 'logout+jwt' });
    expect(claims).toEqual({
      iss: 'demo',
      aud: 'the-api-key',
      sub: 'alice',
      iat: 1_750_000_000,
      exp: 1_750_000_120,
      jti: expect.stringMatching(/^[0-9a-f-]{36}$/),
      txn: 'logout-1',
      events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
    });
  });

  it('is another one for every attempt: a fresh jti, the same txn', async () => {
    const one = signer();
    const tokens = await Promise.all(Array.from({ length: 20 }, () => one.sign(logout)));
    const all = tokens.map((token) => verified(token).claims);
    expect(new Set(all.map(({ jti }) => jti)).size).toBe(20);
    expect(new Set(all.map(({ txn }) => txn))).toEqual(new Set(['logout-1']));
  });

  it.each([
    ['HS256', 'sha256'],
    ['HS384', 'sha384'],
    ['HS512', 'sha512'],
  ] as const)('is signed with %s', async (algorithm, hash) => {
    const { header } = verified(await signer({ algorithm }).sign(logout), hash);
    expect(header.alg).toBe(algorithm);
  });

  it.each(['base64', 'base64url'] as const)(
    'is signed with the bytes of a %s key when secretKeyEncoding is base64',
    async (encoding) => {
      const bytes = Buffer.from(Array.from({ length: 47 }, (_, n) => 255 - n));
      const one = signer({ key: bytes.toString(encoding), secretKeyEncoding: 'base64' });
      verified(await one.sign(logout), 'sha256', bytes);
    },
  );

  it.each(['ü', 'x', '🦊 key'])('is signed with the UTF-8 bytes of the key %j', async (secret) => {
    verified(await signer({ key: secret }).sign(logout), 'sha256', Buffer.from(secret, 'utf8'));
  });

  it('has the issuer, audience and lifetime of the options', async () => {
    const one = signer({ issuer: 'https://host.example', audience: ['a', 'b'], lifetimeSeconds: 30 });
    const { claims } = verified(await one.sign(logout));
    expect(claims).toMatchObject({ iss: 'https://host.example', aud: ['a', 'b'] });
    expect(Number(claims.exp) - Number(claims.iat)).toBe(30);
  });

  it.each(['42', '007', '1e3', 'Zoë', '李🦊', 'a"b\\c', ' x ', 'null'])(
    'has the uid %j unchanged',
    async (uid) => {
      expect(verified(await signer().sign({ ...logout, uid })).claims.sub).toBe(uid);
    },
  );

  it.each([
    ['immediately', (claims: Json) => claims],
    ['later', (claims: Json) => Promise.resolve(claims)],
  ])('takes additional claims %s, which replace none and bring no nonce', async (_when, give) => {
    const ofSpecification = 'iss aud sub iat exp jti txn events'.split(' ');
    const given: Json = { tenant: 't-1', sid: 's', nonce: 'n' };
    for (const name of ofSpecification) given[name] = 0;
    const claims = jest.fn(() => give(given));
    const token = verified(await signer({ claims }).sign(logout)).claims;
    expect(claims.mock.calls).toEqual([[{ uid: 'alice' }]]);
    expect(Object.keys(token).sort()).toEqual([...ofSpecification, 'tenant', 'sid'].sort());
    expect(token).toMatchObject({ tenant: 't-1', sid: 's', sub: 'alice' });
    for (const name of ofSpecification) expect(token[name]).not.toBe(0);
    expect(given.nonce).toBe('n'); // the host's object stays as it is
  });

  it('dates from after the claims were found, however long that takes', async () => {
    jest.useFakeTimers({ now: 1_750_000_000_000, doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] });
    const one = signer({
      claims: () => {
        jest.setSystemTime(1_750_000_100_000);
        return Promise.resolve({});
      },
    });
    expect(verified(await one.sign(logout)).claims.iat).toBe(1_750_000_100);
  });

  it('is not made when the function for the claims throws', async () => {
    const one = signer({
      claims: () => {
        throw new Error('no database');
      },
    });
    await expect(one.sign(logout)).rejects.toThrow('no database');
  });
});

describe('the warning for a weak key', () => {
  it.each([
    ['HS256', 31, true],
    ['HS256', 32, false],
    ['HS384', 47, true],
    ['HS384', 48, false],
    ['HS512', 63, true],
    ['HS512', 64, false],
  ] as const)('is given for %s with %d bytes: %s', (algorithm, bytes, given) => {
    const weakness = signer({ algorithm }).weakness(new Secret('x'.repeat(bytes)));
    expect(weakness !== undefined).toBe(given);
    if (given) expect(weakness).toContain(`${bytes} bytes; ${algorithm} wants at least ${bytes + 1}`);
  });

  it('counts bytes, not characters, and decoded ones for Base64', () => {
    expect(signer().weakness(new Secret('ü'.repeat(16)))).toBeUndefined();
    expect(signer({ secretKeyEncoding: 'base64' }).weakness(new Secret('A'.repeat(40)))).toContain(
      '30 bytes',
    );
  });

  it('does not show the key', () => {
    expect(inspect(signer({ key: 'short-key' }), { depth: Infinity, showHidden: true })).not.toContain(
      'short-key',
    );
    expect(signer().weakness(new Secret('short-key'))).not.toContain('short-key');
  });
});
