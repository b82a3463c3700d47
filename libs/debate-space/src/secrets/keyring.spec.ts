import { describe, expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import { Secret } from './secret.js';
import { hashKey, keyedHash, uidCipher, type UidCipher } from './uid-cipher.js';

const [A, B] = [new Secret('storage key A of a test'), new Secret('storage key B of a test')];
const underA = uidCipher([A], 'app');
const entry = { kind: 'erasure', id: 'e', mode: 'anonymize' } as const;
const recordOf = (cipher: UidCipher, uid: string) => ({ ...entry, uidHash: cipher.hash(uid) });
const sealed = (cipher: UidCipher, uid: string): string => cipher.seal(uid, recordOf(cipher, uid));

describe('the uid in a record', () => {
  it.each(['alice', 'Zoë "Ångström" 🦊', 'x'.repeat(1_000)])('is opened again: %.20s', (uid) => {
    expect(underA.open(sealed(underA, uid), recordOf(underA, uid))).toBe(uid);
  });

  it('is not opened in the record of another user', () => {
    expect(underA.open(sealed(underA, 'bob'), recordOf(underA, 'alice'))).toBeUndefined();
  });

  it('is not opened when it was sealed for the hash of another user', () => {
    const forged = underA.seal('bob', recordOf(underA, 'alice'));
    expect(underA.open(forged, recordOf(underA, 'alice'))).toBeUndefined();
  });

  it.each([
    ['is of another kind', { kind: 'logout' }],
    ['has another id', { id: 'another' }],
    ['has another mode', { mode: 'delete' }],
  ] as const)('is not opened in a record that %s', (_what, other) => {
    const record = { ...recordOf(underA, 'alice'), ...other };
    expect(underA.open(sealed(underA, 'alice'), record)).toBeUndefined();
  });

  it('is not opened in a record of another application', () => {
    const other = uidCipher([A], 'another-app');
    expect(other.open(sealed(underA, 'alice'), recordOf(underA, 'alice'))).toBeUndefined();
  });

  it('is not opened when it is damaged', () => {
    const text = sealed(underA, 'alice');
    const turned = `${text.startsWith('A') ? 'B' : 'A'}${text.slice(1)}`;
    for (const damaged of ['', text.slice(0, -2), turned, 'alice'])
      expect(underA.open(damaged, recordOf(underA, 'alice'))).toBeUndefined();
  });

  it('is opened and found under a key that stands behind a newer one', () => {
    const rotated = uidCipher([B, A], 'app');
    expect(rotated.open(sealed(underA, 'alice'), recordOf(underA, 'alice'))).toBe('alice');
    expect(rotated.hashes('alice')).toEqual([rotated.hash('alice'), underA.hash('alice')]);
  });

  it('is sealed and hashed under the first key', () => {
    const rotated = uidCipher([B, A], 'app');
    const underB = uidCipher([B], 'app');
    expect(rotated.hash('alice')).toBe(underB.hash('alice'));
    expect(underB.open(sealed(rotated, 'alice'), recordOf(underB, 'alice'))).toBe('alice');
    expect(underA.open(sealed(rotated, 'alice'), recordOf(underB, 'alice'))).toBeUndefined();
  });

  it('is neither opened nor found when its key has been removed', () => {
    const underB = uidCipher([B], 'app');
    expect(underB.open(sealed(underA, 'alice'), recordOf(underA, 'alice'))).toBeUndefined();
    expect(underB.hashes('alice')).not.toContain(underA.hash('alice'));
  });

  it('is sealed by a cipher that shows no key', () => {
    const shown = inspect(underA, { depth: Infinity, showHidden: true, getters: true });
    expect(shown + JSON.stringify(underA)).not.toContain('storage key');
  });
});

it('a keyed hash is short, and differs for another value, another kind of value and another key', () => {
  const [a, b] = [hashKey(A), hashKey(B)];
  const hash = keyedHash(a, 'session', 'sid');
  expect(hash).toMatch(/^[\w-]{22}$/);
  expect(keyedHash(hashKey(A), 'session', 'sid')).toBe(hash);
  const others = [
    keyedHash(a, 'session', 'sid '),
    keyedHash(a, 'uid', 'sid'),
    keyedHash(b, 'session', 'sid'),
  ];
  expect(new Set([hash, ...others]).size).toBe(4);
});
