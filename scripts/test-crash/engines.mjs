import { memoryOutbox } from 'nestjs-debate-space';

/** The outbox that an app process is to have; a host that does not use an engine never loads it. */
export async function outboxOf({ engine, place }) {
  switch (engine) {
    case 'memory':
      return memoryOutbox();
    case 'lmdb': {
      const { lmdbOutbox } = await import('nestjs-debate-space/lmdb');
      return lmdbOutbox({ path: place });
    }
    case 'bullmq': {
      const { bullmqOutbox } = await import('nestjs-debate-space/bullmq');
      return bullmqOutbox({ connection: place, prefix: 'crash' });
    }
    default:
      throw new Error(`no such engine: ${engine}`);
  }
}
