import { describe, expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import { Secret } from '../secret.js';
import { SessionSealer } from './session-sealer.js';

const key = 'a secret key of a test';
const sealer = new SessionSealer(new Secret(key));
const sids = ['s', '', 'sess:Ab-_9.x/y+z=', 'Zoë 🦊', 'x'.repeat(4096)];

describe('a sealed session id', () => {
  it.each(sids)('is opened again: %.20s', (sid) => {
    expect(sealer.open(sealer.seal(sid))).toBe(sid);
  });

  it('is opened by another instance with the same secret key', () => {
    expect(new SessionSealer(new Secret(key)).open(sealer.seal('sid'))).toBe('sid');
  });

  it('is not opened with another secret key', () => {
    expect(new SessionSealer(new Secret(`${key}.`)).open(sealer.seal('sid'))).toBeUndefined();
  });

  it('shows nothing of the id, and differs each time', () => {
    const [one, two] = [sealer.seal('a-session-id'), sealer.seal('a-session-id')];
    expect(one).toMatch(/^[\w-]+$/);
    expect(one).not.toBe(two);
    for (const encoding of ['utf8', 'base64', 'base64url', 'hex'] as const) {
      expect(one).not.toContain(Buffer.from('a-session-id').toString(encoding));
      expect(Buffer.from(one, 'base64url').toString('latin1')).not.toContain('a-session-id');
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
