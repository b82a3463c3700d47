import { commitCases, readingCases } from './contract/reading-cases.js';
import { competitionCases, lifeCases, sharedCases } from './contract/life-cases.js';
import type { StorageContractCase, StorageContractSubject } from './contract/contract-case.js';

export type { StorageContractCase, StorageContractSubject } from './contract/contract-case.js';

/**
 * What every storage must do, for the test runner of your choice. Each case rejects with an `AssertionError` of
 * `node:assert/strict` when the storage breaks it, and takes an empty place of its own.
 *
 * @example
 * describe('my storage', () => {
 *   for (const { name, run } of storageContract({ place: () => myStorage({ prefix: randomUUID() }), isShared: true })) {
 *     it(name, run);
 *   }
 * });
 */
export function storageContract(subject: StorageContractSubject): readonly StorageContractCase[] {
  const cases = { ...readingCases, ...commitCases, ...competitionCases, ...lifeCases };
  const all = subject.isShared ? { ...cases, ...sharedCases } : cases;
  return Object.entries(all).map(([name, run]) => ({ name, run: () => run(subject) }));
}
