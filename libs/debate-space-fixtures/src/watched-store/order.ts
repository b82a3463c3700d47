import { RequestSessions } from '../request-sessions.js';
import { seeded } from '../seeded.js';
import { answers, methodOf } from './calls.js';
import type { Check, Scene } from './watched.js';

type Step = readonly [name: string, ...args: unknown[]];

const sessions = new RequestSessions(false);
const SIDS = ['s1', 's2', 's3', 's4'];
const READS = ['all', 'length', 'ids', 'get'] as const;
const STEPS = 40;

const isRead = (name: string): boolean => READS.some((read) => read === name);

/** Starts a call. @returns what it answered: by callback, or by promise where the store knows no callbacks */
export function answerOf({ kind, store }: Scene, [name, ...args]: Step): Promise<unknown> {
  const calls = isRead(name) ? !kind.promises : answers(kind);
  return new Promise((resolve) => {
    const callback = (error: Error | null, result: unknown): void => {
      resolve(error ? error.message : result);
    };
    const returned = methodOf(store, name).call(store, ...args, ...(calls ? [callback] : []));
    if (!calls) resolve(returned);
  });
}

/** As a host compares lists: stores give them in no order. */
function sorted(result: unknown): unknown {
  if (!Array.isArray(result)) return result;
  return result.map((each) => JSON.stringify(each)).toSorted();
}

const set = (sid: string, uid?: string): Step => ['set', sid, sessions.of(sid, uid)];

/** connect-redis, for one, destroys such a session itself. */
const runOut = (sid: string, uid: string): Step => {
  const session = sessions.of(sid, uid);
  const cookie = { path: '/', originalMaxAge: 1, expires: '2020-01-01T00:00:00.000Z' };
  return ['set', sid, { ...session, cookie }];
};

const logIn = async (scene: Scene): Promise<void> => {
  for (const sid of SIDS.slice(0, 3)) await answerOf(scene, set(sid, `user of ${sid}`));
};

const endings: Record<string, readonly Step[]> = {
  'a destroy': [['destroy', 's1']],
  'two of them': [
    ['destroy', 's1'],
    ['destroy', 's2'],
  ],
  'a clear': [['clear']],
  'a set without the user': [set('s1')],
  'a set of a new session': [set('s4', 'dora')],
  'a set with another user': [set('s2', 'dora')],
  'a set of a run-out session': [runOut('s1', 'user of s1')],
  'a destroy and a set': [['destroy', 's1'], set('s1', 'dora')],
};

const behind = Object.entries(endings).flatMap(([ending, steps]) =>
  READS.map((read): Check => ({
    name: `${read} right after ${ending} sees what it sees without us`,
    needs: [read, ...steps.map(([name]) => name)],
    suits: ({ unordered }) => !unordered,
    observe: async (scene) => {
      await logIn(scene);
      const pending = steps.map((step) => answerOf(scene, step));
      const result = sorted(await answerOf(scene, [read, ...(read === 'get' ? ['s1'] : [])]));
      await Promise.all(pending);
      return result;
    },
  })),
);

/** A walk through all methods. What a change answers may contain other sessions, so only reads are compared; a read waits for its answer where the store could be interrupted meanwhile. */
const walk = (seed: number): Check => ({
  name: `a random walk through all methods answers the same (seed ${seed})`,
  observe: async (scene) => {
    const { kind, store } = scene;
    const random = seeded(seed);
    const one = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
    const has = (name: string): boolean =>
      typeof Reflect.get(store, name) === 'function' && !kind.early?.includes(name);
    const names = ['set', 'set', 'set', 'destroy', 'touch', 'clear', ...READS].filter(has);
    const answered: Promise<unknown>[] = [];
    for (let step = 0; step < STEPS; step += 1) {
      const name = one(names);
      const sid = one(SIDS);
      const uid = one(['alice', 'bob', undefined]);
      const takesSession = name === 'set' || name === 'touch';
      const args = takesSession
        ? [sid, sessions.of(sid, uid)]
        : name === 'get' || name === 'destroy'
          ? [sid]
          : [];
      const answer = answerOf(scene, [name, ...args]).then((result) => [
        step,
        isRead(name) && sorted(result),
      ]);
      answered.push(answer);
      const waits = kind.unordered === true || kind.interruptible?.includes(name) === true;
      if (waits) await Promise.all(answered);
    }
    const answers = await Promise.all(answered);
    const left = await Promise.all(SIDS.map((sid) => answerOf(scene, ['get', sid])));
    return { answers, left };
  },
});

export const orderChecks: readonly Check[] = [...behind, ...[1, 2, 3, 4, 5].map(walk)];
