import { describe } from '@jest/globals';
import { mkdtempSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { memoryOutbox, type OutboxFactory } from 'nestjs-debate-space';
import { bullmqOutbox } from 'nestjs-debate-space/bullmq';
import { lmdbOutbox } from 'nestjs-debate-space/lmdb';
import { storageOutbox } from '../../libs/debate-space/src/logout/storage-outbox.js';
import { memoryStorage } from '../../libs/debate-space/src/storage/memory-storage.js';
import { redisServer, startRedis } from './redis.js';

/** An engine that the contract is run over. */
export interface OutboxEngine {
  readonly name: string;
  /** `describe`, or a plain word that these tests are skipped for lack of a server. */
  readonly describe: (name: string, tests: () => void) => void;
  /** Starts what the engine needs, once for all tests. */
  start(): Promise<EnginePlaces>;
}

export interface EnginePlaces {
  /** An empty place of its own. What is opened by the same factory later, or twice, is the same place. */
  place(): OutboxFactory;
  stop(): Promise<void>;
}

export const outboxEngines: readonly OutboxEngine[] = [
  {
    name: 'memory',
    describe,
    start: () => Promise.resolve({ place: memoryOutbox, stop: () => Promise.resolve() }),
  },
  {
    name: 'lmdb',
    describe,
    start: async () => {
      const root = await mkdtemp(join(tmpdir(), 'lmdb-'));
      return {
        place: () => lmdbOutbox({ path: mkdtempSync(join(root, 'place-')) }),
        stop: () => rm(root, { recursive: true }),
      };
    },
  },
  {
    name: 'BullMQ',
    describe: redisServer.describe,
    start: async () => {
      const redis = await startRedis();
      let places = 0;
      return {
        place: () => bullmqOutbox({ connection: redis.url, prefix: `place-${(places += 1)}` }),
        stop: () => redis.stop(),
      };
    },
  },
];

/** The logout queue on each storage. */
export const storageEngines: readonly OutboxEngine[] = [
  {
    name: 'memoryStorage',
    describe,
    start: () =>
      Promise.resolve({ place: () => storageOutbox(memoryStorage()), stop: () => Promise.resolve() }),
  },
];
