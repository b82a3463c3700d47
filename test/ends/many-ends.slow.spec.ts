import { expect, it } from '@jest/globals';
import session from 'express-session';
import { DebateSpaceEvents, DebateSpaceOutbox } from 'nestjs-debate-space';
import { logInTo } from '#support/browser/browser.js';
import { scenario } from '#support/hosts/scenario.js';
import { jobs } from '#support/hosts/session-jobs.js';

const SESSIONS = 40_000;
/** So many ends, at most, are decided before anything else gets its turn. */
const MOST_IN_A_TURN = 1_000;

/** Stands for more than 10,000. */
const MAX_COUNTED = 10_001;

const scene = scenario();

/** A store with as many sessions, each of a user of its own, that no request of this process has loaded. */
function filledStore(): session.MemoryStore {
  const row = (n: number): string => JSON.stringify({ cookie: { path: '/' }, user: { uid: `user-${n}` } });
  const rows = Array.from({ length: SESSIONS }, (_, n) => [`session-${n}`, row(n)] as const);
  return Object.assign(new session.MemoryStore(), { sessions: Object.fromEntries(rows) });
}

const endings = {
  'cleared at once': (store: session.MemoryStore) => jobs.clear(store),
  'destroyed at once': async (store: session.MemoryStore) => {
    const sids = Object.keys((store as unknown as { sessions: object }).sessions);
    await Promise.all(sids.map((sid) => jobs.destroy(store, sid)));
  },
};

it.each(Object.entries(endings))(
  'each of 40,000 sessions that are %s is reported, and other work has its turns',
  async (_, end) => {
    const store = filledStore();
    // Another process would deliver: this one has the time for ends alone.
    const options = { session: { store }, storage: await scene.sqlite(), worker: false };
    const host = await scene.start({ store }, options);
    const ended: string[] = [];
    host.app.get(DebateSpaceEvents).events$.subscribe((event) => {
      if (event.type === 'session-ended') ended.push(event.uid);
    });
    let [seen, mostInATurn, goesOn] = [0, 0, true];
    const watch = (): void => {
      mostInATurn = Math.max(mostInATurn, ended.length - seen);
      seen = ended.length;
      if (goesOn) setImmediate(watch);
    };
    watch();
    await end(store);
    await logInTo(host, 'alice'); // requests are answered at the same time
    const outbox = host.app.get(DebateSpaceOutbox);
    while (ended.length < SESSIONS) await new Promise((resolve) => setTimeout(resolve, 500));
    goesOn = false;
    expect((await outbox.stats()).pending).toBeGreaterThanOrEqual(MAX_COUNTED);
    await scene.stop();
    expect(new Set(ended).size).toBe(SESSIONS);
    expect(mostInATurn).toBeLessThanOrEqual(MOST_IN_A_TURN);
  },
);
