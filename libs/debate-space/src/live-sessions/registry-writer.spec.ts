import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Containment } from '../async/containment.js';
import type { FoundSession, SessionEnd, SessionRecord } from '../session-end/session-end.js';
import { memoryStorage } from 'durable-jobs';
import { Secret } from '../secrets/secret.js';
import { RegistryWriter } from './registry-writer.js';
import { REPORTED_MS, SessionRegistry } from './session-registry.js';

const keys = [new Secret('a storage key of a test')];
const session = {};
let registry: SessionRegistry;
let puts: string[];
let renewals: string[];
let faults: string[];
/** The users who were reported, although no request ended their session. */
let reported: string[];
/** The session as the store has it; `undefined`: it cannot be read. */
let stored: FoundSession[] | undefined;
let reads: number;
/** What the registry does before it answers. */
let answer: () => Promise<void>;

beforeEach(async () => {
  const context = { namespace: 'demo', families: ['session'], contained: () => undefined };
  const memory = new SessionRegistry(await memoryStorage().open(context), keys);
  [puts, renewals, faults, answer] = [[], [], [], () => Promise.resolve()];
  [reported, stored, reads] = [[], [], 0];
  registry = new SessionRegistry(await memoryStorage().open(context), keys);
  jest.spyOn(registry, 'put').mockImplementation(async (session, ...rest) => {
    puts.push(session.uid);
    await answer();
    return memory.put(session, ...rest);
  });
  jest.spyOn(registry, 'renew').mockImplementation((session, ...rest) => {
    renewals.push(session.uid);
    return memory.renew(session, ...rest);
  });
  jest.spyOn(registry, 'remove').mockImplementation((session) => memory.remove(session));
  jest.spyOn(registry, 'end').mockImplementation(async (session, options) => {
    await answer();
    return memory.end(session, options);
  });
});

function writer(lastOnly: boolean): RegistryWriter {
  return writerTo(registry, lastOnly);
}

function writerTo(registry: SessionRegistry, lastOnly: boolean): RegistryWriter {
  const containment = new Containment((event) => event.type === 'fault' && faults.push(event.where));
  const recorder = { record: ({ uid }: SessionEnd): void => void reported.push(uid) };
  const find = (): Promise<readonly FoundSession[]> => {
    reads += 1;
    return stored ? Promise.resolve(stored) : Promise.reject(new Error('the store is down'));
  };
  return new RegistryWriter({ registry, lastOnly, sweepMs: 1 }, { containment, recorder, find });
}

describe('the sessions of this process in the registry', () => {
  it('are written once, however often they are used', () => {
    const writing = writer(true);
    for (let use = 0; use < 5; use += 1) writing.saved('s1', 'alice', session);
    expect(puts).toEqual(['alice']);
  });

  it.each([
    { name: 'a login that was saved over by a request that knew of no user', wasSaved: true, others: false },
    { name: 'a session whose end will follow', wasSaved: false, others: true },
  ])('that have no user any more hide an end: $others, for $name', async ({ wasSaved, others }) => {
    const writing = writer(true);
    writing.saved('s1', 'alice', session);
    writing.anonymous('s1', wasSaved);
    writing.saved('s2', 'alice', session);
    await writing.idle();
    expect(await writing.ended('s2', 'alice')).toEqual({ isFirst: true, isLast: !others });
  });

  it('are written once in a while where touch leaves the stored expiry as it was', async () => {
    const writing = writer(true);
    const expiring = (inMs: number): SessionRecord => ({ cookie: { expires: new Date(Date.now() + inMs) } });
    const stored = expiring(600_000);
    for (let request = 0; request < 5; request += 1) {
      writing.loaded('s1', 'alice', stored, true);
      writing.touched('s1', 'alice', expiring(900_000));
    }
    await nextTurn();
    expect([puts, renewals]).toEqual([['alice'], ['alice']]);
  });

  it('are written again when that has failed', async () => {
    const writing = writer(true);
    answer = () => Promise.reject(new Error('the storage is down'));
    writing.saved('s1', 'alice', session);
    await nextTurn();
    expect(faults).toEqual(['session registry']);
    writing.saved('s1', 'alice', session);
    expect(puts).toEqual(['alice', 'alice']);
  });

  it('are written again after they were without a user', async () => {
    const writing = writer(true);
    writing.saved('s1', 'alice', session);
    writing.anonymous('s1');
    writing.saved('s1', 'alice', session);
    await nextTurn();
    expect(puts).toEqual(['alice', 'alice']);
  });

  it('move to the new storage key when they are used again, and are removed when they end', async () => {
    const storage = await memoryStorage().open({
      namespace: 'demo',
      families: ['session'],
      contained: () => undefined,
    });
    const [former, next] = [new Secret('a storage key of a test'), new Secret('the next storage key')];
    const opened: SessionRegistry[] = [];
    const after = (keys: readonly Secret[]): RegistryWriter => {
      const registry = new SessionRegistry(storage, keys);
      opened.push(registry);
      return writerTo(registry, true);
    };
    const idle = () => Promise.all(opened.map((registry) => registry.idle()));
    const rows = () => storage.range('session:', 'session;', { limit: 9 });
    after([former]).saved('s1', 'alice', session);
    await idle();
    const before = (await rows()).map(([key]) => key);
    const rotated = after([next, former]);
    rotated.loaded('s1', 'alice', session, true);
    await idle();
    const moved = (await rows()).map(([key]) => key);
    expect(moved).toHaveLength(before.length);
    for (const key of before) expect(moved).not.toContain(key);
    after([former]).saved('s2', 'alice', session);
    await idle();
    expect(await rotated.ended('s1', 'alice')).toEqual({ isFirst: true, isLast: false }); // s2 lives
    expect(await rotated.ended('s2', 'alice')).toEqual({ isFirst: true, isLast: true });
    await rotated.reported('s2', 'alice');
    const now = storage.now.bind(storage);
    storage.now = () => now() + REPORTED_MS;
    for (const each of opened) await each.claimExpired(1, 1);
    expect([await rows(), faults]).toEqual([[], []]);
  });

  it.each([
    { name: 'each end is told anyway', lastOnly: false },
    { name: 'only the last one is', lastOnly: true },
  ])('do not hold up a logout when the registry never answers, and $name', async ({ lastOnly }) => {
    const writing = writer(lastOnly);
    answer = () => new Promise(() => undefined);
    expect(await writing.ended('s1', 'alice')).toEqual({ isFirst: true, isLast: true });
  });
});

describe('a session whose user two instances change at the same time', () => {
  let one: RegistryWriter;
  let other: RegistryWriter;
  let shared: SessionRegistry;
  beforeEach(async () => {
    const context = { namespace: 'demo', families: ['session'], contained: () => undefined };
    shared = new SessionRegistry(await memoryStorage().open(context), keys);
    [one, other] = [writerTo(shared, true), writerTo(shared, true)];
    for (const writing of [one, other]) {
      writing.loaded('s1', 'alice', session, true);
      await shared.idle();
    }
  });

  const idle = (): Promise<unknown> => Promise.all([one.idle(), other.idle()]);
  const removes = async (): Promise<boolean> => {
    one.anonymous('s1');
    const { isFirst } = await one.ended('s1', 'alice');
    if (isFirst) await one.reported('s1', 'alice');
    return isFirst;
  };
  const replaces = async (): Promise<boolean> => {
    other.saved('s1', 'bob', session);
    const { isFirst } = await other.ended('s1', 'alice');
    if (isFirst) await other.reported('s1', 'alice');
    return isFirst;
  };
  /** Whether bob's session is live in the registry: it hides that another one has ended. */
  const hides = async (): Promise<boolean> => {
    const { others } = await shared.end({ sid: 'another', uid: 'bob' }, { leaseMs: 1, lastOnly: true });
    return others;
  };

  const orders = [
    { name: 'first removed and then replaced', requests: [removes, replaces] },
    { name: 'first replaced and then removed', requests: [replaces, removes] },
  ];
  describe.each(orders)('and who is $name in the registry', ({ requests }) => {
    it('is reported once, and the next user has it if the store says so', async () => {
      stored = [{ uid: 'bob', session }];
      const firsts = [];
      for (const request of requests) firsts.push(await request());
      await idle();
      expect(firsts).toEqual([true, false]);
      expect([reported, await hides()]).toEqual([[], true]);
    });

    it('is reported once, and so is the next user if the store says that nobody has it', async () => {
      for (const request of requests) await request();
      await idle();
      expect([reported, await hides()]).toEqual([['bob'], false]);
    });
  });

  it('has the user who was registered last while the store cannot be read', async () => {
    stored = undefined;
    await removes();
    await replaces();
    await idle();
    await shared.idle();
    expect([reported, faults, await hides()]).toEqual([[], ['session registry'], true]);
  });

  it('is read from the store only then', async () => {
    other.saved('s1', 'bob', session);
    expect(await other.ended('s1', 'alice')).toMatchObject({ isFirst: true });
    await other.reported('s1', 'alice');
    other.anonymous('s1');
    expect(await other.ended('s1', 'bob')).toMatchObject({ isFirst: true });
    await other.reported('s1', 'bob');
    for (const endedBy = shared.now(); shared.now() === endedBy;) await nextTurn();
    other.saved('s1', 'bob', session);
    await shared.idle();
    await idle();
    expect(reads).toBe(0);
    expect(await hides()).toBe(true);
  });
});
