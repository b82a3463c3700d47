import { expect, it } from '@jest/globals';
import { Sealer } from '../sealer.js';
import { Secret } from '../secret.js';
import { SessionSeal } from './session-seal.js';

const key = new Secret('a secret key of a test');
const seal = new SessionSeal(key);

it.each([
  { sid: 'Ab-_9.x/y+z=', uid: 'alice' },
  { sid: 'a\0b', uid: 'Zoë "🦊"' },
])('gives back %j', (session) => {
  expect(seal.open(seal.seal(session.sid, session.uid))).toEqual(session);
});

it('opens nothing of another key, nor what is no session', () => {
  expect(new SessionSeal(new Secret('another key')).open(seal.seal('sid', 'alice'))).toBeUndefined();
  expect(seal.open(new Sealer([key], 'session ids').seal('sid', ''))).toBeUndefined();
  expect(seal.open('')).toBeUndefined();
});

it('tells sessions and users apart, and shows neither', () => {
  const hashes = [seal.hash('alice'), seal.uidHash('alice'), seal.uidHash('bob')];
  expect(new Set(hashes).size).toBe(3);
  expect(hashes.join()).not.toMatch(/alice|bob/);
});
