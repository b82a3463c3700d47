import { describe, expect, it } from '@jest/globals';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { Request, Response } from 'express';
import session, { type SessionData } from 'express-session';
import { logInTo } from '#support/browser/browser.js';
import { onExpress, onFastify, type Handling } from '#support/endings/handling.js';
import { FastifyHost } from '#support/hosts/fastify-host.js';
import { fastifyLogins } from '#support/hosts/fastify-logins.js';
import { scenario } from '#support/hosts/scenario.js';
import { logIn, uidIn, type ExpressLogin } from '#support/hosts/session-host.js';
import { using } from '#support/service/service.js';
import { interleavings, Steps } from '#support/steps.js';

type Taker = 'one' | 'other';
type Step = () => Promise<void>;

/** What a request does, with a step before each call of the store and after it. */
const requests = {
  'renews its session': async (handler: Handling, { uid, step, holdSet }: Turn) => {
    await step();
    holdSet();
    await handler.regenerate();
    await step();
    await handler.logIn(uid);
    await handler.save();
    await step();
  },
  'regenerates its session for nobody': async (handler: Handling, { step, holdSet }: Turn) => {
    await step();
    holdSet();
    await handler.regenerate();
    await step();
  },
  'destroys its session': async (handler: Handling, { step }: Turn) => {
    await step();
    await handler.destroy();
    await step();
  },
  'removes its user': async (handler: Handling, { step }: Turn) => {
    await step();
    delete handler.session.user;
    await handler.save();
    await step();
  },
  'only reads': async (_: Handling, { step }: Turn) => {
    await step();
    await step();
  },
};
type Name = keyof typeof requests;

const pairs: readonly (readonly [Name, Name])[] = [
  ['renews its session', 'destroys its session'],
  ['renews its session', 'regenerates its session for nobody'],
  ['renews its session', 'removes its user'],
  ['regenerates its session for nobody', 'destroys its session'],
  ['destroys its session', 'destroys its session'],
  ['removes its user', 'destroys its session'],
  ['removes its user', 'removes its user'],
  ['renews its session', 'only reads'],
  ['destroys its session', 'only reads'],
  ['regenerates its session for nobody', 'only reads'],
  ['removes its user', 'only reads'],
];

/** Each request begins with a step, has another one between the store's answer and its session, and those above. */
const stepsOf = (name: Name): number => (name === 'renews its session' ? 5 : 4);

interface Turn {
  readonly uid: string;
  readonly step: Step;
  /** Holds the answer to the next save back: @fastify/session saves the new session before its request has it. */
  readonly holdSet: () => void;
}

/** What was seen of a request. */
interface Seen {
  /** Whether its handler found the user. */
  had?: boolean;
}

const scene = scenario();
/** By the uid of the browser. */
const running = new Map<string, { readonly steps: Steps; readonly seen: Record<Taker, Seen> }>();

const query = (url: string): URLSearchParams => new URL(url, 'http://host').searchParams;
const takerOf = (url: string): Taker => query(url).get('taker') as Taker;
const runOf = (url: string): ReturnType<typeof running.get> => running.get(query(url).get('uid') ?? '');
const stepOf = (url: string): Step => {
  const [run, taker] = [runOf(url), takerOf(url)];
  return () => run?.steps.next(taker) ?? Promise.resolve();
};

type Answer = (error?: unknown, data?: SessionData | null) => void;
/** Holds the answer to the next call of a store back until its request may take its next step. */
class Holding {
  readonly #steps: Step[] = [];

  next(url: string): void {
    this.#steps.push(stepOf(url));
  }

  held(answer: Answer | undefined): Answer {
    const step = this.#steps.pop();
    return (...results) => {
      if (!step) answer?.(...results);
      else
        void step().then(() => {
          answer?.(...results);
        });
    };
  }
}

class SteppingStore extends session.MemoryStore {
  readonly gets = new Holding();
  readonly sets = new Holding();

  override get(sid: string, callback: Answer): void {
    super.get(sid, this.gets.held(callback));
  }

  override set(sid: string, data: SessionData, callback?: Answer): void {
    super.set(sid, data, this.sets.held(callback));
  }
}

/** A request that acts begins with a step, and its last one is over when its response is closed. */
async function arrive(
  url: string,
  response: { once(event: 'close', done: () => void): unknown },
  store: SteppingStore,
): Promise<void> {
  const run = runOf(url);
  if (!url.startsWith('/act') || !run) return;
  response.once('close', () => {
    run.steps.finish(takerOf(url));
  });
  await stepOf(url)();
  store.gets.next(url); // taken by the read that the session library makes now
}

async function act(handler: Handling, store: SteppingStore): Promise<void> {
  const { url, platform } = handler;
  const seen = runOf(url)?.seen[takerOf(url)];
  if (!seen) return;
  seen.had = handler.session.user !== undefined;
  await requests[query(url).get('does') as Name](handler, {
    uid: query(url).get('uid') ?? '',
    step: stepOf(url),
    holdSet: () => {
      if (platform === 'fastify') store.sets.next(url);
    },
  });
}

const none = (): readonly string[] => [];
const platforms = {
  Express: () => {
    const store = new SteppingStore();
    const mount = (app: NestExpressApplication): void => {
      app.use(async (request: Request, response: Response, next: () => void) => {
        await arrive(request.originalUrl, response, store);
        next();
      });
      app.use(session({ secret: 'only for tests', resave: false, saveUninitialized: false, store }));
    };
    const login: ExpressLogin = {
      mount,
      logIn: (request, _, uid) => logIn(request, uid),
      uidIn: (request) => uidIn(request),
    };
    const acting = (request: Request, response: Response): Promise<void> =>
      act(onExpress(request, response, { store, others: none }), store);
    return scene.start({ store, act: acting, login }, { logout: { concurrency: 50 } });
  },
  Fastify: () => {
    const store = new SteppingStore();
    const login = fastifyLogins.session(store);
    return scene.add(
      FastifyHost.start({
        login: {
          ...login,
          register: (app) => {
            const fastify = app.getHttpAdapter().getInstance();
            fastify.addHook('onRequest', ({ url }, { raw }) => arrive(url, raw, store));
            return login.register(app);
          },
        },
        act: (context) => act(onFastify(context, { store, others: none, login: login.logIn }), store),
        debateSpace: using(scene.service, { logout: { concurrency: 50 } }),
      }),
    );
  },
};

/** @returns whether the browser is logged out afterwards, and what was seen of its requests */
async function browse(
  host: { readonly url: string },
  uid: string,
  order: readonly string[],
  does: Readonly<Record<Taker, Name>>,
): Promise<Record<Taker, Seen> & { readonly isLoggedOut: boolean }> {
  const browser = await logInTo(host, uid);
  const run = { steps: new Steps(order), seen: { one: {}, other: {} } };
  running.set(uid, run);
  const ask = (taker: Taker): Promise<string> =>
    browser.post(`/act?${new URLSearchParams({ uid, taker, does: does[taker] }).toString()}`);
  await Promise.all([ask('one'), ask('other')]);
  return { ...run.seen, isLoggedOut: (await browser.get('/whoami')) !== uid };
}

const ENDING: readonly Name[] = ['destroys its session', 'regenerates its session for nobody'];

describe.each(['Express', 'Fastify'] as const)('on %s, of two requests of one browser,', (platform) => {
  it.each(pairs)(
    'one %s and the other %s, in every order of their steps: the user whose browser is left without a session is reported',
    async (one, other) => {
      const host = await platforms[platform]();
      const [must, may] = [new Set<string>(), new Set<string>()];
      for (const order of interleavings<Taker>('one', stepsOf(one), 'other', stepsOf(other))) {
        const uid = order.map((taker) => (taker === 'one' ? '1' : '2')).join('');
        const seen = await browse(host, uid, order, { one, other });
        const isRenewal = one === 'renews its session';
        // The session was gone when the other request came. It owns no session of a user then, and the plugin does not follow
        // which of two answers leaves its cookie in the browser (docs/sessions.md, "What is not seen").
        if (isRenewal && !seen.other.had) may.add(uid);
        else if (seen.isLoggedOut) must.add(uid);
        // While one renews the session, a user may be reported too often (session-endings.md, rule 6).
        else if (isRenewal && other !== 'only reads') may.add(uid);
        // Saved back by a request that had loaded the session before: the user wanted to leave.
        else if (ENDING.includes(one) && seen.one.had) must.add(uid);
        else if (!isRenewal) may.add(uid);
      }
      const reported = await scene.logouts();
      expect([...must].filter((uid) => !reported.includes(uid))).toEqual([]);
      expect(reported.filter((uid) => !must.has(uid) && !may.has(uid))).toEqual([]);
    },
    120_000,
  );
});
