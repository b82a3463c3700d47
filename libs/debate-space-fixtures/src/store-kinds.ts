import fastifySession from '@fastify/session';
import session from 'express-session';
import createMemoryStore from 'memorystore';
import { ErrorStore, RejectingStore, ThrowingStore, type BreakableStore } from './broken-stores.js';
import * as own from './contract-stores.js';
import type { Caller } from './store-account.js';

export interface OpenedStore {
  readonly store: object;
  /** From now on it fails. */
  readonly fail?: () => unknown;
  readonly close?: () => unknown;
}

/** A kind of session store, and what hosts know about it. */
export interface StoreKind {
  readonly name: string;
  /** Opens an empty one. */
  readonly open: () => OpenedStore | Promise<OpenedStore>;
  /** Whether `destroy` takes a list of ids. */
  readonly lists?: boolean;
  /** Whether it answers by promise alone. */
  readonly promises?: boolean;
  /** Whether it does not tell when it has changed something. */
  readonly silent?: boolean;
  /** Whether it has stopped to work by the time it is called. */
  readonly fails?: boolean;
  /** Whether nobody can tell that it failed without a callback: it does not say so, and cannot be asked. */
  readonly undecidable?: boolean;
  readonly lacks?: readonly string[];
  /** Calls that take the process down or leave a rejection unhandled, with or without the plugin. */
  readonly unbearable?: (method: string, caller: Caller) => boolean;
}

const MemoryStore = createMemoryStore(session);

const breakable = (store: BreakableStore): OpenedStore => ({
  store,
  fail: () => {
    store.broken = true;
  },
});

export const storesInMemory: readonly StoreKind[] = [
  {
    name: 'MemoryStore of express-session',
    open: () => ({ store: new session.MemoryStore() }),
    lacks: ['ids'],
    unbearable: (method, { callback }) => method === 'length' && !callback,
  },
  { name: 'memorystore', open: () => ({ store: new MemoryStore({}) }), lists: true },
  {
    name: 'MemoryStore of @fastify/session',
    open: () => ({ store: new fastifySession.MemoryStore() }),
    lacks: ['touch', 'all', 'length', 'ids', 'clear'],
  },
  { name: 'methods on the prototype', open: () => ({ store: new own.PrototypeStore() }), lists: true },
  { name: 'methods on the instance', open: () => ({ store: own.instanceStore() }), lists: true },
  { name: 'private fields', open: () => ({ store: new own.PrivateStore() }), lists: true },
  { name: 'callbacks in the same tick', open: () => ({ store: new own.SameTickStore() }), lists: true },
  {
    name: 'promises alone',
    open: () => ({ store: new own.PromiseStore() }),
    lists: true,
    promises: true,
    lacks: ['touch', 'length', 'ids'],
  },
  { name: 'silence', open: () => ({ store: new own.SilentStore() }), lists: true, silent: true },
  { name: 'failure by callback', open: () => breakable(new ErrorStore()), lists: true, fails: true },
  {
    name: 'failure by promise',
    open: () => breakable(new RejectingStore()),
    lists: true,
    fails: true,
    unbearable: (_, { looks }) => !looks,
  },
  { name: 'failure by throwing', open: () => breakable(new ThrowingStore()), lists: true, fails: true },
];
