import type { FastifySession, FastifyStore } from './ending.js';

/** What the store of @fastify/session itself keeps, by the ids of its sessions. */
export const ownRows = (store: FastifyStore): Map<string, FastifySession> =>
  Reflect.get(store, 'store') as Map<string, FastifySession>;
