import { EventEmitter } from 'node:events';
import { inspect } from 'node:util';
import { Store } from 'express-session';
import { METHODS } from './recorded.js';
import type { Check, Scene } from './watched.js';

const NAMES = [...METHODS, 'generate'];

const eachMethod = (tell: (name: string) => unknown): readonly unknown[] =>
  NAMES.map((name) => [name, tell(name)]);

/** What a host sees that looks at a store. */
const looks: Record<string, (store: object, scene: Scene) => unknown> = {
  'has the same own properties': (store) => Reflect.ownKeys(store).map(String),
  'has the same keys': (store) => Object.keys(store),
  'has the same keys in a for…in loop': (store) => {
    const keys: string[] = [];
    for (const key in store) keys.push(key);
    return keys.toSorted(); // the methods that are watched come in an order of their own
  },
  'has the same enumerable methods': (store) =>
    eachMethod((name) => Object.prototype.propertyIsEnumerable.call(store, name)),
  'has methods of the same names': (store) =>
    eachMethod((name) => (Reflect.get(store, name) as { name?: string } | undefined)?.name),
  'has methods that take as many arguments': (store) =>
    eachMethod((name) => (Reflect.get(store, name) as { length?: number } | undefined)?.length),
  'has the same methods': (store) => eachMethod((name) => name in store),
  'gives the same JSON': (store) => {
    try {
      return JSON.stringify(store);
    } catch (error) {
      return String(error);
    }
  },
  'looks the same in util.inspect': (store) => inspect(store, { depth: 0 }),
  'gives the same copy when it is spread': (store) => inspect({ ...store }, { depth: 0 }),
  'has the same constructor': (store, { prototype }) => [
    store.constructor.name,
    store.constructor === prototype.constructor,
  ],
  'is an instance of the same classes': (store, { prototype }) => [
    store instanceof Store,
    store instanceof EventEmitter,
    Object.prototype.isPrototypeOf.call(prototype, store),
  ],
  'has the same listeners': (store) =>
    store instanceof EventEmitter && [
      store.eventNames().map((name) => [name, store.listenerCount(name)]),
      store.getMaxListeners(),
    ],
  'can be extended as before': (store) => [Object.isExtensible(store), Object.isSealed(store)],
};

export const shapeChecks: readonly Check[] = Object.entries(looks).map(([name, look]) => ({
  name,
  observe: (scene) => look(scene.store, scene),
}));

/** All that the store and its class have of their own, values included. */
export function descriptorsOf(store: object): unknown {
  const describe = (each: object | null): unknown =>
    each && Reflect.ownKeys(each).map((key) => [key, Object.getOwnPropertyDescriptor(each, key)]);
  return [describe(store), describe(Object.getPrototypeOf(store) as object | null)];
}
