import { DebateSpaceErasures } from '../debate-space-erasures.js';
import type { Emit } from '../debate-space-event.js';
import type { Deliver, Dispatcher } from '../outbox/dispatcher.js';
import type { OutboxContext } from '../outbox/outbox.js';
import type { OutboxWithSpare } from '../outbox/outbox-with-spare.js';
import { CircuitBreaker } from '../outbox/circuit-breaker.js';
import { withLinkedSignal } from '../linked-signal.js';
import type { ServicePause } from '../remote/service-pause.js';
import type { DebateSpaceStorage } from '../storage/storage.js';
import type { UsersApi } from '../remote/users-api.js';
import { iterateUsers } from '../remote/paginate-users.js';
import type { ResolvedOptions } from '../resolve-options.js';
import { ErasureAttempt } from './erasure-attempt.js';
import { ErasureControl } from './erasure-control.js';
import { ErasureDispatcher } from './erasure-dispatcher.js';
import { ErasureHealth } from './erasure-health.js';
import { ErasureMaintenance } from './erasure-maintenance.js';
import { ErasureQueue } from './erasure-queue.js';
import { ErasureReceipts } from './erasure-receipts.js';
import { ErasureRequests } from './erasure-requests.js';
import { ErasureStorage } from './erasure-storage.js';
import { ServicePresence } from './service-presence.js';
import { forgetUser } from './forget-user.js';

export interface ErasuresAround {
  readonly storage: DebateSpaceStorage;
  readonly outbox: OutboxWithSpare;
  readonly context: OutboxContext;
  readonly options: ResolvedOptions;
  readonly users: UsersApi;
  /** The same with one request for each call, for work that can wait. */
  readonly once: UsersApi;
  /** Aborted when the app shuts down. */
  readonly closing: AbortSignal;
  readonly logOut: Deliver;
  readonly logouts: Dispatcher;
  readonly pause: ServicePause;
  readonly emit: Emit;
}

export interface OpenErasures {
  readonly erasures: DebateSpaceErasures;
  readonly dispatcher: ErasureDispatcher;
  readonly health: ErasureHealth;
}

const PER_PAGE = 100;

/** The erasures of one application, put together. */
export function openErasures(around: ErasuresAround): OpenErasures {
  const { outbox, context, options, users, once, closing, logOut, logouts, pause, emit } = around;
  const { erasure, http, logout } = options;
  const storage = new ErasureStorage(around.storage, context.uids);
  const { concurrency, giveUpAfterMs, receiptRetentionMs, beforeErase } = erasure;
  const agesMs = [...erasure.overdueAfterMs, giveUpAfterMs].toSorted((one, other) => one - other);
  const [overdueAfterMs = giveUpAfterMs] = agesMs;
  const requests = new ErasureRequests(storage, overdueAfterMs);
  const { register } = requests;
  const control = new ErasureControl(storage, register);
  const receipts = new ErasureReceipts(storage);
  const maintenance = new ErasureMaintenance(storage, { overdueAfterMs: agesMs, receiptRetentionMs }, emit);
  // Time for the request, and for a place in the rate limit, which may be full of the calls of others.
  const eraseMs = 2 * http.totalTimeoutMs + 2 * (http.rateLimit === false ? 0 : http.rateLimit.perMs);
  const presence = new ServicePresence(() => once.list({ perPage: 1 }, closing, eraseMs));
  const attempt = new ErasureAttempt({
    beforeErase,
    logOut: logout.mode === 'direct' ? logOut : undefined,
    erase: (uid, mode, mayStillBeSent) =>
      withLinkedSignal([closing], eraseMs, ({ signal }) =>
        once.eraseKnownOrNot(uid, mode, mayStillBeSent, eraseMs, signal),
      ),
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
  const dispatcher = new ErasureDispatcher(
    {
      queue: new ErasureQueue(storage, maintenance),
      attempt,
      breaker,
      pause,
      logoutsWait: () => logouts.busy(),
      forget: (uid) => forgetUser(outbox, uid, emit),
      emit,
    },
    { giveUpAfterMs },
  );
  const walk = (signal: AbortSignal | undefined) =>
    iterateUsers((page) => users.list({ page, perPage: PER_PAGE }, signal, Infinity));
  const { durable } = outbox;
  const parts = { requests, control, receipts, storage, users: walk, durable, closing, emit };
  const health = new ErasureHealth(register, storage);
  return { erasures: new DebateSpaceErasures(parts), dispatcher, health };
}
