import { beforeEach, describe, expect, it } from '@jest/globals';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { Containment } from './containment.js';
import { PendingTasks } from './waits.js';
import { CookieSessions } from './cookie-sessions.js';
import type { SetupWarning } from './session-end.js';
import { SetupWarnings } from './setup-warnings.js';

const LOGOUT = 'session=; Max-Age=0; Path=/';

interface Exchange {
  readonly cookie?: string;
  readonly set?: string | readonly string[] | undefined;
}

/** One cookie, whose values begin with the uid. */
class Host {
  readonly reported: string[] = [];
  readonly warnings: SetupWarning[] = [];
  readonly #tasks = new PendingTasks();
  readonly #sessions: CookieSessions;

  constructor() {
    const reporter = {
      report: ({ uid, reason }: { uid: string; reason: string }) =>
        void this.reported.push(`${uid} ${reason}`),
    };
    const warnings = new SetupWarnings((warning) => this.warnings.push(warning), false);
    const context = { reporter, tasks: this.#tasks, containment: new Containment(() => undefined), warnings };
    const uid = (value: string): string | undefined => value.split('-', 1)[0];
    this.#sessions = new CookieSessions([{ name: 'session', uid }], context as never);
  }

  /** A request comes. @returns its response, before its head */
  request({ cookie }: Exchange = {}): ServerResponse {
    const request = Object.assign(new IncomingMessage(new Socket()), { url: '/' });
    Object.assign(request.headers, { cookie });
    const response = new ServerResponse(request);
    this.#sessions.watch(request, response);
    return response;
  }

  async exchange(exchange: Exchange): Promise<void> {
    const response = this.request(exchange);
    const { set } = exchange;
    response.writeHead(204, set === undefined ? {} : { 'Set-Cookie': [set].flat() });
    await this.#tasks.onIdle();
  }
}

const isWatched = (response: ServerResponse): boolean => Object.hasOwn(response, 'writeHead');

let host: Host;
beforeEach(() => {
  host = new Host();
});

describe('an answer', () => {
  it.each([
    { name: 'clears the cookie', set: LOGOUT, reported: ['alice destroyed'] },
    {
      name: 'sets the cookie of another user',
      set: 'session=bob-1; Path=/',
      reported: ['alice user-replaced'],
    },
    {
      name: 'sets a cookie that is nobody’s',
      set: 'session=null-2; Path=/',
      reported: ['alice user-removed'],
    },
    { name: 'renews the cookie', set: 'session=alice-2; Path=/', reported: [] },
    {
      name: 'renews the cookie in two chunks',
      set: ['session.0=ali; Path=/', 'session.1=ce-2; Path=/', LOGOUT],
      reported: [],
    },
    { name: 'clears it at another path', set: 'session=; Max-Age=0; Path=/other', reported: [] },
    { name: 'leaves the cookie as it is', set: undefined, reported: [] },
  ])('that $name reports $reported', async ({ set, reported }) => {
    await host.exchange({ cookie: 'session=alice-1', set });
    expect(host.reported).toEqual(reported);
  });

  it('of a request without the cookie is not watched', async () => {
    expect(isWatched(host.request())).toBe(false);
    await host.exchange({ set: LOGOUT });
    expect(host.reported).toEqual([]);
  });
});

it('a cookie whose function returns what cannot be a uid is one warning that names the cookie', async () => {
  for (const value of ['null-1', 'undefined-2'])
    await host.exchange({ cookie: `session=${value}`, set: LOGOUT });
  expect(host.reported).toEqual([]);
  expect(host.warnings).toMatchObject([
    { code: 'uid-not-found', hint: expect.stringContaining('this cookie') },
  ]);
  expect(host.warnings[0]?.message).toContain('is the text of a missing value');
  expect(host.warnings[0]?.message).toContain('(session keys: session)');
});
