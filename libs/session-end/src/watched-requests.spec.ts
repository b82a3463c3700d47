import { describe, expect, it } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { WatchedHost, type Native } from 'debate-space-fixtures/watched-host.js';
import type { SessionRecord } from './session-end.js';

const EXPIRED = { cookie: { expires: new Date(0) } };

describe('a session of alice that a request has loaded', () => {
  const cases: {
    handler: string;
    act: (host: WatchedHost, request: Native) => unknown;
    sets?: string;
    ends: string[];
  }[] = [
    { handler: 'destroys it', act: (host) => host.call('destroy', 's1'), ends: ['alice: destroyed'] },
    {
      handler: 'regenerates it',
      act: (host, request) => host.call('regenerate', request),
      ends: ['alice: destroyed'],
    },
    {
      handler: 'regenerates it, and logs alice in',
      act: async (host, request) => {
        await host.call('regenerate', request);
        await host.save(request, 's2', { user: 'alice' });
      },
      sets: 'sid=s2',
      ends: [],
    },
    {
      handler: 'saves it without her',
      act: (host, request) => host.save(request, 's1', {}),
      ends: ['alice: user-removed'],
    },
    {
      handler: 'gives it to bob',
      act: (host, request) => host.save(request, 's1', { user: 'bob' }),
      ends: ['alice: user-replaced'],
    },
    {
      handler: 'saves it as expired',
      act: (host, request) => host.save(request, 's1', { user: 'alice', ...EXPIRED }),
      ends: ['alice: destroyed'],
    },
    {
      handler: 'touches it as expired',
      act: (host, request) => host.save(request, 's1', { user: 'alice', ...EXPIRED }, 'touch'),
      ends: ['alice: destroyed'],
    },
    {
      handler: 'saves it',
      act: (host, request) => host.save(request, 's1', { user: 'alice', basket: 1 }),
      ends: [],
    },
    {
      handler: 'touches it',
      act: (host, request) => host.save(request, 's1', { user: 'alice' }, 'touch'),
      ends: [],
    },
    {
      handler: 'saves it without her, in vain',
      act: (host, request) => {
        host.error = new Error('down');
        return host.save(request, 's1', {}).finally(() => (host.error = undefined));
      },
      ends: [],
    },
    { handler: 'ends one of nobody', act: (host) => host.call('destroy', 's9'), ends: [] },
  ];
  it.each(cases)('has ended, or not, when the handler $handler: $ends', async ({ act, sets, ends }) => {
    const host = new WatchedHost();
    const request = host.request('s1');
    await act(host, request);
    host.answer(request, sets);
    expect(await host.ended()).toEqual(ends);
  });

  it('is saved, touched and read in the same tick', () => {
    const host = new WatchedHost();
    const request = host.request('s1');
    const reached: string[] = [];
    const own = {
      set: () => reached.push('set'),
      touch: () => reached.push('touch'),
      get: () => reached.push('get'),
    };
    const other = { ...host.store, ...own };
    host.app.watch(other);
    for (const name of ['set', 'touch', 'get'] as const)
      Reflect.apply(other[name], other, ['s1', request.session, () => undefined]);
    expect(reached).toEqual(['set', 'touch', 'get']);
  });

  it('ends by a job when the requests that have it are answered, and they may end more', async () => {
    const host = new WatchedHost({ s1: { user: 'alice' }, s2: { user: 'alice' } });
    const request = host.request('s1');
    await host.call('destroy', 's2');
    await nextTurn();
    await nextTurn();
    expect(host.ends).toEqual([]);
    await host.call('destroy', 's1');
    host.answer(request);
    expect(await host.ended()).toEqual(['alice: destroyed']);
  });

  it('ends once by two requests that destroy it', async () => {
    const host = new WatchedHost();
    const requests = [host.request('s1'), host.request('s1')];
    await Promise.all(requests.map(() => host.call('destroy', 's1')));
    for (const request of requests) host.answer(request);
    await nextTurn();
    await host.call('destroy', 's1');
    expect(await host.ended()).toEqual(['alice: destroyed']);
  });
});

describe('sessions that no request has', () => {
  const rows = { s1: { user: 'alice' }, s2: { user: 'bob' }, s3: {} };
  it('end together where the store takes several in one call', async () => {
    const host = new WatchedHost(rows);
    await host.call('destroy', ['s1', 's2', 's3']);
    expect((await host.ended()).toSorted()).toEqual(['alice: destroyed', 'bob: destroyed']);
  });

  it('stay where a store takes a list for one id', async () => {
    const host = new WatchedHost(rows);
    host.takesLists = false;
    await host.call('destroy', ['s1', 's2']);
    expect(await host.ended()).toEqual([]);
  });
});

describe('a store that is cleared', () => {
  it('and cannot be listed has ended the sessions of requests under way, and that is a warning', async () => {
    const host = new WatchedHost({ s1: { user: 'alice' }, s2: { user: 'bob' } });
    const request = host.request('s1');
    await host.call('clear');
    host.answer(request);
    expect(await host.ended()).toEqual(['alice: cleared']);
    expect(host.warnings).toEqual(['clear-not-listed']);
  });

  it('in vain has ended none', async () => {
    const host = new WatchedHost();
    const request = host.request('s1');
    host.error = new Error('down');
    await host.call('clear');
    host.error = undefined;
    await host.save(request, 's1', { user: 'alice' });
    host.answer(request);
    expect(await host.ended()).toEqual([]);
  });
});

describe('a login', () => {
  const cases: { what: string; loads?: string; saves: SessionRecord; fails?: boolean; logins: string[] }[] = [
    { what: 'a request that saves a user', saves: { user: 'alice' }, logins: ['alice'] },
    { what: 'no request that saves no user', saves: {}, logins: [] },
    { what: 'no request that came with that user', loads: 's1', saves: { user: 'alice', n: 1 }, logins: [] },
    { what: 'a request that came with another user', loads: 's1', saves: { user: 'bob' }, logins: ['bob'] },
    { what: 'no request whose save fails', saves: { user: 'alice' }, fails: true, logins: [] },
  ];
  it.each(cases)('is $what: $logins', async ({ loads, saves, fails = false, logins }) => {
    const host = new WatchedHost();
    const request = host.request(loads);
    if (fails) host.error = new Error('down');
    await host.save(request, loads ?? 's9', saves);
    host.error = undefined;
    host.answer(request);
    await host.ended();
    expect(host.logins).toEqual(logins);
  });

  it('is no save by a job', async () => {
    const host = new WatchedHost();
    await host.call('set', 's9', { user: 'alice' });
    await host.ended();
    expect(host.logins).toEqual([]);
  });
});

describe('a session is known to be live', () => {
  const cases: {
    when: string;
    row?: SessionRecord;
    act?: (host: WatchedHost, request: Native) => unknown;
    lives: string[];
  }[] = [
    { when: 'a request has loaded it', row: { user: 'alice' }, lives: ['s1 loaded'] },
    { when: 'no user is in it', row: {}, lives: ['s1 anonymous'] },
    {
      when: 'it is saved with its user',
      act: (host) => host.call('set', 's1', { user: 'alice' }),
      lives: ['s1 loaded', 's1 saved'],
    },
    {
      when: 'it is touched',
      act: (host, request) => host.call('touch', 's1', request.session),
      lives: ['s1 loaded', 's1 touched'],
    },
    {
      when: 'its user is removed',
      act: (host) => host.call('set', 's1', {}),
      lives: ['s1 loaded', 's1 anonymous false'],
    },
    {
      when: 'one of nobody is saved',
      act: (host) => host.call('set', 's9', {}),
      lives: ['s1 loaded', 's9 anonymous true'],
    },
    {
      when: 'a save fails',
      act: (host) => {
        host.error = new Error('down');
        return host.call('set', 's1', { user: 'alice' });
      },
      lives: ['s1 loaded'],
    },
  ];
  it.each(cases)('or not, when $when: $lives', async ({ row = { user: 'alice' }, act, lives }) => {
    const host = WatchedHost.withLives({ s1: row });
    const request = host.request('s1');
    await act?.(host, request);
    expect(host.lives).toEqual(lives);
    host.answer(request);
    await host.ended();
  });
});

describe('a request that has not loaded the session of its cookie', () => {
  const CLEAR = 'sid=; Max-Age=0; Path=/';
  const cases = [
    { what: 'clears it', cookie: 'sid=s1', set: CLEAR, ends: ['alice: abandoned'] },
    { what: 'sets one of another user', cookie: 'sid=s1', set: 'sid=s3', ends: ['alice: abandoned'] },
    { what: 'sets one of the same user', cookie: 'sid=s1', set: 'sid=s2', ends: [] },
    { what: 'clears one of nobody', cookie: 'sid=s9', set: CLEAR, ends: [] },
    { what: 'clears another cookie', cookie: 'sid=s1', set: 'theme=; Max-Age=0', ends: [] },
    { what: 'clears what it has not sent', cookie: 'theme=dark', set: CLEAR, ends: [] },
    { what: 'changes none', cookie: 'sid=s1', set: undefined, ends: [] },
  ];
  it.each(cases)('and $what ends $ends', async ({ cookie, set, ends }) => {
    const host = new WatchedHost({
      s0: { user: 'carol' },
      s1: { user: 'alice' },
      s2: { user: 'alice' },
      s3: { user: 'bob' },
    });
    expect(host.app.mayKnow(cookie)).toBe(false);
    host.answer(host.request('s0')); // shows which cookie it is
    expect(host.app.mayKnow('sid=x')).toBe(true);
    host.answer(host.request(undefined, cookie), set);
    await nextTurn();
    await nextTurn();
    expect(await host.ended()).toEqual(ends);
  });

  it('ends a session once, however often its cookie is cleared', async () => {
    const host = new WatchedHost();
    host.answer(host.request('s1'));
    for (let n = 0; n < 2; n += 1) {
      host.answer(host.request(undefined, 'sid=s1'), CLEAR);
      for (let turn = 0; turn < 5; turn += 1) await nextTurn();
    }
    expect(await host.ended()).toEqual(['alice: abandoned']);
  });

  it('ends none that the session middleware has looked for in vain', async () => {
    const host = new WatchedHost();
    host.answer(host.request('s1'));
    const request = host.request(undefined, 'sid=s1');
    request.sessionID = 'new';
    host.answer(request, CLEAR);
    expect(await host.ended()).toEqual([]);
  });
});
