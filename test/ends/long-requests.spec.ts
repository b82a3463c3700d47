import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import session from 'express-session';
import { DebateSpaceEvents, type DebateSpaceEvent } from 'nestjs-debate-space';
import { Browser, logInTo } from '#support/browser/browser.js';
import { Latch } from '#support/latch.js';
import { scenario } from '#support/hosts/scenario.js';
import { logIn, type Act } from '#support/hosts/session-host.js';
import { called, jobs, onlySid } from '#support/hosts/session-jobs.js';

const LONGER_THAN_A_LEASE_MS = 35_000;
const LESS_THAN_A_LEASE_MS = 20_000;

const scene = scenario();
let events: DebateSpaceEvent['type'][];
/** Opens when the handler waits, and lets it go on. */
let [waiting, goOn]: [Latch, Latch] = [new Latch(), new Latch()];
const store = (): session.MemoryStore => new session.MemoryStore();

// The clock of the plugin's timers is the test's; the sockets of the host and of the service go by their own.
beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'clearImmediate', 'queueMicrotask'] });
  [waiting, goOn] = [new Latch(), new Latch()];
  events = [];
});
afterEach(async () => {
  goOn.open();
  await stopped();
  jest.useRealTimers();
});

async function start(act: Act, sessions: session.Store): Promise<Browser> {
  const host = await scene.start({ act, store: sessions });
  host.app.get(DebateSpaceEvents).events$.subscribe(({ type }) => {
    if (type === 'session-ended' || type === 'logout-delivered') events.push(type);
  });
  return logInTo(host, 'alice');
}

/** Lets time pass, in small steps, so that what is due happens in its order. */
async function pass(ms: number, until: () => boolean = () => false): Promise<void> {
  for (let passed = 0; passed < ms && !until(); passed += 100) await jest.advanceTimersByTimeAsync(100);
}

async function stopped(): Promise<void> {
  let isDone = false;
  const stopping = scene.stop().finally(() => {
    isDone = true;
  });
  while (!(isDone as boolean)) await jest.advanceTimersByTimeAsync(100);
  await stopping;
}

describe('a request that takes longer than the lease of a noted end', () => {
  const renewals: readonly { readonly name: string; readonly act: Act }[] = [
    {
      name: 'a login that regenerates the session, and answers much later',
      act: async (request) => {
        await called((done) => request.session.regenerate(done));
        await logIn(request, 'alice');
        waiting.open();
        await goOn.passed;
      },
    },
    {
      name: 'a login that regenerates the session, and knows its user much later',
      act: async (request) => {
        await called((done) => request.session.regenerate(done));
        waiting.open();
        await goOn.passed;
        await logIn(request, 'alice');
      },
    },
  ];
  it.each(renewals)('is not reported as an end: $name', async ({ act }) => {
    const browser = await start(act, store());
    const answer = browser.post('/act');
    await waiting.passed;
    await pass(LONGER_THAN_A_LEASE_MS);
    goOn.open();
    await answer;
    expect(await browser.get('/whoami')).toBe('alice');
    await pass(1_000);
    await stopped();
    expect(scene.service.received.logouts).toEqual([]);
  });

  it('is reported once when it destroys its session', async () => {
    const browser = await start(async (request) => {
      await called((done) => request.session.destroy(done));
      waiting.open();
      await goOn.passed;
    }, store());
    const answer = browser.post('/act');
    await waiting.passed;
    await pass(LONGER_THAN_A_LEASE_MS);
    goOn.open();
    await answer;
    expect(await browser.get('/whoami')).toBe('nobody');
    await scene.service.received.waitFor('logout'); // by the clock of the test, a shutdown is faster than a request
    await stopped();
    expect(scene.service.received.logouts).toEqual(['alice']);
  });
});

describe('an unanswered request', () => {
  it('does not delay the report of a job that ends its session', async () => {
    const sessions = store();
    const browser = await start(async () => {
      waiting.open();
      await goOn.passed;
    }, sessions);
    const answer = browser.post('/act');
    await waiting.passed;
    await jobs.destroy(sessions, await onlySid(sessions));
    await pass(LESS_THAN_A_LEASE_MS, () => events.length > 0);
    expect(events.slice(0, 1)).toEqual(['session-ended']);
    await scene.service.received.waitFor('logout');
    goOn.open();
    await answer;
    await stopped();
    expect(scene.service.received.logouts).toEqual(['alice']);
  });
});

describe('a request with eleven renewals of its session', () => {
  it('has no more listeners than Node.js warns of', async () => {
    const listeners: (readonly [name: unknown, count: number])[] = [];
    const browser = await start(async (request, response) => {
      for (let count = 0; count < 11; count += 1) {
        await called((done) => request.session.regenerate(done));
        await logIn(request, 'alice');
        await called((done) => request.session.save(done));
      }
      const most = response.getMaxListeners() || Infinity;
      const counted = response.eventNames().map((name) => [name, response.listenerCount(name)] as const);
      listeners.push(...counted.filter(([, count]) => count > most));
    }, store());
    await browser.post('/act');
    expect(await browser.get('/whoami')).toBe('alice');
    expect(listeners).toEqual([]);
    await stopped();
    expect(scene.service.received.logouts).toEqual([]);
  });
});
