import { describe, expect, it } from '@jest/globals';
import { Store, type SessionData } from 'express-session';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { isPromise } from 'node:util/types';
import { SessionEndWatcher } from '../../libs/debate-space/src/session-end/watch-session-ends.js';

type Method = (...args: unknown[]) => unknown;
type Answer = ((error?: unknown, result?: unknown) => void) | undefined;

/** Keeps sessions as text, and notes in which order it is called. */
abstract class TextStore extends Store {
  readonly rows = new Map<string, string>();
  readonly calls: string[] = [];
  broken = false;
  #open = 0;

  protected abstract answer(work: () => unknown, callback: Answer): unknown;

  override get(sid: string, callback: never): unknown {
    return this.#do(`get ${sid}`, () => parsed(this.rows.get(sid)), callback);
  }
  override set(sid: string, data: SessionData, callback?: Answer): unknown {
    const text = JSON.stringify(data);
    return this.#do(
      `set ${sid} ${data.user?.uid ?? 'nobody'}`,
      () => void this.rows.set(sid, text),
      callback,
    );
  }
  override destroy(sid: string, callback?: Answer): unknown {
    return this.#do(`destroy ${sid}`, () => void this.rows.delete(sid), callback);
  }
  override touch(sid: string, _: SessionData, callback?: Answer): unknown {
    return this.#do(`touch ${sid}`, () => undefined, callback);
  }
  override clear(callback?: Answer): unknown {
    return this.#do(
      'clear',
      () => {
        this.rows.clear();
      },
      callback,
    );
  }
  override all(callback: never): unknown {
    return this.#do(
      'all',
      () => Object.fromEntries([...this.rows].map(([sid, row]) => [sid, parsed(row)])),
      callback,
    );
  }

  /** Resolves when no call is open, nor follows one: a call may wait for a read. */
  async settled(): Promise<void> {
    for (let quiet = 0; quiet < 20; quiet = this.#open > 0 ? 0 : quiet + 1) await nextTurn();
  }

  #do(name: string, work: () => unknown, callback: Answer): unknown {
    this.calls.push(name);
    this.#open += 1;
    return this.answer(() => {
      this.#open -= 1;
      if (this.broken && !name.startsWith('get')) throw new Error(`the store failed: ${name}`);
      return work();
    }, callback);
  }
}

/** Calls back before it returns. */
class SynchronousStore extends TextStore {
  protected override answer(work: () => unknown, callback: Answer): unknown {
    try {
      const result = work();
      callback?.(null, result);
    } catch (error) {
      callback?.(error);
    }
    return 'a value';
  }
}

/** Over a connection: what is asked first is done first. */
class CallbackStore extends TextStore {
  protected override answer(work: () => unknown, callback: Answer): unknown {
    setTimeout(() => {
      try {
        const result = work();
        callback?.(null, result);
      } catch (error) {
        callback?.(error);
      }
    }, 1);
    return undefined;
  }
}

/** As connect-redis: async methods, which call back before they resolve. */
class PromiseStore extends TextStore {
  protected override async answer(work: () => unknown, callback: Answer): Promise<unknown> {
    await pause(1);
    try {
      const result = work();
      callback?.(null, result);
      return result;
    } catch (error) {
      if (!callback) throw error;
      callback(error);
      return undefined;
    }
  }
}

function parsed(row: string | undefined): SessionData | undefined {
  return row === undefined ? undefined : (JSON.parse(row) as SessionData);
}
const sessionOf = (uid?: string): object => ({
  cookie: { path: '/' },
  ...(uid !== undefined && { user: { uid } }),
});

const kinds = { synchronous: SynchronousStore, 'by callback': CallbackStore, 'by promise': PromiseStore };
const operations: Readonly<Record<string, readonly unknown[]>> = {
  'get of a session': ['get', 's1'],
  'get of no session': ['get', 's4'],
  'set of the same user': ['set', 's1', sessionOf('alice')],
  'set of another user': ['set', 's1', sessionOf('bob')],
  'set without the user': ['set', 's1', sessionOf()],
  'set of a new session': ['set', 's4', sessionOf('dora')],
  touch: ['touch', 's1', sessionOf('alice')],
  'destroy of a session': ['destroy', 's1'],
  'destroy of a session without a user': ['destroy', 's3'],
  'destroy of no session': ['destroy', 's4'],
  all: ['all'],
  clear: ['clear'],
};

interface Situation {
  readonly watched: boolean;
  /** Whether the plugin has seen the sessions. */
  readonly known: boolean;
  readonly broken?: boolean;
}

async function opened(Kind: new () => TextStore, { watched, known, broken = false }: Situation) {
  const store = new Kind();
  const ended: string[] = [];
  const logIn = async (): Promise<void> => {
    for (const [sid, uid] of [
      ['s1', 'alice'],
      ['s2', 'bob'],
      ['s3', undefined],
    ] as const)
      await new Promise((resolve) => store.set(sid, sessionOf(uid) as SessionData, resolve));
  };
  if (!known) await logIn();
  const watcher = new SessionEndWatcher({ onSessionEnd: ({ uid }) => void ended.push(uid) });
  if (watched) watcher.watch(store);
  if (known) await logIn();
  store.calls.length = 0;
  store.broken = broken;
  return { store, ended, close: () => watcher.close() };
}

/** Calls the store as a host does, with a callback or without, and says what came of it. */
async function seenBy(
  Kind: new () => TextStore,
  call: readonly unknown[],
  byCallback: boolean,
  situation: Situation,
) {
  const { store, ended, close } = await opened(Kind, situation);
  const [name, ...args] = call as [string, ...unknown[]];
  const seen: unknown[] = [];
  const callback = (...results: unknown[]): void => void seen.push(['called back', ...results.map(String)]);
  try {
    const returned = (Reflect.get(store, name) as Method).apply(
      store,
      byCallback ? [...args, callback] : args,
    );
    seen.push(isPromise(returned) ? 'a promise' : returned);
    // What the host called has reached the store in this tick, unless it had to wait for the user.
    seen.push(store.calls.filter((each) => name === 'get' || name === 'all' || !/^(get|all)/.test(each)));
    if (isPromise(returned))
      seen.push(await returned.then(String, (error: unknown) => `rejected: ${String(error)}`));
  } catch (error) {
    seen.push(`thrown: ${String(error)}`);
  }
  await store.settled();
  const rows = [...store.rows].toSorted();
  await close();
  return { seen, rows, ended: ended.toSorted() };
}

const EFFECT: Readonly<Record<string, readonly string[]>> = {
  'set of another user': ['alice'],
  'set without the user': ['alice'],
  'destroy of a session': ['alice'],
  clear: ['alice', 'bob'],
};

/** On an asynchronous store these wait for the read that finds their users: no open request owns the sessions. */
const MAY_WAIT = [
  'set without the user',
  'destroy of a session',
  'destroy of a session without a user',
  'destroy of no session',
  'clear',
];
const isAnswer = (seen: unknown): boolean => Array.isArray(seen) && seen[0] === 'called back';

describe.each(Object.entries(kinds))('a store that answers %s', (kind, Kind) => {
  const cases = Object.entries(operations)
    .flatMap(([name, call]) =>
      [true, false].flatMap((byCallback) =>
        [false, true].map((broken) => ({
          name,
          call,
          byCallback,
          broken,
          how: `${byCallback ? 'with' : 'without'} a callback${broken ? ', when the store fails' : ''}`,
        })),
      ),
    )
    .filter(({ name, byCallback }) => byCallback || !/^(get|all)/.test(name) || kind === 'by promise');

  it.each(cases)(
    'is called in the same tick and gives the same results when it is watched: $name, $how',
    async ({ name, call, byCallback, broken }) => {
      const plain = await seenBy(Kind, call, byCallback, { watched: false, known: true, broken });
      const watched = await seenBy(Kind, call, byCallback, { watched: true, known: true, broken });
      const { ended, rows } = watched;
      const waits = kind !== 'synchronous' && MAY_WAIT.includes(name);
      const now = ({ seen }: typeof plain): readonly unknown[] => (waits ? seen.filter(isAnswer) : seen);
      expect({ seen: now(watched), rows }).toEqual({ seen: now(plain), rows: plain.rows });
      // Without a callback, a store that fails in silence is asked, or counts as done.
      if (!broken) expect(ended).toEqual(EFFECT[name] ?? []);
      else if (byCallback || kind === 'by promise') expect(ended).toEqual([]);
    },
  );

  it.each(cases.filter(({ byCallback, broken }) => byCallback && !broken))(
    'gives the same results, and has its ends reported, when nobody has seen its sessions: $name',
    async ({ name, call }) => {
      const plain = await seenBy(Kind, call, true, { watched: false, known: false });
      const watched = await seenBy(Kind, call, true, { watched: true, known: false });
      expect(watched.seen.filter(isAnswer)).toEqual(plain.seen.filter(isAnswer));
      expect({ rows: watched.rows, ended: watched.ended }).toEqual({
        rows: plain.rows,
        ended: EFFECT[name] ?? [],
      });
    },
  );

  const inOrder: Readonly<Record<string, (store: TextStore) => void>> = {
    'destroy, then set of the same session': (store) => {
      store.destroy('s1');
      store.set('s1', sessionOf('carol') as SessionData);
    },
    'set without the user, then set with another one': (store) => {
      store.set('s1', sessionOf() as SessionData);
      store.set('s1', sessionOf('carol') as SessionData);
    },
    'set, then destroy of the same session': (store) => {
      store.set('s4', sessionOf('carol') as SessionData);
      store.destroy('s4');
    },
    'destroy of one, then set of another session': (store) => {
      store.destroy('s1');
      store.set('s4', sessionOf('carol') as SessionData);
    },
    'destroy twice, then set': (store) => {
      store.destroy('s1');
      store.destroy('s1');
      store.set('s1', sessionOf('carol') as SessionData);
    },
    'destroy, then set, then clear': (store) => {
      store.destroy('s1');
      store.set('s1', sessionOf('carol') as SessionData);
      store.clear();
    },
    'clear, then set': (store) => {
      store.clear();
      store.set('s1', sessionOf('carol') as SessionData);
    },
  };
  const orders = Object.keys(inOrder).flatMap((name) =>
    [true, false].map((known) => ({ name, known, whose: known ? 'seen' : 'never seen' })),
  );
  it.each(orders)(
    'leaves the same sessions when calls follow each other: $name, of sessions that are $whose',
    async ({ name, known }) => {
      const leftBy = async (watched: boolean): Promise<unknown> => {
        const { store, close } = await opened(Kind, { watched, known });
        inOrder[name]?.(store);
        await store.settled();
        await close();
        return [...store.rows].toSorted();
      };
      expect(await leftBy(true)).toEqual(await leftBy(false));
    },
  );

  it('throws what a callback throws to where it goes without the plugin', async () => {
    const thrownBy = async (watched: boolean): Promise<unknown> => {
      if (kind !== 'synchronous') return 'elsewhere'; // those would end the process
      const { store, close } = await opened(Kind, { watched, known: true });
      let thrown: unknown;
      try {
        store.set('s1', sessionOf('alice') as SessionData, () => {
          throw new Error('thrown by the callback');
        });
      } catch (error) {
        thrown = String(error);
      }
      await close();
      return thrown;
    };
    expect(await thrownBy(true)).toEqual(await thrownBy(false));
  });

  it('has its own methods again when the watcher is closed', async () => {
    const { store, close } = await opened(Kind, { watched: true, known: true });
    await close();
    expect(Object.keys(store).filter((name) => ['get', 'set', 'destroy', 'clear'].includes(name))).toEqual(
      [],
    );
  });
});
