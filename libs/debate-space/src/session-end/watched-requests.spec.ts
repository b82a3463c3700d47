import { describe, expect, it } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { WatchedHost, type Native } from 'debate-space-fixtures/watched-host.js';
import type { SessionRecord } from './session-end.js';

type Act = (host: WatchedHost, request: Native) => unknown;

const EXPIRED = { cookie: { expires: new Date(0) } };

describe('a session of alice that a request has loaded', () => {
  const ALICE = { user: 'alice' };
  const fail = (host: WatchedHost, call: Promise<unknown>): Promise<unknown> => {
    host.error = new Error('down');
    return call.finally(() => (host.error = undefined));
  };
  const renew = async (host: WatchedHost, request: Native): Promise<void> => {
    await host.call('regenerate', request);
    await host.save(request, 's2', ALICE);
  };
  const cases: [handler: string, end: string | undefined, act: Act, setCookie?: string][] = [
    ['destroys it', 'destroyed', (host) => host.call('destroy', 's1')],
    ['regenerates it', 'destroyed', (host, request) => host.call('regenerate', request)],
    ['regenerates it, and logs her in', undefined, renew, 'sid=s2'],
    ['saves it without her', 'user-removed', (host, request) => host.save(request, 's1', {})],
    ['gives it to bob', 'user-replaced', (host, request) => host.save(request, 's1', { user: 'bob' })],
    ['saves it expired', 'destroyed', (host, request) => host.save(request, 's1', { ...ALICE, ...EXPIRED })],
    [
      'touches it expired',
      'destroyed',
      (host, request) => host.touch(request, 's1', { ...ALICE, ...EXPIRED }),
    ],
    ['saves it', undefined, (host, request) => host.save(request, 's1', { ...ALICE, basket: 1 })],
    ['touches it', undefined, (host, request) => host.touch(request, 's1', ALICE)],
    ['fails to save it without her', undefined, (host, request) => fail(host, host.save(request, 's1', {}))],
    ['ends one of nobody', undefined, (host) => host.call('destroy', 's9')],
  ];
  it.each(cases)('by a handler that %s, ends (%s)', async (...[, end, act, sets]) => {
    const host = new WatchedHost();
    const request = host.request('s1');
    await act(host, request);
    host.answer(request, sets);
    expect(await host.ended()).toEqual(end === undefined ? [] : [`alice: ${end}`]);
  });

  it('is saved, touched and read in the same tick', () => {
    const host = new WatchedHost();
    const request = host.request('s1');
    const reached: string[] = [];
    const named = (name: string) => () => reached.push(name);
    const other = { ...host.store, set: named('set'), touch: named('touch'), get: named('get') };
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

describe.each([
  ['destroyed', (host: WatchedHost) => host.call('destroy', 's1')],
  ['cleared', (host: WatchedHost) => host.call('clear')],
])('a session that is %s', (reason, end) => {
  it('is not known any more: another instance may give it to another user', async () => {
    const host = new WatchedHost();
    const request = host.request('s1');
    await end(host);
    host.rows.set('s1', { user: 'bob' });
    await host.call('destroy', 's1');
    host.answer(request);
    expect((await host.ended()).toSorted()).toEqual([`alice: ${reason}`, 'bob: destroyed']);
  });

  it('in vain is still known', async () => {
    const host = new WatchedHost();
    const request = host.request('s1');
    host.error = new Error('down');
    await end(host);
    host.error = undefined;
    await host.save(request, 's1', {});
    host.answer(request);
    expect(await host.ended()).toHaveLength(1);
  });
});

describe('a request without a session that can be known', () => {
  it.each([
    ['has none', undefined, 's1'],
    ['has nothing', null, 's1'],
    ['has something else', 'alice', 's1'],
    ['has no id', { user: 'alice' }, undefined],
  ])('is of no interest where it %s', async (_, session, sid) => {
    const host = WatchedHost.withLives();
    const request = host.request();
    host.app.loaded(host.store, request, session, sid);
    expect(host.lives).toEqual([]);
    host.answer(request);
    await host.ended();
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

  it.each([true, false])('and lists its sessions has ended each once (with ids: %s)', async (ids) => {
    const host = new WatchedHost({ s1: { user: 'alice' }, s2: { user: 'bob' }, s3: {} });
    const list = (): unknown[] => [...host.rows].map(([id, row]) => (ids ? { id, ...row } : row));
    const all = (done: (error: unknown, rows: unknown[]) => void): unknown =>
      setImmediate(done, null, list());
    Object.assign(host.store, { all });
    const request = host.request('s1');
    await host.call('clear');
    host.answer(request);
    expect((await host.ended()).toSorted()).toEqual(['alice: cleared', 'bob: cleared']);
    expect(host.warnings).toEqual([]);
  });
});

describe('a login', () => {
  const cases: [
    what: string,
    sid: string | undefined,
    saves: SessionRecord,
    fails: boolean,
    logins: string[],
  ][] = [
    ['a request that saves a user', undefined, { user: 'alice' }, false, ['alice']],
    ['no request that saves no user', undefined, {}, false, []],
    ['no request that came with that user', 's1', { user: 'alice', n: 1 }, false, []],
    ['a request that came with another user', 's1', { user: 'bob' }, false, ['bob']],
    ['no request whose save fails', undefined, { user: 'alice' }, true, []],
  ];
  it.each(cases)('is %s', async (...[, loads, saves, fails, logins]) => {
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
  const ALICE = { user: 'alice' };
  const fail: Act = (host) => {
    host.error = new Error('down');
    return host.call('set', 's1', ALICE);
  };
  const cases: [when: string, lives: string[], act?: Act, row?: SessionRecord][] = [
    ['a request has loaded it', ['s1 loaded']],
    ['no user is in it', ['s1 anonymous'], undefined, {}],
    ['it is saved with its user', ['s1 loaded', 's1 saved'], (host) => host.call('set', 's1', ALICE)],
    ['it is touched', ['s1 loaded', 's1 touched'], (host) => host.call('touch', 's1', ALICE)],
    ['its user is removed', ['s1 loaded', 's1 anonymous false'], (host) => host.call('set', 's1', {})],
    ['one of nobody is saved', ['s1 loaded', 's9 anonymous true'], (host) => host.call('set', 's9', {})],
    ['a save fails', ['s1 loaded'], fail],
  ];
  it.each(cases)('or not, when %s: %j', async (...[, lives, act, row = ALICE]) => {
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
