import { expect, it } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { WatchedApp } from './watched-app.js';

type Callback = (error: unknown, result?: unknown) => void;
type Read = (sid: string, done: Callback) => void;

/** An asynchronous store whose methods are its own properties. */
function asyncStore(): { get: Read; set: unknown; destroy: (sid: string, done: Callback) => void } {
  const rows = new Map<string, object>([['s1', { user: 'alice' }]]);
  return {
    get: (sid, done) =>
      void setImmediate(() => {
        done(null, rows.get(sid));
      }),
    set: (sid: string, session: object, done: Callback) => {
      rows.set(sid, session);
      done(null);
    },
    destroy: (sid, done) => {
      rows.delete(sid);
      done(null);
    },
  };
}

it('a read that the host has replaced stays replaced after a call that had to wait', async () => {
  const store = asyncStore();
  const app = new WatchedApp({ onSessionEnd: () => undefined, graceMs: 10 });
  app.watch(store);
  const original = store.get;
  const calls: string[] = [];
  const wrapper: Read = (sid, done) => {
    calls.push(sid);
    original(sid, done);
  };
  store.get = wrapper;
  const destroyed = new Promise((resolve) => {
    store.destroy('s1', resolve);
  });
  store.get('s2', () => undefined);
  await destroyed;
  await app.close();
  expect(calls).toEqual(['s1', 's2']); // the first one is ours
  expect(store.get).toBe(wrapper);
});

it('a store whose read cannot be replaced throws nothing into the host', async () => {
  const store = Object.defineProperty(asyncStore(), 'get', { configurable: false, writable: false });
  const app = new WatchedApp({ onSessionEnd: () => undefined, graceMs: 10 });
  app.watch(store);
  expect(() => {
    store.destroy('s1', () => undefined);
  }).not.toThrow();
  await nextTurn();
  await app.close();
});
