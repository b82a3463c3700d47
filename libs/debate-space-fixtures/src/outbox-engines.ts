import { ERASURE_FAMILIES } from '../../debate-space/src/erasure/queue/erasure-records.js';
import { LogoutQueue, QUEUE_FAMILIES } from '../../debate-space/src/logout/queue/logout-queue.js';
import type { LogoutContext } from '../../debate-space/src/logout/logout.js';
import { memoryStorage, type Storage, type StorageContext, type StorageEngine } from 'durable-jobs';
import { openOwn } from '../../debate-space/src/module/own-storage.js';
import { outboxContext } from './outbox-context.js';
import { storageKinds, type StorageKind } from './storage-engines.js';

/** What the plugin tells a storage about an application. */
export const storageContext: StorageContext = {
  namespace: 'app',
  families: [...QUEUE_FAMILIES, ...ERASURE_FAMILIES, 'rate', 'session', 'format'],
  contained: (work) => {
    work();
  },
};

/** The logout queue on a storage, as the module opens it. */
export async function openOutbox(
  engine: StorageEngine,
  context: LogoutContext = outboxContext(),
): Promise<LogoutQueue> {
  return new LogoutQueue(await openOwn(engine, storageContext), engine, context);
}

/** The logout queue in memory, which answers synchronously. */
export function memoryQueue(context: LogoutContext = outboxContext()): LogoutQueue {
  return new LogoutQueue(openMemory(), memoryStorage(), context);
}

export function openMemory(): Storage {
  return memoryStorage().open(storageContext) as Storage;
}

/** What keeps the contract of {@link LogoutQueue}. */
export interface OutboxKind extends Pick<StorageKind, 'name' | 'isShared' | 'describe'> {
  start(): Promise<OutboxPlaces>;
}

export interface OutboxPlaces {
  /** An empty place. @returns what opens it, and opens it again */
  place(): (context?: LogoutContext) => Promise<LogoutQueue>;
  stop(): Promise<void>;
}

/** The queue on each storage. */
export const outboxKinds: readonly OutboxKind[] = storageKinds.map((kind): OutboxKind => ({
  ...kind,
  name: `queue on the ${kind.name} storage`,
  start: async () => {
    const places = await kind.start();
    return {
      place: () => {
        const engine = withExactCounts(places.place());
        return (context) => openOutbox(engine, context);
      },
      stop: () => places.stop(),
    };
  },
}));

/** A count may be a second old; the contract looks immediately. */
function withExactCounts(engine: StorageEngine): StorageEngine {
  if (engine.name !== 'postgres') return engine;
  return {
    ...engine,
    open: async (context) => {
      const storage = await engine.open(context);
      const count = async (family: string): Promise<number> =>
        (await storage.range(`${family}:`, `${family}:~`, { limit: 1_000 })).length;
      return Object.assign(storage, { count });
    },
  };
}
