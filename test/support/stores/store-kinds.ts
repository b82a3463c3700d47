import fastifySession from '@fastify/session';
import session from 'express-session';
import createMemoryStore from 'memorystore';

export interface OpenedStore {
  readonly store: object;
  readonly close?: () => unknown;
}

/** A kind of session store that hosts use. */
export interface StoreKind {
  readonly name: string;
  /** Opens an empty one. */
  readonly open: () => OpenedStore | Promise<OpenedStore>;
}

const MemoryStore = createMemoryStore(session);

export const storesInMemory: readonly StoreKind[] = [
  { name: 'MemoryStore of express-session', open: () => ({ store: new session.MemoryStore() }) },
  { name: 'memorystore', open: () => ({ store: new MemoryStore({}) }) },
  { name: 'MemoryStore of @fastify/session', open: () => ({ store: new fastifySession.MemoryStore() }) },
];
