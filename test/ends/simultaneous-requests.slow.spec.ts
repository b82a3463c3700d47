import { describe, expect, it } from '@jest/globals';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { Request, Response } from 'express';
import session, { type SessionData } from 'express-session';
import { logInTo } from '#support/browser/browser.js';
import { scenario } from '#support/hosts/scenario.js';
import { logIn, uidIn, type ExpressLogin, type SessionHost } from '#support/hosts/session-host.js';
import { called, destroySession } from '#support/hosts/session-jobs.js';
import { interleavings, Steps } from '#support/steps.js';

type Taker = 'one' | 'other';
type Step = () => Promise<void>;

const regenerate = ({ session }: Request): Promise<void> => called((done) => session.regenerate(done));
const save = ({ session }: Request): Promise<void> => called((done) => session.save(done));

/** What a request does, with a step before each call of the store and after it. */
const requests = {
  'renews its session': async (request: Request, uid: string, step: Step) => {
    await step();
    await regenerate(request);
    await step();
    request.session.user = { uid };
    await save(request);
    await step();
  },
  'regenerates its session for nobody': async (request: Request, _: string, step: Step) => {
    await step();
    await regenerate(request);
    await step();
  },
  'destroys its session': async (request: Request, _: string, step: Step) => {
    await step();
    await destroySession(request);
    await step();
  },
  'removes its user': async (request: Request, _: string, step: Step) => {
    await step();
    request.session.user = undefined;
    await save(request);
    await step();
  },
  'only reads': async (_: Request, __: string, step: Step) => {
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
];

/** Each request begins with a step, has another one between the store's answer and its session, and those above. */
const stepsOf = (name: Name): number => (name === 'renews its session' ? 5 : 4);

/** The steps after which a request has ended its old session, and with which it logs its user in anew. */
const RENEWING = 3;
const LOGGING_IN = 4;

const scene = scenario();
/** By the uid of the browser. */
const running = new Map<string, Steps>();

const query = (url: string): URLSearchParams => new URL(url, 'http://host').searchParams;
const stepOf = (url: string): Step => {
  const [uid, taker] = [query(url).get('uid') ?? '', query(url).get('taker') ?? ''];
  return () => running.get(uid)?.next(taker) ?? Promise.resolve();
};
const act = (request: Request): Promise<void> => {
  const { originalUrl: url } = request;
  return requests[query(url).get('does') as Name](request, query(url).get('uid') ?? '', stepOf(url));
};
/** A request that acts begins with a step, and its last one is over when its response is closed. */
const begin = async (url: string, response: { once(event: 'close', done: () => void): unknown }) => {
  response.once('close', () =>
    running.get(query(url).get('uid') ?? '')?.finish(query(url).get('taker') ?? ''),
  );
  await stepOf(url)();
};

type Answer = (error: unknown, data?: SessionData | null) => void;
/** Holds the answer to the read that the session middleware makes back until its request may take its next step. */
class Reading {
  readonly #steps: Step[] = [];

  next(url: string): void {
    this.#steps.push(stepOf(url)); // taken by the read that the session middleware makes in this same tick
  }

  held(answer: Answer): Answer {
    const step = this.#steps.pop();
    return (error, data) => {
      if (!step) answer(error, data);
      else
        void step().then(() => {
          answer(error, data);
        });
    };
  }
}

function start(): Promise<SessionHost> {
  const reading = new Reading();
  class SteppingStore extends session.MemoryStore {
    override get(sid: string, callback: Answer): void {
      super.get(sid, reading.held(callback));
    }
  }
  const store = new SteppingStore();
  const mount = (app: NestExpressApplication): void => {
    app.use(async (request: Request, response: Response, next: () => void) => {
      if (request.path === '/act') {
        await begin(request.originalUrl, response);
        reading.next(request.originalUrl);
      }
      next();
    });
    app.use(session({ secret: 'only for tests', resave: false, saveUninitialized: false, store }));
  };
  const login: ExpressLogin = {
    mount,
    logIn: (request, _, uid) => logIn(request, uid),
    uidIn: (request) => uidIn(request),
  };
  return scene.start({ store, act, login }, { logout: { concurrency: 50 } });
}

/** @returns whether the browser is logged out afterwards */
async function browse(
  host: { readonly url: string },
  uid: string,
  order: readonly string[],
  does: Readonly<Record<Taker, Name>>,
): Promise<boolean> {
  const browser = await logInTo(host, uid);
  running.set(uid, new Steps(order));
  const ask = (taker: Taker): Promise<string> =>
    browser.post(`/act?${new URLSearchParams({ uid, taker, does: does[taker] }).toString()}`);
  await Promise.all([ask('one'), ask('other')]);
  return (await browser.get('/whoami')) !== uid;
}

const at = (order: readonly Taker[], taker: Taker, step: number): number =>
  order.flatMap((each, index) => (each === taker ? [index] : []))[step - 1] ?? Infinity;

/**
 * Whether the request that leaves the session is answered before the other one logs its user in anew: then the browser
 * was logged out in between, and a report is right though it has a session again.
 */
const isLoggedOutBetween = (order: readonly Taker[], leaving: Name): boolean =>
  at(order, 'other', stepsOf(leaving)) < at(order, 'one', LOGGING_IN);

/**
 * Whether the session was gone when the other request came. It owns no session of a user then, and the plugin does not follow
 * which of two answers leaves its cookie in the browser (docs/sessions.md, "What is not seen").
 */
const hasComeLate = (order: readonly Taker[]): boolean => at(order, 'other', 1) > at(order, 'one', RENEWING);

describe('of two requests of one browser, in every order of their steps,', () => {
  it.each(pairs)(
    'one %s and the other %s: the user whose browser is left without a session is reported',
    async (one, other) => {
      const host = await start();
      const isRenewal = one === 'renews its session' && other !== 'only reads';
      const ended: string[] = [];
      const mayBeReported = new Set<string>();
      /** By a request that had read the session before it was destroyed: the user wanted to leave. */
      const savedBack: string[] = [];
      for (const order of interleavings<Taker>('one', stepsOf(one), 'other', stepsOf(other))) {
        const uid = order.map((taker) => (taker === 'one' ? '1' : '2')).join('');
        const isLoggedOut = await browse(host, uid, order, { one, other });
        if (isRenewal && hasComeLate(order)) mayBeReported.add(uid);
        else if (isLoggedOut) ended.push(uid);
        else if (isRenewal && isLoggedOutBetween(order, other)) mayBeReported.add(uid);
        else if (one === 'destroys its session') savedBack.push(uid);
      }
      const reported = await scene.logouts();
      expect([...ended, ...savedBack].filter((uid) => !reported.includes(uid))).toEqual([]);
      // While one is renewing its session, a user may be told of too often: session-endings.md, rule 6.
      const right = isRenewal ? reported : [...ended, ...savedBack, ...mayBeReported];
      expect(reported.filter((uid) => !right.includes(uid))).toEqual([]);
    },
    120_000,
  );
});
