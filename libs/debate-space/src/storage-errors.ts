import {
  StorageError as JobsStorageError,
  transact as transactInJobs,
  type StorageView,
  type Transaction,
} from 'durable-jobs';
import { StorageError } from './errors.js';

/** @returns a `StorageError` of durable-jobs as the one that hosts know of this package; any other error as it is */
export function ownError(error: unknown): unknown {
  return error instanceof JobsStorageError ? new StorageError(error.problem, error.hint) : error;
}

/** `transact` of durable-jobs. @throws {@link StorageError} of this package */
export async function transact<T>(
  storage: StorageView,
  work: (transaction: Transaction) => T | Promise<T>,
): Promise<T> {
  try {
    return await transactInJobs(storage, work);
  } catch (error) {
    throw ownError(error);
  }
}
