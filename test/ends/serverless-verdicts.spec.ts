/** @jest-environment ./libs/debate-space-fixtures/src/native-require.environment.js */
import { describe, expect, it } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import awsLambdaFastify from '@fastify/aws-lambda';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import session, { type SessionData } from 'express-session';
import type { inject, InjectOptions, Response as Injected } from 'light-my-request';
import { DebateSpaceEvents, memoryStorage, type DebateSpaceModuleOptions } from 'nestjs-debate-space';
import { filter, firstValueFrom, of, timeout } from 'rxjs';
import { Browser, type Fetch } from 'debate-space-fixtures/browser.js';
import type { EndingHost } from 'debate-space-fixtures/endings.js';
import { onLambda } from 'debate-space-fixtures/express-wirings.js';
import { replacing } from 'debate-space-fixtures/flaky-storage.js';
import { sessionOf } from 'debate-space-fixtures/fastify-logins.js';
import { FastifyHost, type FastifyContext } from 'debate-space-fixtures/fastify-host.js';
import { fastifyLogins } from 'debate-space-fixtures/fastify-logins.js';
import { lambdaFetch, type LambdaHandler } from 'debate-space-fixtures/lambda-fetch.js';
import { scenario } from 'debate-space-fixtures/scenario.js';
import { using } from 'debate-space-fixtures/service.js';
import { destroySession } from 'debate-space-fixtures/session-jobs.js';
import { SessionHost, type Act } from 'debate-space-fixtures/session-host.js';

declare const nativeRequire: NodeJS.Require;
/** What app.inject() is made of; jest cannot load it. */
const lightMyRequest = nativeRequire('light-my-request') as typeof inject;

const scene = scenario();

/** No verdict of these tests waits for it. */
const GRACE_MS = 60_000;
const FAR_BELOW_GRACE_MS = 10_000;

/** How a handler ends the session of its request. */
type Way = 'destroyed' | 'destroyed without a callback' | 'cookie cleared';

interface Adapter {
  readonly name: string;
  readonly start: (way: Way, store: session.Store, options: DebateSpaceModuleOptions) => Promise<EndingHost>;
}

const onExpress: Readonly<Record<Way, Act>> = {
  destroyed: destroySession,
  'destroyed without a callback': (request) => {
    request.session.destroy(undefined as never);
  },
  'cookie cleared': (_, response) => {
    response.clearCookie('connect.sid');
  },
};

const onFastify: Readonly<Record<Way, (context: FastifyContext) => unknown>> = {
  destroyed: ({ request }) => sessionOf(request).destroy(),
  'destroyed without a callback': ({ request }) => {
    const { sessionId } = sessionOf(request);
    Object.assign(request, { session: null }); // or it would be saved again
    (request.sessionStore as unknown as session.Store).destroy(sessionId);
  },
  'cookie cleared': ({ request, reply }) => {
    Object.assign(request, { session: null });
    void reply.clearCookie('sessionId', { path: '/' });
  },
};

type Inject = (
  options: InjectOptions,
  callback: (error: Error | undefined, response: Injected | undefined) => void,
) => void;

/** `app.inject` of an app that jest can load. */
async function injectInto(app: NestFastifyApplication): Promise<Inject> {
  await app.init();
  const instance = app.getHttpAdapter().getInstance();
  await instance.ready();
  const dispatch = (request: IncomingMessage, response: ServerResponse): void => {
    instance.routing(request, response);
  };
  return (options, callback) => {
    lightMyRequest(dispatch, options, callback);
  };
}

const fetchOf =
  (injecting: Inject): Fetch =>
  async (url, { method, headers, body }) => {
    const payload = body instanceof URLSearchParams ? body.toString() : undefined;
    const type = payload === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' };
    const sent = { ...Object.fromEntries(new Headers(headers)), ...type };
    const options = { method: method as 'POST', url: new URL(url).pathname, headers: sent, payload };
    const response = await new Promise<Injected>((resolve, reject) => {
      injecting(options, (error, injected) => {
        if (injected) resolve(injected);
        else reject(new Error('the request was not injected', { cause: error }));
      });
    });
    const cookies = [response.headers['set-cookie'] ?? []].flat();
    return new Response(response.body, { headers: cookies.map((each) => ['set-cookie', each]) });
  };

const startFastify =
  (fetchFor: (injecting: Inject) => Fetch): Adapter['start'] =>
  (way, store, debateSpace) =>
    FastifyHost.start({
      debateSpace,
      act: onFastify[way],
      login: fastifyLogins.session(store),
      serving: {
        serve: async (app) => ({ url: 'http://lambda', fetch: fetchFor(await injectInto(app)) }),
      },
    });

const adapters: readonly Adapter[] = [
  {
    name: '@codegenie/serverless-express',
    start: (way, store, debateSpace) =>
      SessionHost.start({ debateSpace, store, act: onExpress[way], wiring: onLambda }),
  },
  {
    name: '@fastify/aws-lambda',
    start: startFastify((injecting) =>
      lambdaFetch(
        awsLambdaFastify({ inject: injecting } as never, { decorateRequest: false }) as LambdaHandler,
      ),
    ),
  },
  { name: 'inject of Fastify', start: startFastify(fetchOf) },
];

/** Calls back before its methods return. */
class SynchronousStore extends session.Store {
  readonly #rows = new Map<string, string>();

  get(sid: string, callback: (error: unknown, data?: SessionData | null) => void): void {
    const row = this.#rows.get(sid);
    callback(null, row === undefined ? null : (JSON.parse(row) as SessionData));
  }
  set(sid: string, data: SessionData, callback?: (error?: unknown) => void): void {
    this.#rows.set(sid, JSON.stringify(data));
    callback?.();
  }
  destroy(sid: string, callback?: (error?: unknown) => void): void {
    this.#rows.delete(sid);
    callback?.();
  }
}

/** As durable as a database, and as slow: an answer waits for it. */
function slowStorage(): Partial<DebateSpaceModuleOptions> & { readonly isStored: () => boolean } {
  let isStored = false;
  const inMemory = replacing(memoryStorage(), (memory) => ({
    addLogouts: async (logouts) => {
      for (let turn = 0; turn < 50; turn += 1) await nextTurn();
      await memory.addLogouts(logouts);
      isStored = true;
    },
  }));
  const storage = { ...inMemory, durable: true };
  return { storage, storageKey: 'the storage key of a test', isStored: () => isStored };
}

/** The user logs in at one process and leaves at the next one, which has had no request before. */
const processes = ['the process of the login', 'a process that has just started'] as const;
const stores = [
  { calls: 'later', make: () => new session.MemoryStore() },
  { calls: 'at once', make: () => new SynchronousStore() },
];
const rows = adapters.flatMap((adapter) =>
  processes.flatMap((process) => stores.map((store) => ({ ...adapter, ...store, process }))),
);

interface Left {
  readonly host: EndingHost;
  /** The next report, from before the request that leaves. */
  readonly report: Promise<unknown>;
  readonly leave: () => Promise<string>;
}

async function loggedIn(
  { start, make, process }: (typeof rows)[number],
  way: Way,
  options = {},
): Promise<Left> {
  const settings = using(scene.service, { session: { graceMs: GRACE_MS }, ...options });
  const store = make();
  let host = await scene.add(start(way, store, settings));
  const browser = new Browser('http://lambda', (url, init) => (host.fetch ?? fetch)(url, init));
  await browser.post('/login', { uid: 'alice' });
  if (process !== 'the process of the login') {
    await scene.stop();
    host = await scene.add(start(way, store, settings));
  } else expect(await browser.get('/whoami')).toBe('alice');
  const events = host.app.get(DebateSpaceEvents).events$;
  const report = firstValueFrom(
    events.pipe(
      filter(({ type }) => type === 'session-ended'),
      timeout({ first: FAR_BELOW_GRACE_MS, with: () => of(undefined) }),
    ),
    { defaultValue: undefined },
  );
  const leave = async (): Promise<string> => (await browser.fetch('/outside', { method: 'POST' })).text();
  return { host, report, leave };
}

describe.each(rows)('behind $name, in $process, on a store that calls back $calls,', (row) => {
  it('a certain end is stored when the invocation is over, and the answer is whole', async () => {
    const { isStored, ...options } = slowStorage();
    const { report, leave } = await loggedIn(row, 'destroyed', options);
    expect(await leave()).toBe('done');
    expect(isStored()).toBe(true);
    expect(await report).toMatchObject({ uid: 'alice' });
  });

  it.each(['destroyed without a callback', 'cookie cleared'] as const)(
    'a session that is left by its browser is reported when the response has finished: %s',
    async (way) => {
      const { report, leave } = await loggedIn(row, way);
      expect(await leave()).toBe('done');
      expect(await report).toMatchObject({ uid: 'alice' });
    },
  );
});
