import { describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Request } from 'express';
import session from 'express-session';
import { Browser } from 'debate-space-fixtures/browser.js';
import { scenario } from 'debate-space-fixtures/scenario.js';
import { seeded } from 'debate-space-fixtures/seeded.js';
import {
  logIn,
  sessionStacks,
  type SessionHost,
  type SessionStack,
} from 'debate-space-fixtures/session-host.js';
import { slowStore } from 'debate-space-fixtures/slow-store.js';

const BROWSERS = 30;
const STEPS = 15;

const asked = (request: Request, name: string): string => {
  const value = request.query[name];
  return typeof value === 'string' ? value : '';
};
const regenerate = (request: Request): Promise<unknown> =>
  new Promise((resolve) => request.session.regenerate(resolve));

/** What a host does to the session of a request, by name. */
const steps: Record<string, (request: Request) => unknown> = {
  destroy: (request) => new Promise((resolve) => request.session.destroy(resolve)),
  'destroy without waiting': (request) => request.session.destroy(undefined as never),
  regenerate,
  'renew for the same user': async (request) => {
    await regenerate(request);
    await logIn(request, asked(request, 'uid'));
  },
  'change user': async (request) => {
    await regenerate(request);
    await logIn(request, asked(request, 'next'));
  },
  'remove user': (request) => {
    if (typeof request.logout === 'function')
      return new Promise((resolve) => {
        request.logout(resolve);
      });
    delete request.session.user;
    return undefined;
  },
  'change something else': (request) => Object.assign(request.session, { basket: Math.random() }),
  nothing: () => undefined,
};
/** Pairs of steps at the same time. None saves a session back that the other ends: that is another question. */
const atOnce = [
  ['destroy', 'destroy'],
  ['remove user', 'remove user'],
  ['destroy', 'nothing'],
  ['regenerate', 'nothing'],
  ['destroy', 'remove user'],
];

interface Situation {
  readonly name: string;
  readonly store: (random: () => number) => session.MemoryStore;
}
const situations: Situation[] = [
  { name: 'a store that is done immediately', store: () => new session.MemoryStore() },
  { name: 'a store that takes its time', store: (random) => slowStore(random, 10) },
];
const cases = sessionStacks.flatMap((stack) => situations.map((situation) => ({ ...situation, stack })));

const scene = scenario();

/** One browser, step by step. @returns the uids that it was logged in as and then no longer was */
async function browse(host: SessionHost, prefix: string, random: () => number): Promise<string[]> {
  const browser = new Browser(host.url);
  const ended: string[] = [];
  const one = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  let uid = 'nobody';
  for (let step = 0; step < STEPS; step += 1) {
    const next = `${prefix}-${step}`;
    if (uid === 'nobody') {
      await browser.post('/login', { uid: next });
    } else {
      const names = random() < 0.4 ? one(atOnce) : [one(Object.keys(steps))];
      await Promise.all(
        names.map((name) => browser.post(`/act?${new URLSearchParams({ name, uid, next }).toString()}`)),
      );
      if (names.includes('destroy without waiting')) await sleep(50); // nobody tells when the store is done
    }
    const now = await browser.get('/whoami');
    if (uid !== 'nobody' && now !== uid) ended.push(uid);
    uid = now;
  }
  return ended;
}

async function run(
  stack: SessionStack,
  { store }: Situation,
): Promise<{ ended: string[]; reported: string[] }> {
  const random = seeded(7);
  const act = (request: Request): unknown => steps[asked(request, 'name')]?.(request);
  const host = await scene.start({ stack, store: store(random), act }, { logout: { concurrency: 50 } });
  const each = Array.from({ length: BROWSERS }, (_, n) => browse(host, `user-${n}`, random));
  const ended = (await Promise.all(each)).flat();
  return { ended: ended.toSorted(), reported: (await scene.logouts()).toSorted() };
}

describe('whatever browsers do, each end is reported once, and nothing else is', () => {
  it.each(cases)('on $stack, with $name', async ({ stack, ...situation }) => {
    const { ended, reported } = await run(stack, situation);
    expect(ended.length).toBeGreaterThan(BROWSERS);
    expect(reported).toEqual(ended);
  });
});
