import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { SetupWarning } from './session-end.js';
import { WatchedApp } from './watched-app.js';

let stores: string[];
let faults: string[];
let warnings: SetupWarning[];
let app: WatchedApp;
beforeEach(() => {
  [stores, faults, warnings] = [[], [], []];
  app = new WatchedApp({
    onSessionEnd: () => undefined,
    onStore: (name) => stores.push(name),
    onFault: (where) => faults.push(where),
    onWarning: (warning) => warnings.push(warning),
  });
});

const methods = (): object => ({ get: () => 'got', set: () => undefined, destroy: () => undefined });

it('a store without a prototype is watched', () => {
  const store = Object.assign(Object.create(null) as object, methods());
  expect(app.watch(store)).toBe(true);
  expect(stores).toEqual(['Object']);
});

it('a store whose constructor has no name that can be read is watched', () => {
  const store = Object.defineProperty(methods(), 'constructor', {
    get: () => {
      throw new Error('of the host');
    },
  });
  expect(app.watch(store)).toBe(true);
  expect(stores).toEqual(['Object']);
});

it('a store object for each request is not kept alive, and only the first ones are announced', async () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const freed: number[] = [];
  const registry = new FinalizationRegistry<number>((n) => freed.push(n));
  for (let n = 0; n < 50; n += 1) {
    const store = methods();
    registry.register(store, n);
    expect(app.found(store)).toBe(true);
  }
  for (let turn = 0; turn < 50 && freed.length < 40; turn += 1) {
    collectGarbage();
    await new Promise(setImmediate);
  }
  expect(freed.length).toBeGreaterThanOrEqual(40);
  expect(stores).toHaveLength(5);
});

it('a store in files that has no file of a session has no such session, and any other error is one', async () => {
  const answers = { error: Object.assign(new Error('no such file'), { code: 'ENOENT' }) };
  const get = (_sid: string, done: (error: unknown) => void): void => {
    done(answers.error);
  };
  app.watch({ ...methods(), get });
  expect(await app.find('s1')).toEqual([]);
  answers.error.code = 'EACCES';
  await expect(app.find('s1')).rejects.toThrow('the store failed to read');
});

it('a read that began before its store was found slow has one second from the shutdown on', async () => {
  jest.useFakeTimers({ doNotFake: ['queueMicrotask', 'nextTick', 'setImmediate'] });
  try {
    app.watch({ ...methods(), get: () => undefined });
    const failed: string[] = [];
    const read = (sid: string): void => void app.find(sid).catch(() => failed.push(sid));
    read('first');
    await jest.advanceTimersByTimeAsync(4_800);
    read('second');
    await jest.advanceTimersByTimeAsync(300);
    expect(failed).toEqual(['first']);
    const closed = app.close();
    await jest.advanceTimersByTimeAsync(1_000);
    expect(failed).toEqual(['first', 'second']);
    await closed;
  } finally {
    jest.useRealTimers();
  }
});

describe('a store that cannot be watched', () => {
  const kinds: { readonly name: string; readonly make: () => object; readonly part: string }[] = [
    {
      name: 'one of its methods cannot be replaced',
      make: () => Object.defineProperty(methods(), 'destroy', { writable: false }),
      part: 'method destroy',
    },
    { name: 'it is frozen', make: () => Object.freeze(methods()), part: 'method set' },
    {
      name: 'it cannot be extended',
      make: () => Object.preventExtensions(Object.create(methods()) as object),
      part: 'method set',
    },
    {
      name: 'it is a Proxy that binds its methods',
      make: () =>
        new Proxy(methods(), {
          get: (target, key) => (Reflect.get(target, key) as (() => unknown) | undefined)?.bind(target),
        }),
      part: 'method set',
    },
  ];
  it.each(kinds)('is one warning that names the option and the part when $name', ({ make, part }) => {
    const store = make();
    expect([app.watch(store), app.watch(store)]).toEqual([false, false]);
    expect(faults).toHaveLength(1);
    expect(warnings).toEqual([
      expect.objectContaining({
        code: 'store-not-watchable',
        message: expect.stringContaining(`its ${part} cannot be replaced`) as unknown,
        hint: expect.stringContaining('the option session.store') as unknown,
      }),
    ]);
  });

  it('keeps its methods and its prototype', () => {
    const store = Object.defineProperty(methods(), 'destroy', { writable: false }) as {
      get: () => string;
    };
    const { get } = store;
    app.watch(store);
    expect(store.get).toBe(get);
    expect(Object.getPrototypeOf(store)).toBe(Object.prototype);
  });
});
