import { Containment } from '../async/containment.js';
import { DebateSpaceErasures } from '../api/debate-space-erasures.js';
import type { Emit } from '../events.js';
import { CircuitBreaker } from '../jobs/circuit-breaker.js';
import type { JobRunner } from '../jobs/job-runner.js';
import type { FallbackQueue } from '../logout/fallback-queue.js';
import type { LogoutSender } from '../logout/logout-sender.js';
import type { RateLimiter } from '../service/rate-limiter.js';
import type { ServicePause } from '../service/service-pause.js';
import type { UsersApi } from '../service/users-api.js';
import type { ResolvedOptions } from './resolve-options.js';
import type { DebateSpaceStorage } from '../storage/storage.js';
import type { UidCipher } from '../secrets/uid-cipher.js';
import { ErasureAttempt } from '../erasure/erasure-attempt.js';
import { ErasureCalls } from '../erasure/erasure-calls.js';
import { ErasureExecution } from '../erasure/erasure-execution.js';
import { ErasureMaintenance } from '../erasure/erasure-maintenance.js';
import { ErasureQueue } from '../erasure/erasure-queue.js';
import { ErasureStorage } from '../erasure/erasure-storage.js';

export interface ErasuresAround {
  readonly storage: DebateSpaceStorage;
  readonly durable: boolean;
  readonly uids: UidCipher;
  readonly options: ResolvedOptions;
  readonly users: UsersApi;
  readonly limiter: RateLimiter;
  /** Aborted when the app shuts down. */
  readonly closing: AbortSignal;
  readonly logouts: FallbackQueue;
  readonly sender: LogoutSender;
  readonly runner: JobRunner;
  readonly pause: ServicePause;
  readonly emit: Emit;
}

export interface OpenErasures {
  readonly erasures: DebateSpaceErasures;
  readonly storage: ErasureStorage;
}

/** The erasures of one application, put together. */
export function openErasures(around: ErasuresAround): OpenErasures {
  const { options, closing, logouts, emit } = around;
  const { concurrency, giveUpAfterMs, overdueAfterMs, receiptRetentionMs, beforeErase } = options.erasure;
  const agesMs = [...overdueAfterMs, giveUpAfterMs].toSorted((one, other) => one - other);
  const storage = new ErasureStorage(around.storage, around.uids, agesMs[0] ?? giveUpAfterMs);
  const queue = new ErasureQueue(storage, new ErasureMaintenance(storage, agesMs, receiptRetentionMs, emit));
  const calls = new ErasureCalls(around.users, closing);
  const sender = options.logout.mode === 'direct' ? around.sender : undefined;
  const attempt = new ErasureAttempt(calls, sender, beforeErase, closing, emit);
  const report: Emit = (event) => {
    if (event.type === 'service-down') emit({ type: 'erasure-service-down', cause: event.cause });
    if (event.type === 'service-up') emit({ type: 'erasure-service-up' });
  };
  // An attempt logs the user out first: one failure is enough to stop the others.
  const breaker = new CircuitBreaker(concurrency, report, 1);
  const containment = new Containment(emit);
  const forget = async (uid: string) =>
    containment.run('logouts of an erased user', () => logouts.forget(uid), undefined);
  around.runner.add(new ErasureExecution(queue, breaker, attempt, around.pause, giveUpAfterMs, forget, emit));
  if (!around.durable) {
    const stop = storage.onChange(() => {
      stop(); // the first erasure is requested
      emit({ type: 'erasures-in-memory' });
    });
  }
  return { erasures: new DebateSpaceErasures(storage, calls, around.limiter, closing, emit), storage };
}
