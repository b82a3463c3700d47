import { describe, expect, it } from '@jest/globals';
import { setMaxListeners } from 'node:events';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { serviceClients, type ScriptedAnswer } from '#support/service/service-clients.js';
import { keys } from '#support/service/service.js';
import { decide } from '../../logout/delivery-policy.js';
import { Secret } from '../../secrets/secret.js';
import { fetchToken } from '../calls/access-tokens.js';
import { backchannelLogoutUrl, LogoutRoute } from '../calls/logout-route.js';
import { Transport } from './transport.js';

const { scripted, client } = serviceClients();
const never = new AbortController().signal;
setMaxListeners(0, never);

const json = { 'content-type': 'application/json' };
const YES = { success: true, access_token: 'a-token', data: [{ uid: 'alice', full_name: 'Zoë 李' }] };
const NO = { success: false, data: [{ uid: 'alice', full_name: 'Zoë 李' }], error: 'locked' };
const PAGE = '<!doctype html><title>Maintenance</title><p>Back at 7';

type Answer = Exclude<ScriptedAnswer, string>;
type Encode = (text: string) => Answer;
const coded =
  (coding: string, ...steps: ((bytes: Buffer) => Buffer)[]): Encode =>
  (text) => ({
    headers: { ...json, 'content-encoding': coding },
    body: steps.reduce<Buffer>((bytes, step) => step(bytes), Buffer.from(text)),
  });
const charset =
  (label: string, encode: (text: string) => Buffer): Encode =>
  (text) => ({
    headers: { 'content-type': `application/json; charset=${label}` },
    body: encode(text),
  });
const utf16be = (text: string): Buffer => Buffer.from(text, 'utf16le').swap16();
const MARK = '\uFEFF';

/** The same text means the same in each of them. */
const encodings: Readonly<Record<string, Encode>> = {
  'no coding': (text) => ({ headers: json, body: text }),
  gzip: coded('gzip', gzipSync),
  'x-gzip in capitals': coded('X-GZIP', gzipSync),
  brotli: coded('br', brotliCompressSync),
  deflate: coded('deflate', deflateSync),
  'deflate without its header': coded('deflate', deflateRawSync),
  'deflate in gzip': coded('deflate, gzip', deflateSync, gzipSync),
  'gzip in brotli, and identity': coded('gzip, identity, br', gzipSync, brotliCompressSync),
  'a coding that does not exist': coded('utf-8'),
  'UTF-8 with a byte order mark': (text) => ({ headers: json, body: MARK + text }),
  'UTF-8 in an upper-case label': charset('"UTF-8"', (text) => Buffer.from(text)),
  'UTF-16': charset('utf-16', (text) => Buffer.from(text, 'utf16le')),
  'big-endian UTF-16': charset('utf-16be', utf16be),
  'UTF-16 by its byte order mark alone': (text) => ({
    headers: json,
    body: Buffer.from(MARK + text, 'utf16le'),
  }),
  'big-endian UTF-16 by its mark': charset('utf-16', (text) => utf16be(MARK + text)),
  'an answer without a type': (text) => ({ body: text }),
  'JSON as HTML': (text) => ({ headers: { 'content-type': 'text/html' }, body: text }),
  'a type of its own': (text) => ({ headers: { 'content-type': 'application/vnd.api+json' }, body: text }),
};

const text = JSON.stringify(NO);
const plain = (body: string | Buffer): Answer => ({ headers: { 'content-type': 'text/plain' }, body });
const typed = (type: string, body: string | Buffer): Answer => ({ headers: { 'content-type': type }, body });
const filled = (piece: string, bytes: number): string => piece.repeat(Math.ceil(bytes / piece.length));
const TEN_MIB = 10 * 1024 * 1024;

/** Answers that no adapter may read as a success: no user is erased or logged out, and there is no token and no list. */
const spoilt: Readonly<Record<string, Answer>> = {
  // Sizes.
  '10 MiB of empty objects': { headers: json, body: `[${filled('{},', TEN_MIB)}{}]` },
  '10 MiB of blanks': { headers: json, body: `${filled(' ', TEN_MIB)}{}` },
  '10 MiB of one text': { headers: json, body: `{"success":"${filled('x', TEN_MIB)}"}` },
  'a bomb of gzip': {
    headers: { ...json, 'content-encoding': 'gzip' },
    body: gzipSync(Buffer.alloc(TEN_MIB, '[')),
  },
  'a bomb of brotli': {
    headers: { ...json, 'content-encoding': 'br' },
    body: brotliCompressSync(Buffer.alloc(TEN_MIB)),
  },
  'a bomb in a bomb': coded('gzip, gzip', gzipSync, gzipSync)(filled(' ', TEN_MIB)),
  'a page of 100 KiB': typed('text/html', PAGE + filled('x', 100_000)),
  'a body that is cut off by its length': { headers: { ...json, 'content-length': '9' }, body: text },
  // Codings.
  'gzip that is announced only': coded('gzip')(text),
  'gzip that is not announced': plain(gzipSync(text)),
  'gzip that is cut off': coded('gzip', gzipSync, (bytes) => bytes.subarray(0, -9))(text),
  'gzip that is announced as brotli': coded('br', gzipSync)(text),
  'brotli that is announced as gzip': coded('gzip', brotliCompressSync)(text),
  'deflate that is not announced': plain(deflateSync(text)),
  'gzip twice, announced once': coded('gzip', gzipSync, gzipSync)(text),
  'more codings than anybody needs': coded(Array(9).fill('gzip').join(), gzipSync)(text),
  zstd: coded('zstd', () => Buffer.from('28b52ffd2011890000' + Buffer.from(text).toString('hex'), 'hex'))(''),
  'a page in gzip': {
    headers: { 'content-type': 'text/html', 'content-encoding': 'gzip' },
    body: gzipSync(PAGE),
  },
  'a page in brotli, as text': coded('br', brotliCompressSync)(PAGE),
  // Charsets.
  'UTF-16 that is not announced': plain(Buffer.from(text, 'utf16le')),
  'UTF-32': typed(
    'application/json; charset=utf-32',
    Buffer.from(Uint32Array.from(Buffer.from(text)).buffer),
  ),
  'UTF-7': typed('application/json; charset=utf-7', '+AHsAIg-success+ACIAOg-false+AH0-'),
  EBCDIC: typed(
    'text/plain; charset=ibm037',
    Buffer.from('c07fa2a48383859 2a27f7a86819 3a285d0'.replaceAll(' ', ''), 'hex'),
  ),
};

describe.each(['our own', 'http', 'fetch'] as const)('through %s adapter', (name) => {
  const adapter = name === 'our own' ? undefined : name;

  /** Which routes take an answer for a success. */
  async function successes(answers: Readonly<Record<string, Answer>>): Promise<Record<string, string>> {
    let answer: Answer = {};
    const service = await scripted(() => answer);
    const transport = new Transport(10_000, adapter);
    const debate = await client(service, { http: { adapter, maxAttempts: 1, rateLimit: false } });
    const route = new LogoutRoute(transport, backchannelLogoutUrl(service.url, 'demo'));
    const access = {
      authUrl: `${service.url}/root`,
      apiKey: new Secret(keys.apiKey),
      secretKey: new Secret(keys.secretKey),
    };
    const once = { maxAttempts: 1, totalTimeoutMs: 10_000 };
    const routes: Readonly<Record<string, () => Promise<unknown>>> = {
      token: () => fetchToken(transport, access, once, 'public', never),
      logout: async () => {
        const decision = decide(
          await route.send('a.b.c', never),
          { attempts: 0, rejections: 0, ageMs: 0 },
          Infinity,
        );
        if (decision.action !== 'finish') throw new Error(decision.action);
      },
      anonymize: () => debate.anonymizeUser('alice'),
      delete: () => debate.deleteUser('alice'),
      list: async () => {
        const { users } = await debate.listUsers();
        expect(users).toEqual(YES.data);
      },
    };
    const found: Record<string, string> = {};
    for (const [what, given] of Object.entries(answers)) {
      answer = given;
      const done: string[] = [];
      for (const [route, call] of Object.entries(routes))
        await call().then(
          () => done.push(route),
          () => undefined,
        );
      found[what] = done.join();
    }
    transport.close();
    return found;
  }

  const everywhere = (names: object, routes: string): object =>
    Object.fromEntries(Object.keys(names).map((what) => [what, routes]));
  const encoded = (value: object): Record<string, Answer> =>
    Object.fromEntries(
      Object.entries(encodings).map(([what, encode]) => [what, encode(JSON.stringify(value))]),
    );

  it('a yes is a yes on each route, and a no is a no, however they are encoded', async () => {
    const allRoutes = everywhere(encodings, 'token,logout,anonymize,delete,list');
    expect(await successes(encoded(YES))).toEqual(allRoutes);
    expect(await successes(encoded(NO))).toEqual(everywhere(encodings, ''));
  });

  it('an answer that is spoilt is no success on any route', async () => {
    expect(await successes(spoilt)).toEqual(everywhere(spoilt, ''));
  });
});
