import { describe, expect, it } from '@jest/globals';
import { AsyncLocalStorage } from 'node:async_hooks';
import {
  DebateSpaceErasures,
  DebateSpaceEvents,
  DebateSpaceOutbox,
  DebateSpaceService,
  InvalidUidError,
  type DebateSpaceEvent,
  type DebateSpaceModuleOptions,
  memoryStorage,
} from 'nestjs-debate-space';
import { eventsOf, firstEvent } from '#support/hosts/events.js';
import { replacing } from '#support/storages/flaky-storage.js';
import { Latch } from '#support/latch.js';
import { scenario } from '#support/hosts/scenario.js';
import { keys } from '#support/service/service.js';
import type { Fault } from 'debate-space-simulator';
import { SessionHost } from '#support/hosts/session-host.js';

const scene = scenario();
let host: SessionHost;
let events: DebateSpaceEvent[];
let log: string[];

async function start(options: Partial<DebateSpaceModuleOptions> = {}): Promise<DebateSpaceService> {
  log = [];
  const note = (line: unknown): unknown => log.push(String(line));
  const logger = { log: note, warn: note, error: note };
  host = await scene.start({ logger }, options);
  events = eventsOf(host.app);
  return host.app.get(DebateSpaceService);
}

function types(): DebateSpaceEvent['type'][] {
  return events.map(({ type }) => type);
}

describe('a logout on its way', () => {
  it('arrives, signed, after a failure, with a new jti and the same txn, and the debate session has ended', async () => {
    const debateSpace = await start();
    scene.service.debate.signIn('alice');
    scene.service.faults.add({ kind: 'status', status: 503, operation: 'logout', times: 1 });
    await debateSpace.logoutUser('alice');
    const [first, second] = await scene.service.received.waitFor('logout', { count: 2, timeoutMs: 10_000 });
    expect(second).toMatchObject({ accepted: true, uid: 'alice', claims: { txn: first?.claims?.txn } });
    expect(second?.claims?.jti).not.toBe(first?.claims?.jti);
    expect(scene.service.debate.isSignedIn('alice')).toBe(false);
    await scene.stop();
    expect(types()).toEqual(['session-ended', 'logout-retrying', 'logout-delivered']);
  });

  it('waits, with one line that names the address and no personal data, when the application name is wrong', async () => {
    const debateSpace = await start({ applicationName: 'another' });
    const isDown = firstEvent(host.app, 'service-down');
    for (let n = 0; n < 12; n += 1) await debateSpace.logoutUser(`alice-${n}`);
    await isDown;
    expect(types()).not.toContain('logout-parked');
    expect(log.filter((line) => line.includes('/auth/logout/'))).toEqual([
      expect.stringMatching(/^http\S+\/auth\/logout\/another .*\(404\).* hint: .*check applicationName/),
    ]);
    expect(log.join('\n')).not.toContain('alice');
  });

  it('is delivered once the logout route is back, after the pages of a firewall and of a maintenance', async () => {
    const debateSpace = await start();
    const { faults, received } = scene.service;
    const page = '<!doctype html><title>Back soon</title>';
    const answers = [
      { kind: 'redirect', location: 'https://status.example.org/', times: 1 },
      { kind: 'body', body: page, contentType: 'text/html', times: 1 },
      { kind: 'body', body: page, contentType: 'text/html', status: 403 },
    ] as const;
    const ends = answers.map((fault) => faults.add({ ...fault, operation: 'logout' }));
    const uids = Array.from({ length: 20 }, (_, n) => `user-${n}`);
    for (const uid of uids) await debateSpace.logoutUser(uid);
    await received.waitFor('logout', { count: 8, timeoutMs: 60_000 });
    for (const end of ends) end();
    await received.waitFor('logout', { count: 8 + uids.length, timeoutMs: 60_000 });
    await scene.stop();
    expect(new Set(received.logouts)).toEqual(new Set(uids));
    expect(types().filter((type) => type === 'logout-delivered')).toHaveLength(uids.length);
    expect(types()).not.toContain('logout-parked');
    const warned = events.flatMap((event) => (event.type === 'logout-route-unexpected' ? event.cause : []));
    expect(warned.toSorted()).toEqual(['200 with a web page', '302', '403 with a web page']);
    const lines = log.filter((line) => line.includes('(403 with a web page); logouts wait'));
    expect(lines).toEqual([
      expect.stringContaining('something else than the service answers; check authUrl'),
    ]);
    expect(log.join('\n')).not.toContain('secretKey');
  });

  it('is signed with the current key of a secretKey function, and waits while the function fails', async () => {
    const [right, wrong] = [keys.secretKey, 'another secret, as long as the right one is'];
    const answers = [
      () => right,
      () => wrong,
      () => {
        throw new Error(wrong);
      },
    ];
    const debateSpace = await start({ secretKey: () => (answers.shift() ?? (() => right))() });
    await debateSpace.logoutUser('alice');
    await scene.service.received.waitFor('logout', { count: 2, timeoutMs: 20_000 });
    await scene.stop();
    expect(scene.service.received.of('logout').map(({ accepted }) => accepted)).toEqual([false, true]);
    expect(events).toMatchObject([
      { type: 'session-ended' },
      { type: 'logout-retrying', cause: '400' },
      { type: 'fault', where: 'secretKey is unknown: the function failed (Error)' },
      { type: 'logout-retrying', cause: 'secretKey failed' },
      { type: 'logout-delivered', attempts: 3 },
    ]);
    expect(log.join('\n')).toContain('secretKey is unknown');
    expect(log.join('\n')).not.toContain(wrong);
  });

  const claims = {
    fails: () => {
      throw new Error('no such row');
    },
    'never answers': () => new Promise<never>(() => undefined),
  };
  it.each(Object.entries(claims))('is not held up by others whose logout.claims %s', async (_what, fail) => {
    const debateSpace = await start({
      logout: { concurrency: 2, claims: ({ uid }) => (uid === 'alice' ? {} : fail()) },
      http: { timeoutMs: 500 },
    });
    for (const uid of ['b', 'c', 'd', 'alice']) await debateSpace.logoutUser(uid);
    await scene.service.received.waitFor('logout', { timeoutMs: 30_000 });
    expect(scene.service.received.logouts).toEqual(['alice']);
    expect(types()).not.toContain('service-down');
    expect(log.join('\n')).toContain('a failure was contained: logout.claims');
  });

  it.each<[string, Fault, string[]]>([
    ['has its failure stored', { kind: 'status', status: 503 }, ['postponed', 'closed']],
    ['is given back', { kind: 'latency', ms: 30_000 }, ['given back after 0 attempts', 'closed']],
  ])(
    '%s before the storage closes, when the app shuts down while it is sent',
    async (_what, fault, expected) => {
      const calls: string[] = [];
      const stopping = new Latch();
      const storage = replacing(memoryStorage(), (memory) => ({
        postpone: async (...args) => {
          await stopping.passed;
          await memory.postpone(...args);
          calls.push('postponed');
        },
        giveBack: async (claims) => {
          calls.push(...claims.map(({ attempts }) => `given back after ${attempts} attempts`));
          await memory.giveBack(claims);
        },
        close: async () => {
          calls.push('closed');
          await memory.close();
        },
      }));
      const debateSpace = await start({ storage });
      scene.service.faults.add({ ...fault, operation: 'logout' });
      await debateSpace.logoutUser('alice');
      await scene.service.received.waitFor('logout');
      const stopped = scene.stop();
      setImmediate(() => {
        stopping.open();
      });
      await stopped;
      expect([calls[0], calls.at(-1)]).toEqual(expected);
      if (fault.kind === 'latency') expect(types()).not.toContain('service-down'); // a 503 is repeated until the end
      expect(types()).toContain('shutdown-incomplete');
    },
  );

  it('may be requested with the JSON text of the user that a session keeps', async () => {
    const debateSpace = await start();
    await debateSpace.logoutUser('{"id":7,"name":"Alice"}');
    expect(await scene.service.received.waitFor('logout')).toMatchObject([{ uid: '7' }]);
  });

  it('is refused, and nothing stored, when the uid cannot be a uid', async () => {
    const debateSpace = await start();
    await expect(debateSpace.logoutUser('..')).rejects.toThrow(InvalidUidError);
    expect(events).toEqual([]);
  });
});

describe('a secretKey function that fails', () => {
  it('stops the boot', async () => {
    const failing = start({ secretKey: () => Promise.reject(new TypeError('vault')) });
    await expect(failing).rejects.toThrow('secretKey is unknown: the function failed (TypeError)');
  });

  it('has user operations fail with the cause, and nothing sent', async () => {
    let calls = 0;
    const secretKey = (): string => {
      if ((calls += 1) > 1) throw new TypeError('vault');
      return keys.secretKey;
    };
    const debateSpace = await start({ secretKey });
    await expect(debateSpace.anonymizeUser('alice')).rejects.toMatchObject({
      code: 'ERR_DEBATE_SPACE_AUTHENTICATION',
      outcome: 'not-sent',
      message: expect.stringContaining('secretKey is unknown'),
    });
    expect(scene.service.received.all).toEqual([]);
  });
});

it('a drain that a request of the host calls runs outside the async context of the request', async () => {
  const request = new AsyncLocalStorage<string>();
  const contexts: unknown[] = [];
  const note = (): undefined => void contexts.push(request.getStore());
  const debateSpace = await start({
    storage: await scene.sqlite(),
    worker: false,
    logout: {
      claims: () => {
        note();
        return {};
      },
    },
    erasure: { beforeErase: note },
  });
  host.app.get(DebateSpaceEvents).events$.subscribe(({ type }) => {
    if (type === 'logout-delivered' || type === 'erasure-finished') note();
  });
  await request.run('of the host', async () => {
    await debateSpace.logoutUser('alice');
    await host.app.get(DebateSpaceErasures).request({ uid: 'bob', mode: 'delete' });
    expect(await host.app.get(DebateSpaceOutbox).drain()).toMatchObject({ drained: true, pending: 0 });
    expect(request.getStore()).toBe('of the host');
  });
  // The claims of two logouts, beforeErase, and two events.
  expect(contexts).toEqual(Array.from({ length: 5 }, () => undefined));
});
