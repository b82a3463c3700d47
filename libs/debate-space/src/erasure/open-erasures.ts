import { DebateSpaceErasures } from '../debate-space-erasures.js';
import { Containment } from '../containment.js';
import type { Emit } from '../debate-space-event.js';
import { CircuitBreaker } from '../jobs/circuit-breaker.js';
import type { JobRunner } from '../jobs/job-runner.js';
import type { FallbackQueue } from '../logout/fallback-queue.js';
import type { LogoutSender } from '../logout/logout-sender.js';
import { iterateUsers } from '../remote/paginate-users.js';
import type { ServicePause } from '../remote/service-pause.js';
import type { UsersApi } from '../remote/users-api.js';
import type { ResolvedOptions } from '../resolve-options.js';
import type { DebateSpaceStorage } from '../storage/storage.js';
import type { UidCipher } from '../uid-cipher.js';
import { ErasureAttempt } from './erasure-attempt.js';
import { ErasureControl } from './erasure-control.js';
import { ErasureExecution } from './erasure-execution.js';
import { ErasureMaintenance } from './erasure-maintenance.js';
import { ErasureQueue } from './erasure-queue.js';
import type { ErasureRegister } from './erasure-register.js';
import { ErasureRequests } from './erasure-requests.js';
import { ErasureStorage } from './erasure-storage.js';
import { ServicePresence } from './service-presence.js';

export interface ErasuresAround {
  readonly storage: DebateSpaceStorage;
  readonly durable: boolean;
  readonly uids: UidCipher;
  readonly options: ResolvedOptions;
  readonly users: UsersApi;
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
  readonly register: ErasureRegister;
}

const PER_PAGE = 100;

/** The erasures of one application, put together. */
export function openErasures(around: ErasuresAround): OpenErasures {
  const { durable, uids, options, users, closing, logouts, sender, runner, pause, emit } = around;
  const { erasure, logout } = options;
  const storage = new ErasureStorage(around.storage, uids);
  const { concurrency, giveUpAfterMs, receiptRetentionMs, beforeErase } = erasure;
  const agesMs = [...erasure.overdueAfterMs, giveUpAfterMs].toSorted((one, other) => one - other);
  const [overdueAfterMs = giveUpAfterMs] = agesMs;
  const requests = new ErasureRequests(storage, overdueAfterMs);
  const { register } = requests;
  const control = new ErasureControl(storage, register);
  const maintenance = new ErasureMaintenance(storage, { overdueAfterMs: agesMs, receiptRetentionMs }, emit);
  const queue = new ErasureQueue(storage, maintenance);
  const presence = new ServicePresence(() => users.list({ perPage: 1 }, closing, 'job'));
  const attempt = new ErasureAttempt({
    beforeErase,
    logouts: logout.mode === 'direct' ? sender : undefined,
    prepare: (mode) => users.prepareErasure(mode, closing),
    erase: (uid, mode, slot) => users.eraseIfExists(uid, mode, slot, closing),
    isServiceThere: () => presence.isThere(),
    closing,
    emit,
  });
  const report: Emit = (event) => {
    if (event.type === 'service-down') emit({ type: 'erasure-service-down', cause: event.cause });
    if (event.type === 'service-up') emit({ type: 'erasure-service-up' });
  };
  // An attempt logs the user out first: one failure is enough to stop the others.
  const breaker = new CircuitBreaker(concurrency, report, 1);
  const containment = new Containment(emit);
  const forget = async (uid: string) =>
    containment.run('logouts of an erased user', () => logouts.forget(uid), undefined);
  runner.add(new ErasureExecution({ queue, attempt, breaker, pause, giveUpAfterMs, forget, emit }));
  const walk = (signal: AbortSignal | undefined) =>
    iterateUsers((page) => users.list({ page, perPage: PER_PAGE }, signal, 'walk'));
  const parts = { requests, control, storage, users: walk, durable, closing, emit };
  return { erasures: new DebateSpaceErasures(parts), register };
}
