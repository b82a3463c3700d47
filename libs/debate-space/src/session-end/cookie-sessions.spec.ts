import { beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer, IncomingMessage, ServerResponse } from 'node:http';
import { Socket, type AddressInfo } from 'node:net';
import { Containment } from '../async/containment.js';
import { PendingTasks } from './context.js';
import { CookieSessions, onHead } from './cookie-sessions.js';
import type { SetupWarning } from './session-end.js';
import { SetupWarnings } from './setup-warnings.js';

const LOGOUT = 'session=; Max-Age=0; Path=/';

interface Exchange {
  readonly cookie?: string;
  readonly set?: string | readonly string[] | undefined;
}

/** Two cookies, whose values begin with the uid. */
class Host {
  /** Whether the host no longer knows whose its cookies are. */
  isForgotten = false;
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
    const uid = (value: string): string | undefined =>
      this.isForgotten ? undefined : value.split('-', 1)[0];
    const cookies = ['session', 'remember'].map((name) => ({ name, uid }));
    this.#sessions = new CookieSessions(cookies, context as never);
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
    { name: 'leaves the cookie as it is', set: undefined, reported: [] },
  ])('that $name reports $reported', async ({ set, reported }) => {
    await host.exchange({ cookie: 'session=alice-1', set });
    expect(host.reported).toEqual(reported);
  });

  it.each([
    { name: 'the path with which the host sets it', clears: '/app', reported: ['alice destroyed'] },
    { name: 'another path', clears: '/', reported: [] },
  ])('that clears it at $name reports $reported, though a proxy has stripped the path', async (row) => {
    await host.exchange({ set: 'session=alice-1; Path=/app' });
    await host.exchange({ cookie: 'session=alice-1', set: `session=; Max-Age=0; Path=${row.clears}` });
    expect(host.reported).toEqual(row.reported);
  });

  it.each(['a b=1', 'ü=1', '=x', '__proto__=1', 'a="', '%=%zz', ';;;', 'a\u0001=1'])(
    'reports a logout beside the odd cookie %s',
    async (odd) => {
      await host.exchange({ cookie: `${odd}; session=alice-1; ${odd}`, set: LOGOUT });
      expect(host.reported).toEqual(['alice destroyed']);
    },
  );

  it('reports nothing while another listed cookie names the user', async () => {
    await host.exchange({ cookie: 'session=alice-1; remember=alice-2', set: LOGOUT });
    expect(host.reported).toEqual([]);
    await host.exchange({ cookie: 'remember=alice-2', set: 'remember=; Max-Age=0; Path=/' });
    expect(host.reported).toEqual(['alice destroyed']);
  });

  it('reports the user of a cookie that names nobody any more, once, if the host has set it', async () => {
    await host.exchange({ set: 'session=alice-1; Path=/' });
    host.isForgotten = true;
    for (let n = 0; n < 2; n += 1) await host.exchange({ cookie: 'session=alice-1', set: LOGOUT });
    await host.exchange({ cookie: 'session=bob-1', set: LOGOUT });
    expect(host.reported).toEqual(['alice destroyed']);
  });

  it('reports nobody when another cookie of that answer, such as its signature, is not the one that was set', async () => {
    await host.exchange({ set: ['session=alice-1; Path=/', 'session.sig=good; Path=/'] });
    host.isForgotten = true;
    await host.exchange({ cookie: 'session=alice-1; session.sig=forged', set: LOGOUT });
    expect(host.reported).toEqual([]);
    await host.exchange({ cookie: 'session=alice-1; session.sig=good', set: LOGOUT });
    expect(host.reported).toEqual(['alice destroyed']);
  });

  it('of a request without the cookie reports nothing', async () => {
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

it.each([
  { what: 'none of them', knownAt: -1, codes: ['cookie-without-uid'] },
  { what: 'one of them', knownAt: 20, codes: [] },
])(
  'a hundred values of a cookie, of which its function finds a user in $what',
  async ({ knownAt, codes }) => {
    for (let n = 0; n < 130; n += 1) {
      host.isForgotten = n !== knownAt;
      await host.exchange({ set: `session=user-${n}; Path=/` });
    }
    expect(host.warnings.map(({ code }) => code)).toEqual(codes);
  },
);

type Answer = (response: ServerResponse) => unknown;
const writeHead = (response: ServerResponse, ...args: unknown[]): unknown =>
  Reflect.apply(response.writeHead.bind(response), undefined, args);

/** How a host may write the head of its answer, with two cookies. */
const answers: { name: string; answer: Answer; cookies?: string[] }[] = [
  { name: 'by setHeader', answer: (response) => response.setHeader('Set-Cookie', ['a=1', 'b=2']) },
  {
    name: 'by appendHeader',
    answer: (response) => response.appendHeader('Set-Cookie', 'a=1').appendHeader('Set-Cookie', 'b=2'),
  },
  { name: 'by an object', answer: (response) => writeHead(response, 200, { 'Set-Cookie': ['a=1', 'b=2'] }) },
  {
    name: 'by names and values in turn',
    answer: (response) => writeHead(response, 200, ['Set-Cookie', 'a=1', 'set-cookie', 'b=2']),
  },
  {
    name: 'after a status message',
    answer: (response) => writeHead(response, 200, 'Fine', { 'set-cookie': ['a=1', 'b=2'] }),
  },
  {
    name: 'after no status message',
    answer: (response) => writeHead(response, 200, undefined, { 'set-cookie': ['a=1', 'b=2'] }),
  },
  {
    name: 'by both ways',
    answer: (response) =>
      writeHead(response.setHeader('X-Other', '1'), 200, { 'set-cookie': ['a=1', 'b=2'] }),
  },
  { name: 'not at all', answer: (response) => writeHead(response, 204), cookies: [] },
];

async function answerOf(answer: Answer, watch: (response: ServerResponse) => void): Promise<unknown[]> {
  const server = createServer((_, response) => {
    watch(response);
    answer(response);
    response.end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const headers = [...response.headers].filter(([name]) => name !== 'date');
  server.closeAllConnections();
  server.close();
  return [response.status, response.statusText, headers];
}

describe('the cookies of a response', () => {
  it.each(answers)('are reported when they are set $name, and the head stays unchanged', async (row) => {
    const { answer, cookies = ['a=1', 'b=2'] } = row;
    const told: (readonly string[])[] = [];
    const watched = await answerOf(answer, (response) => {
      onHead(response, new Containment(() => undefined), ({ setCookies }) => told.push(setCookies));
    });
    expect(told).toEqual([cookies]);
    expect(watched).toEqual(await answerOf(answer, () => undefined));
  });
});
