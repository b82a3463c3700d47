import { byStore } from './fastify-endings/by-store.js';
import { destroyed } from './fastify-endings/destroyed.js';
import type { FastifyEnding } from './fastify-endings/ending.js';
import { expiry } from './fastify-endings/expiry.js';
import { leftBehind } from './fastify-endings/left-behind.js';
import { lookAlikes } from './fastify-endings/look-alikes.js';
import { requestPhases } from './fastify-endings/request-phases.js';
import { userChanges } from './fastify-endings/user-changes.js';

/** The Fastify table of session-endings.md. */
export const fastifyEndings: readonly FastifyEnding[] = [
  ...destroyed,
  ...userChanges,
  ...leftBehind,
  ...requestPhases,
  ...byStore,
  ...expiry,
  ...lookAlikes,
];
