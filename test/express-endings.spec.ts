import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import { Browser } from './support/browser.js';
import { endings } from './support/express-endings.js';
import { FallibleStore } from './support/fallible-store.js';
import { Gate } from './support/gate.js';
import { startService, using } from './support/service.js';
import { SessionHost, sessionStacks, type Act } from './support/session-host.js';

let service: DebateSpaceSimulator;
beforeAll(async () => {
  service = await startService();
});
beforeEach(() => {
  service.received.clear();
});
afterAll(async () => {
  await service.stop();
});

const cells = endings.flatMap((ending) =>
  (ending.stacks ?? sessionStacks).map((stack) => ({
    ...ending,
    stack,
    verdict: ending.ends ? 'reported once' : 'silent',
  })),
);

describe('on Express, an end of a session is reported once and a look-alike is not', () => {
  it.each(cells)('$stack: $name – $verdict', async (ending) => {
    const store = new FallibleStore();
    const [entered, left] = [new Gate(), new Gate()];
    const act: Act = async (request, response) => {
      entered.open();
      try {
        await ending.act(request, response, store);
      } finally {
        left.open();
      }
    };
    const host = await SessionHost.start({ ...ending, store, act, debateSpace: using(service) });
    const browser = new Browser(host.url);
    await browser.post('/login', { uid: 'alice' });
    expect(await browser.get('/whoami')).toBe('alice');

    const leaving = new AbortController();
    const { path = '/act' } = ending;
    const method = path === '/act-events' ? 'GET' : 'POST';
    const answer = browser.fetch(path, { method, signal: leaving.signal });
    await entered.passed;
    if (ending.aborts) leaving.abort();
    await left.passed;
    if (ending.aborts) await expect(answer).rejects.toThrow('aborted');
    else if (path !== '/act-events') await (await answer).text();

    store.failing = undefined;
    const loggedOut = (await browser.get('/whoami')) !== 'alice';
    expect(loggedOut).toBe(ending.ends); // the truth is what the same browser gets
    if (ending.ends) await service.received.waitFor('logout', { timeoutMs: 10_000 });
    leaving.abort();
    if (ending.aborts) host.app.getHttpServer().closeAllConnections();
    await host.stop(); // has every verdict fall, and delivers what there is
    expect(service.received.logouts).toEqual(ending.ends ? ['alice'] : []);
  });
});
