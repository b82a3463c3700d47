import { expect, it } from '@jest/globals';
import { hashKey, keyedHash } from './uid-cipher.js';
import { Secret } from './secret.js';

const keyOf = (text: string) => hashKey(new Secret(text));
const key = keyOf('a secret key of a test');

it('a keyed hash is the same for the same value, and short', () => {
  expect(keyedHash(key, 'session', 'sid')).toBe(keyedHash(keyOf('a secret key of a test'), 'session', 'sid'));
  expect(keyedHash(key, 'session', 'sid')).toMatch(/^[\w-]{22}$/);
});

it('a keyed hash differs for another value, another kind of value and another key', () => {
  const hashes = [
    keyedHash(key, 'session', 'sid'),
    keyedHash(key, 'session', 'sid '),
    keyedHash(key, 'uid', 'sid'),
    keyedHash(keyOf('another key'), 'session', 'sid'),
  ];
  expect(new Set(hashes).size).toBe(hashes.length);
});
