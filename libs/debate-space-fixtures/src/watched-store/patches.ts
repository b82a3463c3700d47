import type { Request } from 'express';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { logIn, methodOf, settle, answers } from './calls.js';
import { descriptorsOf } from './shape.js';
import type { Check, Scene } from './watched.js';

type Method = (...args: unknown[]) => unknown;

/** A wrapper as agents and spies put it in front of a method. */
function wrap(target: object, name: string, calls: string[]): () => void {
  const before = Object.getOwnPropertyDescriptor(target, name);
  const original = Reflect.get(target, name) as Method;
  const wrapped = function (this: unknown, ...args: unknown[]): unknown {
    calls.push(`${name} with ${args.length}`);
    return original.apply(this, args);
  };
  Object.defineProperty(target, name, {
    value: wrapped,
    writable: true,
    configurable: true,
    enumerable: before?.enumerable ?? true,
  });
  return () => {
    if (before) Object.defineProperty(target, name, before);
    else Reflect.deleteProperty(target, name);
  };
}

const destroySession = (request: Request): Promise<unknown> =>
  new Promise((resolve) => request.session.destroy(resolve));
const regenerate = (request: Request): Promise<unknown> =>
  new Promise((resolve) => request.session.regenerate(resolve));
const nothing = (): void => undefined;

/** Calls that the plugin makes itself, to read, are not the host's. */
const ofHost = (calls: readonly string[]): readonly string[] =>
  calls.filter((call) => !call.startsWith('get'));

const places: Record<string, (scene: Scene) => object> = {
  'the instance': ({ store }) => store,
  'the prototype': ({ prototype }) => prototype,
};

const wrapped = Object.entries(places).flatMap(([place, targetOf]): readonly Check[] => [
  {
    name: `a wrapper put on ${place} after a request sees each later call of a request`,
    needs: ['destroy', 'set'],
    requests: true,
    observe: async (scene) => {
      const calls: string[] = [];
      await scene.request(nothing);
      const undo = ['destroy', 'set', 'createSession'].map((name) => wrap(targetOf(scene), name, calls));
      try {
        await scene.request(regenerate);
        await scene.request(destroySession);
        return ofHost(calls);
      } finally {
        for (const each of undo.reverse()) each();
      }
    },
  },
  {
    name: `a wrapper put on ${place} after a request sees the calls of a job, and none after it was taken away`,
    needs: ['destroy'],
    observe: async (scene) => {
      const calls: string[] = [];
      const { store, kind } = scene;
      await logIn(scene, 's1', 's2');
      const undo = wrap(targetOf(scene), 'destroy', calls);
      const destroy = (sid: string): Promise<unknown> =>
        settle(
          (callback) => methodOf(store, 'destroy').call(store, sid, ...(answers(kind) ? [callback] : [])),
          answers(kind),
        );
      try {
        await destroy('s1');
      } finally {
        undo();
      }
      await destroy('s2');
      return calls;
    },
  },
]);

export const patchChecks: readonly Check[] = [
  ...wrapped,
  {
    name: 'a method that the host replaces is the one that is called, and it stays after the app has closed',
    needs: ['destroy'],
    requests: true,
    observe: async ({ store, request, close }) => {
      const seen: unknown[] = [];
      await request(nothing);
      const own = function (this: unknown, sid: unknown, done?: (error?: unknown) => void): void {
        seen.push(this === store, typeof sid);
        done?.();
      };
      Reflect.set(store, 'destroy', own);
      await request(destroySession);
      await close();
      return [...seen, Reflect.get(store, 'destroy') === own];
    },
  },
  {
    name: 'a wrapper around a method of the instance still works after the app has closed',
    needs: ['destroy'],
    observe: async (scene) => {
      const calls: string[] = [];
      const { store, kind, close } = scene;
      await logIn(scene, 's1');
      wrap(store, 'destroy', calls);
      await close();
      const end = (callback: Method): unknown =>
        methodOf(store, 'destroy').call(store, 's1', ...(answers(kind) ? [callback] : []));
      return { seen: await settle(end, answers(kind)), calls };
    },
  },
  {
    name: 'a method that the host deletes from the instance is the one of the class again',
    needs: ['destroy'],
    requests: true,
    observe: async (scene) => {
      const calls: string[] = [];
      const { store, request } = scene;
      await request(nothing);
      wrap(store, 'destroy', calls);
      Reflect.deleteProperty(store, 'destroy');
      await request(destroySession);
      return [calls, typeof methodOf(store, 'destroy')];
    },
  },
];

/** What is left of the plugin when the app has closed. */
export const closeChecks: readonly Check<{ readonly before: unknown }>[] = [
  {
    name: 'it has the own properties and the prototype that it had before',
    prepare: (store) => ({ before: descriptorsOf(store) }),
    observe: async ({ store, close }, { before }) => {
      await close();
      await nextTurn();
      const after = descriptorsOf(store);
      return differences(before, after);
    },
  },
];

type Described = readonly (readonly (readonly [string | symbol, PropertyDescriptor])[])[];

/** The properties that have come, gone or changed: their values are compared by identity. */
function differences(before: unknown, after: unknown): readonly string[] {
  const seen: string[] = [];
  (after as Described).forEach((list, index) => {
    const earlier = new Map((before as Described)[index]);
    for (const [key, descriptor] of list) {
      const old = earlier.get(key);
      earlier.delete(key);
      if (!old) seen.push(`${String(key)} has come`);
      else if (JSON.stringify({ ...old, value: 0 }) !== JSON.stringify({ ...descriptor, value: 0 }))
        seen.push(`${String(key)} has other attributes`);
      else if (typeof old.value === 'function' && old.value !== descriptor.value)
        seen.push(`${String(key)} is another function`);
    }
    for (const key of earlier.keys()) seen.push(`${String(key)} has gone`);
  });
  return seen;
}
