// The engines of the outbox by name, as a host chooses them.
import { memoryOutbox } from 'nestjs-debate-space';

const factories = {
  memory: () => memoryOutbox(),
  lmdb: async (path) => (await import('nestjs-debate-space/lmdb')).lmdbOutbox({ path }),
  bullmq: async (connection) => (await import('nestjs-debate-space/bullmq')).bullmqOutbox({ connection }),
};

/** @param place a folder for lmdb, the URL of Redis for bullmq */
export async function outboxFactory(engine, place) {
  return factories[engine](place);
}
