import { beforeEach, describe, expect, it } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Containment } from '../containment.js';
import type { SessionRecord } from '../debate-space.options.js';
import { Secret } from '../secret.js';
import { memorySessionIndex } from '../session-index/memory-session-index.js';
import type { SessionIndex } from '../session-index/session-index.js';
import { SessionSeal } from '../session-index/session-seal.js';
import { IndexedSessions } from './indexed-sessions.js';

const seal = new SessionSeal(new Secret('a secret key of a test'));
const session = {};
let index: SessionIndex;
let puts: string[];
let renewals: string[];
let faults: string[];
/** What the index does before it answers. */
let answer: () => Promise<void>;

beforeEach(async () => {
  const memory = await memorySessionIndex().open('demo');
  [puts, renewals, faults, answer] = [[], [], [], () => Promise.resolve()];
  index = {
    durable: false,
    put: async (indexed) => {
      puts.push(seal.open(indexed.sealed)?.uid ?? '');
      await answer();
      await memory.put(indexed);
    },
    renew: (indexed) => {
      renewals.push(seal.open(indexed.sealed)?.uid ?? '');
      return memory.renew(indexed);
    },
    remove: async (hash, uid) => {
      await answer();
      return memory.remove(hash, uid);
    },
    claimExpired: () => [],
  };
});

function sessions(lastOnly: boolean): IndexedSessions {
  const containment = new Containment((event) => event.type === 'fault' && faults.push(event.where));
  return new IndexedSessions({
    index,
    seal,
    lastOnly,
    sweepMs: 1,
    containment,
  });
}

describe('the sessions of this process in the index', () => {
  it('are written once, however often they are used', () => {
    const indexed = sessions(true);
    for (let use = 0; use < 5; use += 1) indexed.saved('s1', 'alice', session);
    expect(puts).toEqual(['alice']);
  });

  it('are written once in a while where touch leaves the stored expiry as it was', () => {
    const indexed = sessions(true);
    const expiring = (inMs: number): SessionRecord => ({ cookie: { expires: new Date(Date.now() + inMs) } });
    const stored = expiring(600_000);
    for (let request = 0; request < 5; request += 1) {
      indexed.loaded('s1', 'alice', stored);
      indexed.touched('s1', 'alice', expiring(900_000));
    }
    expect([puts, renewals]).toEqual([['alice'], ['alice']]);
  });

  it('are written again when that has failed', async () => {
    const indexed = sessions(true);
    answer = () => Promise.reject(new Error('the index is down'));
    indexed.saved('s1', 'alice', session);
    await nextTurn();
    expect(faults).toEqual(['session index']);
    indexed.saved('s1', 'alice', session);
    expect(puts).toEqual(['alice', 'alice']);
  });

  it('are written again after they were without a user', () => {
    const indexed = sessions(true);
    indexed.saved('s1', 'alice', session);
    indexed.anonymous('s1');
    indexed.saved('s1', 'alice', session);
    expect(puts).toEqual(['alice', 'alice']);
  });

  it('of a uid that the service cannot know are not written', () => {
    sessions(true).saved('s1', 'alice\0', session);
    expect(puts).toEqual([]);
  });

  it.each([
    { name: 'each end is told anyway', lastOnly: false },
    { name: 'only the last one is', lastOnly: true },
  ])('do not hold up a logout when the index never answers, and $name', async ({ lastOnly }) => {
    const indexed = sessions(lastOnly);
    answer = () => new Promise(() => undefined);
    expect(await indexed.ended('s1', 'alice')).toBe(true);
  });
});
