import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Request, Response } from 'express';
import session, { type SessionData } from 'express-session';
import { logInTo } from 'debate-space-fixtures/browser.js';
import { scenario } from 'debate-space-fixtures/scenario.js';
import { called } from 'debate-space-fixtures/session-jobs.js';
import { logIn, SessionHost, type SessionHostOptions } from 'debate-space-fixtures/session-host.js';
import { interleavings, Steps } from 'debate-space-fixtures/steps.js';

type Taker = 'one' | 'other';
type Step = () => Promise<void>;

/** What a request does, with a step before each call of the store and after it. */
const requests = {
  'renews its session': async (request: Request, uid: string, step: Step) => {
    await step();
    await called((done) => request.session.regenerate(done));
    await step();
    await logIn(request, uid);
    await called((done) => request.session.save(done));
    await step();
  },
  'regenerates its session for nobody': async (request: Request, _: string, step: Step) => {
    await step();
    await called((done) => request.session.regenerate(done));
    await step();
  },
  'destroys its session': async (request: Request, _: string, step: Step) => {
    await step();
    await called((done) => request.session.destroy(done));
    await step();
  },
  'removes its user': async (request: Request, _: string, step: Step) => {
    await step();
    delete request.session.user;
    await called((done) => request.session.save(done));
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
  ['regenerates its session for nobody', 'destroys its session'],
  ['destroys its session', 'destroys its session'],
  ['removes its user', 'destroys its session'],
  ['removes its user', 'removes its user'],
  ['renews its session', 'only reads'],
  ['destroys its session', 'only reads'],
];

/** Each request begins with a step, has another one between the store's answer and its session, and those above. */
const stepsOf = (name: Name): number => (name === 'renews its session' ? 5 : 4);

/** The steps with which a request reads its session, ends it, and logs its user in anew. */
const [READING, ENDING, LOGGING_IN] = [1, 3, 4];

const scene = scenario();
let host: SessionHost;
/** By the uid of the browser. */
const running = new Map<string, Steps>();

/** Holds its answers to reads back until the request may take its next step. */
class SteppingStore extends session.MemoryStore {
  readonly reading: (() => Promise<void>)[] = [];

  override get(sid: string, callback: (error: unknown, data?: SessionData | null) => void): void {
    const step = this.reading.pop();
    super.get(sid, (error: unknown, data) => {
      if (!step) callback(error, data);
      else
        void step().then(() => {
          callback(error, data);
        });
    });
  }
}

const text = (request: Request, name: string): string => request.query[name] as string;
const stepOf = (request: Request): Step => {
  const taker = text(request, 'taker');
  return () => running.get(text(request, 'uid'))?.next(taker) ?? Promise.resolve();
};

beforeEach(async () => {
  const store = new SteppingStore();
  const sessions = session({ secret: 'only for tests', resave: false, saveUninitialized: false, store });
  const options: SessionHostOptions = {
    store,
    act: (request) => requests[text(request, 'does') as Name](request, text(request, 'uid'), stepOf(request)),
    login: {
      mount: (app) => {
        app.use(async (request: Request, response: Response, next: () => void) => {
          if (request.path !== '/act') {
            next();
            return;
          }
          const step = stepOf(request);
          response.once('close', () => running.get(text(request, 'uid'))?.finish(text(request, 'taker')));
          await step();
          store.reading.push(step); // taken by the read that the session middleware makes in this same step
          next();
        });
        app.use(sessions);
      },
      logIn: (request, _, uid) => logIn(request, uid),
      uidIn: (request) => request.session.user?.uid,
    },
  };
  host = await scene.start(options, { logout: { concurrency: 50 } });
});

/** @returns whether the browser is logged out afterwards */
async function browse(
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
 * Whether each request has read the session before the other one ends it. One that comes later has no user, and so
 * leaves nobody: that the cookie of its answer replaces another one nobody can see.
 */
const bothHaveIt = (order: readonly Taker[]): boolean =>
  at(order, 'other', READING) < at(order, 'one', ENDING) &&
  at(order, 'one', READING) < at(order, 'other', ENDING);

/**
 * Whether the request that leaves the session is answered before the other one logs its user in anew: then the browser
 * was logged out in between, and a report is right though it has a session again.
 */
const isLoggedOutBetween = (order: readonly Taker[], leaving: Name): boolean =>
  at(order, 'other', stepsOf(leaving)) < at(order, 'one', LOGGING_IN);

describe('of two requests of one browser at the same time, in every order of their steps', () => {
  it.each(pairs)(
    'one %s and the other %s: the user whose browser is left without a session is reported once',
    async (one, other) => {
      const isRenewal = one === 'renews its session' && other !== 'only reads';
      const orders = interleavings<Taker>('one', stepsOf(one), 'other', stepsOf(other)).filter(
        (order) => !isRenewal || bothHaveIt(order),
      );
      const ended: string[] = [];
      const mayBeReported = new Set<string>();
      for (const order of orders) {
        const uid = order.map((taker) => (taker === 'one' ? '1' : '2')).join('');
        if (await browse(uid, order, { one, other })) ended.push(uid);
        else if (isRenewal && isLoggedOutBetween(order, other)) mayBeReported.add(uid);
      }
      const reported = (await scene.logouts()).filter((uid) => !mayBeReported.has(uid));
      expect(reported.toSorted()).toEqual(ended.toSorted());
    },
    120_000,
  );
});
