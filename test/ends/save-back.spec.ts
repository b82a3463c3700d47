import { describe, expect, it } from '@jest/globals';
import type { Request } from 'express';
import session from 'express-session';
import type { FastifyRequest } from 'fastify';
import type { DebateSpaceModuleOptions } from 'nestjs-debate-space';
import { logInTo } from 'debate-space-fixtures/browser.js';
import { sessionsIn } from 'debate-space-fixtures/fastify-account.js';
import { FastifyHost } from 'debate-space-fixtures/fastify-host.js';
import { Latch } from 'debate-space-fixtures/latch.js';
import { scenario } from 'debate-space-fixtures/scenario.js';
import { using } from 'debate-space-fixtures/service.js';
import { SessionHost } from 'debate-space-fixtures/session-host.js';
import { destroySession, called } from 'debate-space-fixtures/session-jobs.js';

/** What a request of the same browser does while a slow one has the session. */
type Leave<R> = (request: R) => unknown;

interface Stack {
  readonly name: string;
  readonly leave: string;
  /** The truth: who the browser is when the slow request has saved the session back before or after the verdict. */
  readonly revived: readonly [before: 'alice' | 'nobody', after: 'alice' | 'nobody'];
  readonly start: (
    acting: Acting,
    debateSpace: DebateSpaceModuleOptions,
  ) => Promise<{ url: string; stop(): Promise<void> }>;
}
/** What the host does with a request: it is the slow one, or it leaves. `change` is for libraries that save only then. */
type Acting = (slow: boolean, leave: () => unknown, change: () => void) => Promise<void>;

const onExpress =
  (leave: Leave<Request>, stack: 'express-session' | 'passport'): Stack['start'] =>
  (acting, debateSpace) =>
    SessionHost.start({
      stack,
      debateSpace,
      act: (request) =>
        acting(
          request.query.slow !== undefined,
          () => leave(request),
          () => Object.assign(request.session, { basket: 1 }),
        ),
    });

interface FastifySession {
  user?: { uid: string } | undefined;
  destroy(): Promise<void>;
  regenerate(): Promise<void>;
}
const sessionOf = (request: FastifyRequest): FastifySession => request.session;

const onFastify =
  (leave: Leave<FastifyRequest>): Stack['start'] =>
  (acting, debateSpace) =>
    FastifyHost.start({
      debateSpace,
      act: ({ request }) =>
        acting(
          request.url.includes('slow'),
          () => leave(request),
          () => undefined,
        ),
      login: {
        register: (app) => sessionsIn(new session.MemoryStore())(app.getHttpAdapter().getInstance()),
        logIn: ({ request }, uid) => {
          sessionOf(request).user = { uid };
        },
        uidIn: ({ request }) => sessionOf(request).user?.uid,
      },
    });

const stacks: readonly Stack[] = [
  {
    name: 'express-session',
    leave: 'destroy',
    revived: ['alice', 'alice'],
    start: onExpress(destroySession, 'express-session'),
  },
  {
    name: 'express-session',
    leave: 'regenerate',
    revived: ['nobody', 'nobody'],
    start: onExpress((request) => called((done) => request.session.regenerate(done)), 'express-session'),
  },
  {
    name: 'express-session',
    leave: 'delete session.user',
    revived: ['alice', 'alice'],
    start: onExpress((request) => {
      delete request.session.user;
      return called((done) => request.session.save(done));
    }, 'express-session'),
  },
  {
    name: 'passport',
    leave: 'logout',
    revived: ['nobody', 'nobody'],
    start: onExpress(
      (request) =>
        called((done) => {
          request.logout(done);
        }),
      'passport',
    ),
  },
  {
    name: '@fastify/session',
    leave: 'destroy',
    revived: ['alice', 'alice'],
    start: onFastify((request) => sessionOf(request).destroy()),
  },
  {
    name: '@fastify/session',
    leave: 'regenerate',
    revived: ['nobody', 'alice'],
    start: onFastify((request) => sessionOf(request).regenerate()),
  },
  {
    name: '@fastify/session',
    leave: 'delete session.user',
    revived: ['nobody', 'alice'],
    start: onFastify((request) => {
      delete sessionOf(request).user;
      return request.session.save();
    }),
  },
];

const scene = scenario();

const orders = [
  { order: 'while the answer of the one that left is under way', before: true },
  { order: 'when the end is reported already', before: false },
];
const cases = stacks.flatMap((stack) =>
  orders.map((order, n) => ({ ...stack, ...order, user: stack.revived[n] })),
);

describe('a session that one request ends and a slow one, which had loaded it, saves back', () => {
  it.each(cases)(
    'is reported once, and again when it ends again: $name, $leave, saved back $order',
    async ({ start, before, user }) => {
      const [loaded, saveBack, left, answer] = [new Latch(), new Latch(), new Latch(), new Latch()];
      const acting: Acting = async (slow, leave, change) => {
        if (slow) {
          loaded.open();
          await saveBack.passed;
          change();
          return;
        }
        await leave();
        left.open();
        await answer.passed;
      };
      // A grace that ends in the middle of `regenerate` would make the save that follows another login.
      const graceMs = before ? 10_000 : 1;
      const host = await scene.add(start(acting, using(scene.service, { session: { graceMs } })));
      const browser = await logInTo(host, 'alice');
      const slow = browser.post('/act?slow=1');
      await loaded.passed;

      const leaving = browser.post('/act');
      await left.passed;
      if (!before) {
        answer.open();
        await leaving;
        await scene.service.received.waitFor('logout');
      }
      saveBack.open();
      await slow;
      answer.open();
      await leaving;

      expect(await browser.get('/whoami')).toBe(user);
      await scene.service.received.waitFor('logout');
      const again = user === 'alice';
      if (again) await browser.post('/act');
      expect(await browser.get('/whoami')).toBe('nobody');
      expect(await scene.logouts()).toEqual(again ? ['alice', 'alice'] : ['alice']);
    },
  );
});
