import { describe, expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import { Sealer } from './sealer.js';

const key = 'a key of a test';
const sealer = new Sealer([key], 'uids');
const record = 'a record';
const texts = ['s', '', 'sess:Ab-_9.x/y+z=', 'Zoë 🦊', 'x'.repeat(4096)];

describe('a sealed text', () => {
  it.each(texts)('is opened again: %.20s', (text) => {
    expect(sealer.open(sealer.seal(text, record), record)).toBe(text);
  });

  it('is opened by another instance with the same key', () => {
    expect(new Sealer([key], 'uids').open(sealer.seal('sid', record), record)).toBe('sid');
  });

  it('is not opened with another key', () => {
    expect(new Sealer([`${key}.`], 'uids').open(sealer.seal('sid', record), record)).toBeUndefined();
  });

  it('is not opened as something else', () => {
    expect(new Sealer([key], 'session ids').open(sealer.seal('sid', record), record)).toBeUndefined();
  });

  it('is not opened as a part of another record', () => {
    expect(sealer.open(sealer.seal('sid', record), 'another record')).toBeUndefined();
  });

  it('is opened by every later version', () => {
    const sealed = 'Cmk5Ki_8gVlANYnrpTEH1opOZ06G5EPkYPYCqhb4tKzps7nz4UDWpQ';
    expect(new Sealer([key], 'nestjs-debate-space: sealed session ids').open(sealed, record)).toBe(
      'a-session-id',
    );
  });

  it('is sealed with the first key, and opened with all', () => {
    const [before, after] = [key, 'the next key of a test'];
    const rotated = new Sealer([after, before], 'uids');
    expect(rotated.open(sealer.seal('sid', record), record)).toBe('sid');
    expect(sealer.open(rotated.seal('sid', record), record)).toBeUndefined();
  });

  it('shows nothing of the text, and differs each time', () => {
    const [one, two] = [sealer.seal('a text to hide', record), sealer.seal('a text to hide', record)];
    expect(one).toMatch(/^[\w-]+$/);
    expect(one).not.toBe(two);
    for (const encoding of ['utf8', 'base64', 'base64url', 'hex'] as const) {
      expect(one).not.toContain(Buffer.from('a text to hide').toString(encoding));
      expect(Buffer.from(one, 'base64url').toString('latin1')).not.toContain('a text to hide');
    }
  });

  it('is not opened when any bit of it was changed', () => {
    const sealed = Buffer.from(sealer.seal('sid', record), 'base64url');
    for (const [at, byte] of sealed.entries()) {
      for (let bit = 1; bit < 256; bit *= 2) {
        const damaged = Buffer.from(sealed);
        damaged[at] = byte ^ bit;
        expect(sealer.open(damaged.toString('base64url'), record)).toBeUndefined();
      }
    }
  });

  it('is not opened when any end of it is missing, or it is something else', () => {
    const sealed = sealer.seal('sid', record);
    for (let length = 0; length < sealed.length - 1; length += 1) {
      expect(sealer.open(sealed.slice(0, length), record)).toBeUndefined();
    }
    for (const other of ['sid', 'ä🦊\n', `${sealed}AAAA`]) expect(sealer.open(other, record)).toBeUndefined();
  });

  it('is made by a sealer that shows no key', () => {
    const shown = inspect(sealer, { depth: Infinity, showHidden: true, getters: true });
    expect(shown + JSON.stringify(sealer)).not.toContain(key);
  });
});
