import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import session from 'express-session';
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import { DebateSpaceEvents, type DebateSpaceEvent } from 'nestjs-debate-space';
import { firstValueFrom, filter } from 'rxjs';
import { Browser } from './support/browser.js';
import { startService, using } from './support/service.js';
import { SessionHost, type Act } from './support/session-host.js';

const destroy: Act = async (request, response) => {
  await new Promise((resolve) => request.session.destroy(resolve));
  response.setHeader('x-of-the-host', 'yes').status(200).end('logged out');
};

let service: DebateSpaceSimulator;
beforeEach(async () => {
  service = await startService();
});
afterEach(async () => {
  await service.stop();
});

async function answerOfLogout(
  debateSpace: Parameters<typeof SessionHost.start>[0]['debateSpace'],
): Promise<object> {
  const host = await SessionHost.start({ store: new session.MemoryStore(), act: destroy, debateSpace });
  const browser = new Browser(host.url);
  await browser.post('/login', { uid: 'alice' });
  const answer = await whole(await browser.fetch('/act', { method: 'POST' }));
  await host.stop();
  return answer;
}

async function whole(response: Response): Promise<{ status: number; headers: object; body: string }> {
  const headers = new Headers(response.headers);
  headers.delete('date');
  return { status: response.status, headers: Object.fromEntries(headers), body: await response.text() };
}

describe('the host comes first', () => {
  it('a logout is answered before the service has answered', async () => {
    service.faults.add({ kind: 'latency', ms: 30_000, operation: 'logout' });
    const host = await SessionHost.start({
      store: new session.MemoryStore(),
      act: destroy,
      debateSpace: using(service),
    });
    const seen: DebateSpaceEvent['type'][] = [];
    host.app.get(DebateSpaceEvents).events$.subscribe(({ type }) => seen.push(type));
    const browser = new Browser(host.url);
    await browser.post('/login', { uid: 'alice' });
    expect(await browser.post('/act')).toBe('logged out');
    await service.received.waitFor('logout');
    expect(seen.at(-1)).toBe('session-ended'); // and no more: the service has not answered yet
    await service.stop(); // breaks the connection, so that the host need not wait for its shutdown
    await host.stop();
    expect(seen).not.toContain('logout-delivered');
  });

  it('a logout’s answer is the same with a service that is up, one that is down, and without the plugin', async () => {
    const without = await answerOfLogout(undefined);
    const up = await answerOfLogout(using(service));
    await service.goDown();
    const down = await answerOfLogout(using(service));
    expect(up).toEqual(without);
    expect(down).toEqual(without);
  });

  it('a uid resolver that throws is an event and a log line, and the host’s requests are answered', async () => {
    const uid = (): string => {
      throw new TypeError('no such field');
    };
    const warnings: unknown[] = [];
    const logger = {
      log: () => undefined,
      error: () => undefined,
      warn: (line: unknown) => warnings.push(line),
    };
    const debateSpace = using(service, { session: { uid } });
    const host = await SessionHost.start({
      store: new session.MemoryStore(),
      act: destroy,
      debateSpace,
      logger,
    });
    const fault = firstValueFrom(
      host.app.get(DebateSpaceEvents).events$.pipe(filter(({ type }) => type === 'fault')),
    );
    const browser = new Browser(host.url);
    expect(await browser.post('/login', { uid: 'alice' })).toBe('hello alice');
    expect(await browser.post('/act')).toBe('logged out');
    expect(await fault).toEqual({ type: 'fault', where: 'session.uid', error: 'TypeError' });
    await host.stop();
    expect(warnings.join('\n')).toContain('session.uid (TypeError)');
    expect(service.received.logouts).toEqual([]);
  });

  it('a frozen store is an event, and the app goes on', async () => {
    const store = Object.freeze({ get: () => undefined, set: () => undefined, destroy: () => undefined });
    const warnings: unknown[] = [];
    const logger = {
      log: () => undefined,
      error: () => undefined,
      warn: (line: unknown) => warnings.push(line),
    };
    const debateSpace = using(service, { session: { store } });
    const host = await SessionHost.start({ store: new session.MemoryStore(), debateSpace, logger });
    expect(await new Browser(host.url).get('/whoami')).toBe('nobody');
    await host.stop();
    expect(warnings.join('\n')).toContain('session store (TypeError)');
  });
});
