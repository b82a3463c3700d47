import { describe, expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import { Keyring, type Part } from './keyring.js';
import { Secret } from './secret.js';

const [A, B] = [new Secret('storage key A of a test'), new Secret('storage key B of a test')];
const underA = new Keyring([A], 'app');
const underB = new Keyring([B], 'app');
const rotated = new Keyring([B, A], 'app');
const ROW: [kind: string, ...row: Part[]] = ['erasure', 'id', 'hash', 'delete', undefined];
/** The same row in each respect but one. */
const OTHERS: readonly (readonly [what: string, ring: Keyring, row: typeof ROW])[] = [
  ['another application', new Keyring([A], 'another-app'), ROW],
  ['another kind', underA, ['logout', 'id', 'hash', 'delete', undefined]],
  ['another id', underA, ['erasure', 'other', 'hash', 'delete', undefined]],
  ['another mode', underA, ['erasure', 'id', 'hash', 'anonymize', undefined]],
  ['a value where none was', underA, ['erasure', 'id', 'hash', 'delete', '']],
  ['its columns cut elsewhere', underA, ['erasure', 'idh', 'ash', 'delete', undefined]],
  ['another key', underB, ROW],
];

describe('a sealed text', () => {
  it.each(['alice', 'Zoë "Ångström" 🦊', 'x'.repeat(1_000), ''])('is opened again: %.20s', (text) => {
    expect(underA.open(underA.seal(text, ...ROW), ...ROW)).toBe(text);
    expect(underA.seal(text, ...ROW)).not.toBe(underA.seal(text, ...ROW));
  });

  it.each(OTHERS)('is not opened in a row with %s', (_what, ring, row) => {
    expect(ring.open(underA.seal('alice', ...ROW), ...row)).toBeUndefined();
  });

  it('is not opened after it was damaged', () => {
    const text = underA.seal('alice', ...ROW);
    const turned = `${text.startsWith('A') ? 'B' : 'A'}${text.slice(1)}`;
    for (const damaged of ['', text.slice(0, -2), turned, 'alice'])
      expect(underA.open(damaged, ...ROW)).toBeUndefined();
  });

  it('is sealed under the first key, and opened under all', () => {
    expect(rotated.open(underA.seal('alice', ...ROW), ...ROW)).toBe('alice');
    expect(underB.open(rotated.seal('alice', ...ROW), ...ROW)).toBe('alice');
    expect(underA.open(rotated.seal('alice', ...ROW), ...ROW)).toBeUndefined();
  });
});

describe('a mark', () => {
  it('fits the row that it was made for, and is short', () => {
    expect(underA.mark(...ROW)).toMatch(/^[\w-]{22}$/);
    expect(underA.isMarked(underA.mark(...ROW), ...ROW)).toBe(true);
  });

  it.each(OTHERS)('does not fit a row with %s', (_what, ring, row) => {
    expect(ring.isMarked(underA.mark(...ROW), ...row)).toBe(false);
  });

  it('does not fit after a change, and neither does a hash', () => {
    const mark = underA.mark(...ROW);
    const turned = `${mark.startsWith('A') ? 'B' : 'A'}${mark.slice(1)}`;
    for (const changed of [
      '',
      '-',
      turned,
      mark.slice(1),
      `${mark}A`,
      `é${mark.slice(2)}`,
      underA.hash(...ROW),
    ])
      expect(underA.isMarked(changed, ...ROW)).toBe(false);
  });

  it('is made under the first key, and fits under all', () => {
    expect(rotated.isMarked(underA.mark(...ROW), ...ROW)).toBe(true);
    expect(rotated.mark(...ROW)).toBe(underB.mark(...ROW));
  });
});

describe('a keyed hash', () => {
  it('is the same each time, and differs in each other respect', () => {
    expect(underA.hash(...ROW)).toMatch(/^[\w-]{22}$/);
    const hashes = OTHERS.map(([, ring, row]) => ring.hash(...row));
    expect(new Set([underA.hash(...ROW), ...hashes]).size).toBe(OTHERS.length + 1);
  });

  it('is written under the first key, and found under all', () => {
    expect(rotated.hashes(...ROW)).toEqual([underB.hash(...ROW), underA.hash(...ROW)]);
    expect(rotated.hash(...ROW)).toBe(underB.hash(...ROW));
  });
});

it('a keyring shows no key', () => {
  const shown = inspect(underA, { depth: Infinity, showHidden: true, getters: true });
  expect(shown + JSON.stringify(underA)).not.toContain('storage key');
});
