import { afterEach, describe, expect, it } from '@jest/globals';
import { createHmac, generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { logOut, simulators } from '../testing/service-client.js';
import { encoded, logoutClaims, signedToken } from '../testing/signed-token.js';
import type { IdentityProvider, ProviderKey } from './identity-provider.js';

const start = simulators();
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const other = generateKeyPairSync('rsa', { modulusLength: 2048 });
const keyOf = ({ publicKey }: { publicKey: KeyObject }, more: object): ProviderKey => ({
  ...publicKey.export({ format: 'jwk' }),
  ...more,
});
const key = keyOf(rsa, { kid: 'one', use: 'sig', alg: 'RS256' });
const CLIENT = { clientId: 'debate-space', clientSecret: 'the secret of the debate space at its provider' };
const ISSUER = 'http://id.example.org';

interface Made {
  readonly issuer?: string;
  readonly claims?: Record<string, unknown>;
  readonly header?: Record<string, unknown>;
  readonly privateKey?: KeyObject;
}

/** As an identity provider signs it. */
function tokenOf({ issuer = ISSUER, claims, header, privateKey = rsa.privateKey }: Made = {}): string {
  const whole = { alg: 'RS256', typ: 'logout+jwt', kid: 'one', ...header };
  const input = `${encoded(whole)}.${encoded(logoutClaims({ iss: issuer, aud: CLIENT.clientId, ...claims }))}`;
  const signature =
    whole.alg === 'HS256'
      ? createHmac('sha256', CLIENT.clientSecret).update(input).digest()
      : sign('sha256', Buffer.from(input), privateKey);
  return `${input}.${signature.toString('base64url')}`;
}

const withKeys = (more: Partial<IdentityProvider> = {}): IdentityProvider => ({
  issuer: ISSUER,
  ...CLIENT,
  jwks: { keys: [key] },
  ...more,
});

describe('a logout token of the identity provider', () => {
  it.each<[string, Made]>([
    ['RS256', {}],
    ['HS256', { header: { alg: 'HS256', kid: undefined } }],
    ['RS256 without a kid', { header: { kid: undefined } }],
    ['a session id', { claims: { sid: 'of the provider' } }],
    ['an aud array', { claims: { aud: ['host', CLIENT.clientId] } }],
  ])('ends the debate session, with %s', async (_what, made) => {
    const sim = await start({ identityProvider: withKeys() });
    sim.debate.signIn('u-1');
    expect((await logOut(sim, tokenOf(made))).status).toBe(200);
    expect(sim.received.logouts).toEqual(['u-1']);
    expect(sim.debate.isSignedIn('u-1')).toBe(false);
  });

  it.each<[string, Made, string]>([
    ['the API key for aud', { claims: { aud: 'demo-api-key' } }, 'aud does not name the client at the'],
    [
      'another issuer',
      { claims: { iss: `${ISSUER}/` } },
      'iss is neither the issuer of the identity provider',
    ],
    ['another key', { privateKey: other.privateKey }, 'the signature does not match'],
    ['an unknown kid', { header: { kid: 'two' } }, 'no key of the identity provider has this kid'],
    ['another algorithm', { header: { alg: 'PS256' } }, 'alg is not accepted'],
    ['alg none', { header: { alg: 'none' } }, 'alg is not accepted'],
    ['another typ', { header: { typ: 'JWT' } }, 'typ is not logout+jwt'],
    ['a critical extension', { header: { crit: ['b64'] } }, 'crit'],
    ['no sub', { claims: { sub: undefined } }, 'sub is not'],
    ['no event', { claims: { events: {} } }, 'events lacks'],
    ['a nonce', { claims: { nonce: 'n' } }, 'nonce is forbidden'],
  ])('is refused with %s', async (_what, made, reason) => {
    const sim = await start({ identityProvider: withKeys() });
    sim.debate.signIn('u-1');
    const response = await logOut(sim, tokenOf(made));
    expect([response.status, response.headers.get('cache-control')]).toEqual([400, 'no-store']);
    expect(sim.received.all).toMatchObject([{ accepted: false, reason: expect.stringContaining(reason) }]);
    expect(sim.debate.isSignedIn('u-1')).toBe(true);
  });

  it('is refused with a jti that was seen before', async () => {
    const sim = await start({ identityProvider: withKeys() });
    const token = tokenOf();
    expect((await logOut(sim, token)).status).toBe(200);
    expect((await logOut(sim, token)).status).toBe(400);
    expect(sim.received.all[1]?.reason).toContain('jti was seen before');
  });

  it('is not verified with the public key as a secret', async () => {
    const sim = await start({ identityProvider: withKeys({ clientSecret: undefined }) });
    await logOut(sim, tokenOf({ header: { alg: 'HS256' } }));
    expect(sim.received.all[0]?.reason).toContain('alg HS256 needs the secret of the client');
  });

  it('is refused where no identity provider is set up', async () => {
    const sim = await start();
    await logOut(sim, tokenOf());
    expect(sim.received.all[0]?.reason).toContain('alg is not accepted');
  });

  it('leaves those of the application as they are', async () => {
    const sim = await start({ identityProvider: withKeys() });
    expect((await logOut(sim, signedToken())).status).toBe(200);
    expect((await logOut(sim, signedToken(logoutClaims({ aud: CLIENT.clientId })))).status).toBe(400);
    expect(sim.received.all[1]?.reason).toContain('aud does not name the API key');
  });
});

describe('the keys of the identity provider', () => {
  let server: Server | undefined;
  afterEach(() => {
    server?.closeAllConnections();
    server?.close();
  });

  /** An identity provider that has nothing but its keys. */
  async function provider(documents: (url: string) => Readonly<Record<string, unknown>>) {
    const asked: string[] = [];
    server = createServer(({ url = '' }, response) => {
      asked.push(url);
      const document = documents(issuer)[url];
      response.writeHead(document === undefined ? 404 : 200).end(JSON.stringify(document));
    });
    await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
    const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return { asked, issuer };
  }
  const DISCOVERY = '/.well-known/openid-configuration';

  it('are found by discovery, once', async () => {
    const { asked, issuer } = await provider((url) => ({
      [DISCOVERY]: { issuer: url, jwks_uri: `${url}/jwks` },
      '/jwks': { keys: [keyOf(other, { kid: 'encryption', use: 'enc' }), key] },
    }));
    const sim = await start({ identityProvider: { issuer, ...CLIENT } });
    expect(asked).toEqual([]);
    for (let n = 0; n < 2; n += 1) expect((await logOut(sim, tokenOf({ issuer }))).status).toBe(200);
    expect(asked).toEqual([DISCOVERY, '/jwks']);
  });

  it('are fetched again for a token of a new key', async () => {
    const keys = [key];
    const { asked, issuer } = await provider(() => ({ '/keys': { keys } }));
    const sim = await start({ identityProvider: { issuer, ...CLIENT, jwksUri: `${issuer}/keys` } });
    expect((await logOut(sim, tokenOf({ issuer }))).status).toBe(200);
    keys.push(keyOf(other, { kid: 'two' }));
    const rotated = tokenOf({ issuer, header: { kid: 'two' }, privateKey: other.privateKey });
    expect((await logOut(sim, rotated)).status).toBe(200);
    expect(asked).toEqual(['/keys', '/keys']);
  });

  it.each<[string, (url: string) => Readonly<Record<string, unknown>>, string]>([
    ['there is no discovery document', () => ({}), 'it answers 404'],
    ['it is of another issuer', () => ({ [DISCOVERY]: { issuer: ISSUER } }), 'is of another issuer'],
    ['it names no keys', (url) => ({ [DISCOVERY]: { issuer: url } }), 'has no jwks_uri'],
    [
      'the keys are none',
      (url) => ({ [DISCOVERY]: { issuer: url, jwks_uri: `${url}/jwks` }, '/jwks': { keys: 1 } }),
      'its JWK set has no keys',
    ],
    ['it is no object', () => ({ [DISCOVERY]: [] }), 'does not answer with a JSON object'],
  ])('cannot be read when %s, and the token is refused', async (_what, documents, reason) => {
    const { issuer } = await provider(documents);
    const sim = await start({ identityProvider: { issuer, ...CLIENT } });
    expect((await logOut(sim, tokenOf({ issuer }))).status).toBe(400);
    expect(sim.received.all[0]?.reason).toContain('the keys of the identity provider cannot be read');
    expect(sim.received.all[0]?.reason).toContain(reason);
  });

  it('cannot be read while the provider is away, and later can', async () => {
    const { issuer } = await provider(() => ({}));
    server?.close();
    const sim = await start({ identityProvider: { issuer, ...CLIENT } });
    await logOut(sim, tokenOf({ issuer }));
    expect(sim.received.all[0]?.reason).toContain('it does not answer with JSON');
  });
});

describe('the option identityProvider', () => {
  it.each<[Partial<IdentityProvider>, string]>([
    [{ issuer: 'id.example.org' }, 'Option "identityProvider.issuer" must be an http or https URL.'],
    [{ jwksUri: 'file:///keys' }, 'Option "identityProvider.jwksUri" must be an http or https URL.'],
    [{ clientId: '' }, 'Option "identityProvider.clientId" must not be empty.'],
    [{ clientSecret: '' }, 'Option "identityProvider.clientSecret" must not be empty.'],
  ])('is refused with %j', async (more, message) => {
    await expect(start({ identityProvider: withKeys(more) })).rejects.toThrow(new TypeError(message));
  });
});
