/**
 * The storage cannot be used. While it is opened it has a hint. Later the outcome of a change is unknown: it may have been
 * made.
 */
export class StorageError extends Error {
  readonly code = 'ERR_DURABLE_JOBS_STORAGE';
  declare readonly problem: string;
  /** How to fix it. */
  declare readonly hint?: string;

  constructor(problem: string, hint?: string) {
    super(hint === undefined ? problem : `${problem}; hint: ${hint}`);
    this.name = 'StorageError';
    Object.defineProperties(this, { problem: { value: problem }, hint: { value: hint } }); // not enumerable
  }
}
