import { describe, expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import { Secret } from '../secret.js';
import { SessionSeal } from './session-seal.js';

const [before, now] = [new Secret('the storage key of before'), new Secret('the storage key of now')];
const seal = new SessionSeal([now]);

describe('a sealed session', () => {
  it.each([
    { sid: 'Ab-_9.x/y+z=', uid: 'alice' },
    { sid: 'a\0b', uid: 'Zoë "🦊"' },
  ])('is opened again: %j', (session) => {
    expect(seal.open(seal.seal(session.sid, session.uid))).toEqual(session);
  });

  it('is not opened with another key, nor when it is damaged', () => {
    const session = seal.seal('sid', 'alice');
    expect(new SessionSeal([before]).open(session)).toBeUndefined();
    for (const sealed of ['', session.sealed.slice(0, -2), session.sealed.slice(1)])
      expect(seal.open({ ...session, sealed })).toBeUndefined();
  });

  it('is not opened in the record of another session or user', () => {
    const [alices, another, bobs] = [seal.seal('a', 'alice'), seal.seal('b', 'alice'), seal.seal('a', 'bob')];
    for (const { hash, uidHash } of [another, bobs])
      expect(seal.open({ hash, uidHash, sealed: alices.sealed })).toBeUndefined();
  });

  it('is named and sealed by the first key, and opened and found by all', () => {
    const rotated = new SessionSeal([now, before]);
    const former = new SessionSeal([before]);
    expect(rotated.open(former.seal('sid', 'alice'))).toEqual({ sid: 'sid', uid: 'alice' });
    expect(rotated.formerNames('sid', 'alice')).toEqual([former.name('sid', 'alice')]);
    expect(rotated.name('sid', 'alice')).toEqual(seal.name('sid', 'alice'));
    expect(seal.open(rotated.seal('sid', 'alice'))).toEqual({ sid: 'sid', uid: 'alice' });
  });

  it('tells sessions and users apart, and shows neither, nor a key', () => {
    const names = [seal.name('alice', 'alice'), seal.name('bob', 'bob')];
    const hashes = names.flatMap(({ hash, uidHash }) => [hash, uidHash]);
    expect(new Set(hashes).size).toBe(4);
    expect(JSON.stringify(seal.seal('a-session', 'alice'))).not.toMatch(/alice|a-session/);
    expect(inspect(seal, { depth: Infinity, showHidden: true })).not.toContain('the storage key');
  });
});
