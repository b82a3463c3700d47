import { expect, it } from '@jest/globals';
import { Secret } from './secret.js';
import { sessionHash } from './session-hash.js';

const key = new Secret('a secret key of a test');

it('is the same for the same session id, and short', () => {
  expect(sessionHash(key, 'sid')).toBe(sessionHash(new Secret(key.reveal()), 'sid'));
  expect(sessionHash(key, 'sid')).toMatch(/^[\w-]{22}$/);
});

it('is another for another session id, and with another key', () => {
  const hashes = [['sid'], ['sid '], ['sid', 'another key']].map(([sid = '', other]) =>
    sessionHash(other === undefined ? key : new Secret(other), sid),
  );
  expect(new Set(hashes).size).toBe(3);
});
