import { expect, it } from '@jest/globals';
import type { Request } from 'express';
import session, { type Store } from 'express-session';
import { logInTo } from 'debate-space-fixtures/browser.js';
import { scenario } from 'debate-space-fixtures/scenario.js';
import { logIn, type Act } from 'debate-space-fixtures/session-host.js';
import { called, jobs, onlySid } from 'debate-space-fixtures/session-jobs.js';

/** Counts how often it is read. */
class CountingStore extends session.MemoryStore {
  reads = 0;

  override get(...args: Parameters<session.MemoryStore['get']>): void {
    this.reads += 1;
    super.get(...args);
  }
}

const scene = scenario();

const renew = async (request: Request, uid: string): Promise<void> => {
  await called((done) => request.session.regenerate(done));
  await logIn(request, uid);
};

const situations: {
  readonly name: string;
  readonly act: (request: Request, store: Store) => unknown;
  readonly costs: number;
  readonly logouts: readonly string[];
}[] = [
  { name: 'only uses its session', act: () => undefined, costs: 0, logouts: [] },
  {
    name: 'saves its session',
    act: ({ session }) => called((done) => session.save(done)),
    costs: 0,
    logouts: [],
  },
  {
    name: 'destroys its session',
    act: ({ session }) => called((done) => session.destroy(done)),
    costs: 1,
    logouts: ['alice'],
  },
  {
    name: 'regenerates its session for nobody',
    act: ({ session }) => called((done) => session.regenerate(done)),
    costs: 1,
    logouts: ['alice'],
  },
  {
    name: 'removes its user',
    act: ({ session }) => {
      delete session.user;
    },
    costs: 1,
    logouts: ['alice'],
  },
  {
    name: 'replaces its user',
    act: ({ session }) => {
      session.user = { uid: 'bob' };
    },
    costs: 1,
    logouts: ['alice'],
  },
  {
    name: 'regenerates its session for the same user',
    act: (request) => renew(request, 'alice'),
    costs: 1,
    logouts: [],
  },
  {
    name: 'regenerates its session for another user',
    act: (request) => renew(request, 'bob'),
    costs: 1,
    logouts: ['alice'],
  },
];

async function readsOf(act: Act, watched: boolean): Promise<number> {
  const store = new CountingStore();
  const host = await scene.start(watched ? { store, act } : { store, act, debateSpace: [] });
  const browser = await logInTo(host, 'alice');
  store.reads = 0;
  await browser.post('/act');
  await scene.stop();
  return store.reads;
}

it.each(situations)(
  'a request that $name costs the store this many more reads: $costs',
  async ({ act, costs, logouts }) => {
    const acting: Act = (request, _, store) => act(request, store);
    const plain = await readsOf(acting, false);
    expect((await readsOf(acting, true)) - plain).toBe(costs);
    expect(scene.service.received.logouts).toEqual(logouts);
  },
);

it('a job that destroys a session costs the store one more read', async () => {
  const store = new CountingStore();
  await logInTo(await scene.start({ store }), 'alice');
  const sid = await onlySid(store);
  store.reads = 0;
  await jobs.destroy(store, sid);
  await scene.stop();
  expect(store.reads).toBe(1);
  expect(scene.service.received.logouts).toEqual(['alice']);
});
