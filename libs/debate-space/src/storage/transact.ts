import { setTimeout as sleep } from 'node:timers/promises';
import { StorageError } from '../errors.js';
import type { StorageView } from './storage.js';
import { Transaction } from './transaction.js';

const MAX_ATTEMPTS = 50;
const FIRST_WAIT_MS = 2;
const MAX_WAIT_MS = 100;

/**
 * Does the work of a transaction, and again from the beginning while others change what it has read: at most 50 times,
 * with random waits up to 100 ms. The work must have no other effect.
 * @returns what the work has returned, when its changes are made
 * @throws {@link StorageError} after the last attempt, or when the outcome is unknown
 */
export async function transact<T>(
  storage: StorageView,
  work: (transaction: Transaction) => T | Promise<T>,
): Promise<T> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
    const transaction = new Transaction(storage);
    const result = await work(transaction);
    if (await transaction.commit()) return result;
    await sleep(Math.random() * Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** attempt));
  }
  throw new StorageError(
    `Others have changed the same records ${MAX_ATTEMPTS} times meanwhile; nothing was changed`,
    'repeat the call',
  );
}
