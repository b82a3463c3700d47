export type { NewJob } from './added-jobs.js';
export { fullJitter } from './circuit-breaker.js';
export { CircuitBreaker } from './circuit-breaker.js';
export { FORMAT_FAMILY, FormatRow } from './format-row.js';
export type { JobKind } from './job-kind.js';
export { LEASE_MS, type ChangeListener, type JobQueue } from './job-kind.js';
export type { JobStoreOptions, ListOptions } from './job-reader.js';
export {
  jobFamilies,
  type FoundJob,
  type Job,
  type JobCodec,
  type JobState,
  type ParkedRecord,
  type StoredJob,
} from './job-records.js';
export { JobRunner } from './job-runner.js';
export { JobStore, type RemoveOptions } from './job-store.js';
export {
  Jobs,
  openJobs,
  ParkJob,
  type JobHandler,
  type JobName,
  type JobOutcome,
  type JobsOptions,
  type JobToAdd,
  type WaitingJob,
} from './jobs.js';
export { memoryStorage, MemoryStorage } from './memory.js';
export { rangePages } from './storage.js';
export {
  isReadable,
  readRecord,
  recordText,
  UnreadableRecord,
  type ReadRecord,
  type RecordType,
} from './transaction.js';
export { Sealer } from './sealer.js';
export { SteadyClock } from './steady-clock.js';
export { StorageError } from './storage.js';
export type {
  HostTransaction,
  RangeOptions,
  Storage,
  StorageContext,
  StorageEngine,
  StorageRow,
  StorageValues,
  StorageView,
  StorageWarning,
} from './storage.js';
export { transact, Transaction } from './transaction.js';
