// Many waiting logouts, written to a storage as the queue would have left them.
import type { DebateSpaceStorage, StorageEngine } from 'nestjs-debate-space';
import { LogoutQueue, MemoryStorage, QUEUE_FAMILIES, type UidCipher } from './built-queue.js';
import { append, newEntry } from './jobs-entries.js';

const AT_A_TIME = 1_000;

/** @param engine whether its uids are encrypted */
export async function copyEntries(
  storage: DebateSpaceStorage,
  engine: StorageEngine,
  uids: UidCipher,
  count: number,
): Promise<object> {
  for (let missing = count; missing > 0; missing -= AT_A_TIME) {
    const model = new MemoryStorage({ families: QUEUE_FAMILIES });
    const queue = new LogoutQueue(model, engine, { uids, keepFinishedMs: 0 });
    await append(queue, Array.from({ length: Math.min(AT_A_TIME, missing) }, newEntry), 1);
    const rows = QUEUE_FAMILIES.flatMap((family) =>
      model.range(`${family}:`, `${family};`, { limit: Infinity }),
    );
    await storage.commit(new Map(), new Map(rows));
  }
  return {};
}
