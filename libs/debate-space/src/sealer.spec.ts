import { describe, expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import { Sealer } from './sealer.js';
import { Secret } from './secret.js';

const key = 'a key of a test';
const sealer = new Sealer(new Secret(key), 'uids');
const texts = ['s', '', 'sess:Ab-_9.x/y+z=', 'Zoë 🦊', 'x'.repeat(4096)];

describe('a sealed text', () => {
  it.each(texts)('is opened again: %.20s', (text) => {
    expect(sealer.open(sealer.seal(text))).toBe(text);
  });

  it('is opened by another instance with the same key', () => {
    expect(new Sealer(new Secret(key), 'uids').open(sealer.seal('sid'))).toBe('sid');
  });

  it('is not opened with another key', () => {
    expect(new Sealer(new Secret(`${key}.`), 'uids').open(sealer.seal('sid'))).toBeUndefined();
  });

  it('is not opened as something else', () => {
    expect(new Sealer(new Secret(key), 'session ids').open(sealer.seal('sid'))).toBeUndefined();
  });

  it('is opened by every later version', () => {
    const sealed = 'YYEtBYGwFTQkETs0p1KdCTcLMRd7oS7EXOX0ZYZUPfHbJU0rH7j16g';
    expect(new Sealer(new Secret(key), 'session ids').open(sealed)).toBe('a-session-id');
  });

  it('shows nothing of the text, and differs each time', () => {
    const [one, two] = [sealer.seal('a text to hide'), sealer.seal('a text to hide')];
    expect(one).toMatch(/^[\w-]+$/);
    expect(one).not.toBe(two);
    for (const encoding of ['utf8', 'base64', 'base64url', 'hex'] as const) {
      expect(one).not.toContain(Buffer.from('a text to hide').toString(encoding));
      expect(Buffer.from(one, 'base64url').toString('latin1')).not.toContain('a text to hide');
    }
  });

  it('is not opened when any bit of it was changed', () => {
    const sealed = Buffer.from(sealer.seal('sid'), 'base64url');
    for (const [at, byte] of sealed.entries()) {
      for (let bit = 1; bit < 256; bit *= 2) {
        const damaged = Buffer.from(sealed);
        damaged[at] = byte ^ bit;
        expect(sealer.open(damaged.toString('base64url'))).toBeUndefined();
      }
    }
  });

  it('is not opened when any end of it is missing, or it is something else', () => {
    const sealed = sealer.seal('sid');
    for (let length = 0; length < sealed.length - 1; length += 1) {
      expect(sealer.open(sealed.slice(0, length))).toBeUndefined();
    }
    for (const other of ['sid', 'ä🦊\n', `${sealed}AAAA`]) expect(sealer.open(other)).toBeUndefined();
  });

  it('keeps a sealer that shows no key', () => {
    const shown = inspect(sealer, { depth: Infinity, showHidden: true, getters: true });
    expect(shown + JSON.stringify(sealer)).not.toContain(key);
  });
});
