// Many waiting logouts, written to a storage as the queue would have left them.
import { LogoutQueue } from '../../libs/debate-space/dist/logout/logout-queue.js';
import { QUEUE_FAMILIES } from '../../libs/debate-space/dist/logout/queue-keys.js';
import { MemoryStorage } from '../../libs/debate-space/dist/storage/memory-storage.js';
import { append, newEntry } from './outbox-entries.mjs';

const AT_A_TIME = 1_000;

/** @param engine whether its uids are encrypted */
export async function copyEntries(storage, engine, uids, count) {
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
