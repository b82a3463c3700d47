import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { Containment } from './containment.js';
import { PendingTasks } from './waits.js';
import { CookieSessions } from './cookie-sessions.js';
import type { SetupWarning } from './session-end.js';
import { SetupWarnings } from './setup-warnings.js';

const LOGIN = 'session=alice-1; Path=/';
const LOGOUT = 'session=; Max-Age=0; Path=/';

interface Exchange {
  readonly cookie?: string;
  readonly userAgent?: string;
  readonly set?: string;
}

/** One cookie, whose values begin with the uid. */
class Host {
  readonly reported: string[] = [];
  readonly warnings: SetupWarning[] = [];
  readonly #tasks = new PendingTasks();
  readonly #sessions: CookieSessions;

  constructor() {
    const reporter = {
      wantsLogins: false,
      report: ({ uid }: { uid: string }) => void this.reported.push(uid),
    };
    const warnings = new SetupWarnings((warning) => this.warnings.push(warning), false);
    const context = { reporter, tasks: this.#tasks, containment: new Containment(() => undefined), warnings };
    const uid = (value: string): string | undefined => value.split('-', 1)[0];
    this.#sessions = new CookieSessions([{ name: 'session', uid }], context as never);
  }

  /** A request comes. @returns its response, before its head */
  request({ cookie, userAgent }: Exchange = {}): ServerResponse {
    const request = Object.assign(new IncomingMessage(new Socket()), { url: '/' });
    Object.assign(request.headers, { cookie, 'user-agent': userAgent });
    const response = new ServerResponse(request);
    this.#sessions.watch(request, response);
    return response;
  }

  async exchange(exchange: Exchange): Promise<void> {
    await this.answer(this.request(exchange), exchange.set);
  }

  async answer(response: ServerResponse, set?: string): Promise<void> {
    response.writeHead(204, set === undefined ? {} : { 'Set-Cookie': set });
    await this.#tasks.onIdle();
  }
}

const isWatched = (response: ServerResponse): boolean => Object.hasOwn(response, 'writeHead');
const logout = { cookie: 'session=alice-1', set: LOGOUT };

let host: Host;
beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
  host = new Host();
});
afterEach(() => void jest.useRealTimers());

describe('a logout with a cookie that has logged out before', () => {
  it.each([0, 200, 1_000, 59_000])('is not reported %d ms later', async (ms) => {
    await host.exchange(logout);
    jest.advanceTimersByTime(ms);
    await host.exchange(logout);
    expect(host.reported).toEqual(['alice']);
  });

  it('is reported a minute later', async () => {
    await host.exchange(logout);
    jest.advanceTimersByTime(60_001);
    await host.exchange(logout);
    expect(host.reported).toEqual(['alice', 'alice']);
  });

  it.each([
    { name: 'a login has set the same value', between: { set: LOGIN } },
    { name: 'a login of another path has set it', between: { set: 'session=alice-1; Path=/app' } },
    { name: 'a response has renewed it', between: { cookie: 'session=alice-1', set: LOGIN } },
    { name: 'a browser has used it since', between: { cookie: 'session=alice-1' } },
  ])('is reported when $name', async ({ between }) => {
    await host.exchange(logout);
    jest.advanceTimersByTime(10);
    await host.exchange(between);
    await host.exchange(logout);
    expect(host.reported).toEqual(['alice', 'alice']);
  });

  it('is reported when a login has set the same value before the user of the first was known', async () => {
    const first = host.request(logout);
    first.writeHead(204, { 'Set-Cookie': LOGOUT });
    host.request().writeHead(204, { 'Set-Cookie': LOGIN });
    await host.exchange(logout);
    expect(host.reported).toEqual(['alice', 'alice']);
  });

  it('is reported when it comes from another kind of browser', async () => {
    await host.exchange({ ...logout, userAgent: 'a phone' });
    await host.exchange({ ...logout, userAgent: 'a desktop' });
    expect(host.reported).toEqual(['alice', 'alice']);
  });

  it('is not reported when a request that came before the first logout is answered in between', async () => {
    const early = host.request({ cookie: 'session=alice-1' });
    jest.advanceTimersByTime(10);
    await host.exchange(logout);
    await host.answer(early);
    await host.exchange(logout);
    expect(host.reported).toEqual(['alice']);
  });
});

it('a cookie whose function returns what cannot be a uid is one warning that names the cookie', async () => {
  for (const value of ['null-1', 'undefined-2'])
    await host.exchange({ cookie: `session=${value}`, set: LOGOUT });
  expect(host.reported).toEqual([]);
  expect(host.warnings).toMatchObject([
    { code: 'uid-not-found', hint: expect.stringContaining('this cookie') },
  ]);
  expect(host.warnings[0]?.message).toContain('is the text of a value that is none');
  expect(host.warnings[0]?.message).toContain('(session keys: session)');
});

describe('a request without a session cookie', () => {
  it('is not watched while nobody has logged out', async () => {
    await host.exchange({ cookie: 'session=alice-1', set: 'session=alice-2; Path=/' });
    expect(isWatched(host.request())).toBe(false);
  });

  it('is watched for a minute after a logout', async () => {
    await host.exchange(logout);
    expect(isWatched(host.request())).toBe(true);
    jest.advanceTimersByTime(60_001);
    expect(isWatched(host.request())).toBe(false);
  });
});
