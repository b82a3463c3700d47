import { describe, expect, it } from '@jest/globals';
import { foundUid, namedUid, RefusedUid } from './uid-rule.js';

const SECRET = 'ada@post.example';
const user = { id: 7, email: SECRET, password: '$2b$10$N9qo8uLOickgx2ZMRZoMye' };
const record = JSON.stringify(user);
const base64 = (text: string): string => Buffer.from(text).toString('base64url');
const jwsHeader = base64('{"alg":"HS256","typ":"JWT"}');
const jws = `${jwsHeader}.${base64(record)}.c2ln`;

/** MongoDB's, as its driver has it; its `id` is bytes. */
const objectId = { id: new Uint8Array(12), toHexString: () => '65f1c0ffee65f1c0ffee0001' };

const problemOf = (uid: unknown): string =>
  uid instanceof RefusedUid ? uid.problem : `accepted: ${String(uid)}`;

describe('a uid', () => {
  const texts = [
    ...['alice', '42', '007', '1e21', '9007199254740993', '-1', ' ', ' ada ', 'Zoë', '李', '🦊'],
    ...['x'.repeat(1_024), '{'.repeat(1_024)],
    ...[
      'ada@post.example',
      'auth0|65f1c0ffee65f1c0ffee0001',
      'ACME\\ada',
      'urn:user:7',
      'https://id.example/7',
    ],
    ...[
      '550e8400-e29b-41d4-a716-446655440000',
      '{550e8400-e29b-41d4-a716-446655440000}',
      'a/b',
      '%2e%2e',
      '..a',
    ],
    // Three parts like a JWT, the Base64 of `{}` and `[]`, and what begins like that of JSON.
    ...[
      'first.middle.last',
      'eva.w3.lee',
      'eyJ.a.b',
      'e30',
      'W10',
      'eyJhbGci',
      'Bearer of news',
      'CgVhbGljZRIFbG9jYWw',
    ],
    // Brackets and quotes in names, and words that only look like those of JavaScript.
    ...['a{b}c', '{Team} Ada', '[Team] Ada', '[[Team]]Ada', '"Ada" Lee', '"', '{', '[', 'x(1)', 'f(x)'],
    ...[
      'Null',
      'NULL',
      'None',
      'True',
      'Infinity',
      'nullable',
      'undefined7',
      'function',
      'object',
      '[object]',
    ],
  ];
  it.each(texts)('may be the text %j, wherever it comes from', (text) => {
    expect([namedUid(text), foundUid(text), foundUid({ id: text })]).toEqual([text, text, text]);
  });

  it.each<[string, unknown, string]>([
    ['a number', 42, '42'],
    ['zero', -0, '0'],
    ['the greatest safe integer', Number.MAX_SAFE_INTEGER, '9007199254740991'],
    ['a bigint', 9_007_199_254_740_993n, '9007199254740993'],
    ['an ObjectId', objectId, '65f1c0ffee65f1c0ffee0001'],
  ])('of %s is its digits, wherever it comes from', (_what, value, uid) => {
    expect([namedUid(value), foundUid(value), foundUid({ _id: value })]).toEqual([uid, uid, uid]);
  });

  it.each<[string, unknown, string]>([
    ['the text undefined', 'undefined', 'a missing value'],
    ['the text null', 'null', 'a missing value'],
    ['null between blanks', ' null\n', 'a missing value'],
    ['the text NaN', 'NaN', 'a missing value'],
    ['the text true', 'true', 'a missing value'],
    ['the text of an object', '[object Object]', 'a missing value'],
    ['the text of a promise, with a prefix', 'acme:[object Promise]', 'a missing value'],
    ['a method that was not called', 'getId() { return this.id; }', 'a missing value'],
    ['a function that was not called', 'async function getId(a) { return a; }', 'a missing value'],
    ['an arrow function that was not called', '(user) => user.id', 'a missing value'],
    ['a JSON array', JSON.stringify([SECRET]), 'JSON array'],
    ['a JSON array with numbers', ' [7]', 'JSON array'],
    ['a JWS', jws, 'a token'],
    ['a JWS with a blank in its header', `${base64('{ "alg":"none"}')}.${base64(record)}.`, 'a token'],
    ['a JWE', `${base64('{"alg":"dir","enc":"A256GCM"}')}..aXY.Y2lwaGVy.dGFn`, 'a token'],
    ['a Bearer token', `Bearer ${jws}`, 'a token'],
    ['a signed cookie of JSON', `${base64(record)}.ZxY.c2ln`, 'JSON in Base64'],
    ['JSON in Base64', Buffer.from(record).toString('base64'), 'JSON in Base64'],
    ['a JSON array in Base64', base64(JSON.stringify([user])), 'JSON in Base64'],
    ['JSON in a URL', encodeURIComponent(record), 'a record'],
    ['JSON that is cut off', record.slice(0, -9), 'a record'],
    ['a JSON array that is cut off', `[${record}`, 'a record'],
    ['JSON with a prefix', `j:${record}`, 'a record'],
    ['JSON with text behind it', `${record}x`, 'a record'],
    ['an object as it is logged', `{ id: 7, email: '${SECRET}' }`, 'a record'],
    ['an object as Java writes it', `{id=7, email=${SECRET}}`, 'a record'],
    ['a number that JavaScript has rounded', 2 ** 53, 'beyond 2^53 - 1'],
    ['a number with an exponent', 1e21, 'beyond 2^53 - 1'],
    ['a number with a fraction', 4.2, 'a fraction'],
    ...['.', '..', '../users', 'a/../b', 'a/.', 'a\\..\\b', 'a/..\\b'].map(
      (text): [string, unknown, string] => [`the dot segment of ${text}`, text, 'a dot segment'],
    ),
    ['a long text', 'x'.repeat(1_025), 'longer than 1,024 characters'],
    ['a long text of quotes in Base64', base64(`{${'"'.repeat(100_000)}`), 'longer than 1,024 characters'],
    ['long JSON', JSON.stringify({ id: 7, note: 'x'.repeat(70_000) }), 'longer than 1,024 characters'],
    ...['a\nb', 'a\0', '\u007f', '\u0085'].map((text): [string, unknown, string] => [
      `the text ${JSON.stringify(text)}`,
      text,
      'control characters',
    ]),
    ['a lone surrogate', 'a\ud83d', 'a lone surrogate'],
    ['a lone low surrogate', '\udd8aa', 'a lone surrogate'],
  ])('may not be %s, wherever it comes from', (_what, value, problem) => {
    for (const uid of [namedUid(value), foundUid(value), foundUid({ id: value, sub: 'somebody else' })]) {
      expect(problemOf(uid)).toContain(problem);
      expect(JSON.stringify(uid)).not.toContain(SECRET);
    }
  });

  it.each<[string, unknown, string]>([
    ['nothing', undefined, 'is of type undefined'],
    ['null', null, 'is null'],
    ['an empty text', '', 'is empty'],
    ['NaN', Number(undefined), 'not a finite number'],
    ['a boolean', true, 'of type boolean'],
    ['an array', ['alice'], 'of type object'],
    ['an object without a uid', { username: 'alice' }, 'of type object'],
    ['JSON of an object without a uid', '{"username":"alice"}', 'JSON object'],
    ['JSON of an empty text', '""', 'JSON string'],
  ])('may not be %s, in which no uid is found', (_what, value, problem) => {
    expect(problemOf(namedUid(value))).toContain(problem);
    expect(foundUid(value)).toBeUndefined();
  });

  it.each<[string, unknown, string]>([
    ['an object', user, '7'],
    ['JSON of an object', record, '7'],
    ['JSON with a byte order mark and blanks', `\uFEFF \n${JSON.stringify(user, null, 2)}\n`, '7'],
    ['JSON of JSON', JSON.stringify(record), '7'],
    ['JSON of a text', '"alice"', 'alice'],
    ['JSON of { uid, id }', '{"id":7,"uid":"alice"}', 'alice'],
    ['JSON of { sub, userId }', '{"userId":8,"sub":"alice"}', 'alice'],
    ['JSON of { uid: null, _id }', `{"uid":null,"id":"","_id":"65f1"}`, '65f1'],
  ])(
    'is found in %s that a host keeps as its user, and is refused where a uid is named',
    (_what, value, uid) => {
      expect(foundUid(value)).toBe(uid);
      expect(problemOf(namedUid(value))).toMatch(/of type object|JSON (object|string)/);
    },
  );

  it('is refused in JSON whose number JavaScript rounds, whatever else the object has', () => {
    expect(problemOf(foundUid('{"id":9007199254740993,"_id":"65f1"}'))).toContain('give it as text');
  });
});
