import { randomUUID } from 'node:crypto';
import { LogoutRepository } from '../../libs/debate-space/src/logout/logout-repository.js';
import { Secret } from '../../libs/debate-space/src/secrets/secret.js';
import { Keyring } from '../../libs/debate-space/src/secrets/keyring.js';
import type { NewLogout, Storage } from '../../libs/debate-space/src/storage/storage.js';

/** @returns makes the row of a session that ends at that moment, sealed as the plugin seals it */
export function logoutsOf(storage: Storage, application: string, storageKey: string): () => NewLogout {
  const logouts = new LogoutRepository(storage, new Keyring([new Secret(storageKey)], application), 0);
  return () => {
    const endedAt = Date.now();
    const id = `${String(endedAt).padStart(15, '0')}-${randomUUID()}`;
    return logouts.rowOf({ id, uid: `user-${randomUUID()}`, reason: 'destroyed', endedAt });
  };
}

/** Stores so many logouts. */
export async function fill(storage: Storage, newLogout: () => NewLogout, count: number): Promise<void> {
  const AT_ONCE = 500;
  for (let left = count; left > 0; left -= AT_ONCE)
    await storage.addLogouts(Array.from({ length: Math.min(left, AT_ONCE) }, newLogout));
}
