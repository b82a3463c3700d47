import { HttpAdapterHost, ModulesContainer } from '@nestjs/core';
import { Containment } from '../async/containment.js';
import { DebateSpaceErasures } from '../api/debate-space-erasures.js';
import { DebateSpaceEvents } from '../api/debate-space-events.js';
import { DebateSpaceHealth } from '../api/debate-space-health.js';
import { DebateSpaceOutbox } from '../api/debate-space-outbox.js';
import { DebateSpaceService } from '../api/debate-space.service.js';
import { ErasureAttempt } from '../erasure/erasure-attempt.js';
import { ErasureCalls } from '../erasure/erasure-calls.js';
import { ErasureExecution } from '../erasure/erasure-execution.js';
import { ErasureMaintenance } from '../erasure/erasure-maintenance.js';
import { ErasureQueue } from '../erasure/erasure-queue.js';
import { ErasureStorage } from '../erasure/erasure-storage.js';
import type { Emit } from '../events.js';
import { CircuitBreaker } from '../jobs/circuit-breaker.js';
import { JobRunner } from '../jobs/job-runner.js';
import { FallbackQueue } from '../logout/fallback-queue.js';
import { LogoutDelivery } from '../logout/logout-delivery.js';
import { LogoutQueue } from '../logout/logout-queue.js';
import { LogoutSender } from '../logout/logout-sender.js';
import { LogoutTokenSigner } from '../logout/logout-token-signer.js';
import { AccessTokens, fetchToken } from '../service/access-tokens.js';
import { backchannelLogoutUrl, LogoutRoute } from '../service/logout-route.js';
import { RateLimiter } from '../service/rate-limiter.js';
import { ServiceClient } from '../service/service-client.js';
import { ServicePause } from '../service/service-pause.js';
import { tryAcquireSlot } from '../service/shared-slots.js';
import { Transport } from '../service/transport.js';
import { UsersApi } from '../service/users-api.js';
import { SessionRegistry } from '../session-end/expiry/session-registry.js';
import { SessionEndDetector } from '../session-end/session-end-detector.js';
import { EndRecorder } from '../session-end/verdict/end-recorder.js';
import { Application } from './application.js';
import { DebateSpaceLifecycle } from './debate-space.lifecycle.js';
import { construct, provide } from './provide.js';
import type { ResolvedOptions } from './resolve-options.js';
import { Shutdown } from './shutdown.js';

const service = [
  provide(ServicePause, [Application], ({ emit }) => new ServicePause(emit)),
  provide(Transport, [Application, ServicePause], ({ options: { http } }, pause) => {
    return new Transport(http.timeoutMs, http.adapter, pause);
  }),
  provide(AccessTokens, [Application, Transport], ({ options, shutdown: { signal } }, transport) => {
    return new AccessTokens((scope) => fetchToken(transport, options, options.http, scope, signal));
  }),
  provide(RateLimiter, [Application], ({ options, storage }) => {
    // What outlives a process may be shared by several.
    const shared = options.storage.durable ? tryAcquireSlot.bind(undefined, storage) : undefined;
    return new RateLimiter(options.http.rateLimit, shared);
  }),
  provide(ServiceClient, [Application, Transport, AccessTokens, RateLimiter], (application, ...parts) => {
    const [transport, tokens, limiter] = parts;
    const {
      options: { http: policy },
      shutdown,
    } = application;
    return new ServiceClient({ transport, tokens, limiter, policy, closing: shutdown.signal });
  }),
  provide(UsersApi, [Application, ServiceClient], ({ options: { users, baseUrl, apiKey } }, client) => {
    return new UsersApi(client, baseUrl, users.listAuth === 'apiKey' ? apiKey : undefined);
  }),
];

const logouts = [
  provide(LogoutTokenSigner, [Application], ({ options }) => {
    const { logout, secretKey, secretKeyEncoding, applicationName, apiKey } = options;
    const { issuer = applicationName, audience = apiKey.reveal() } = logout;
    return new LogoutTokenSigner({ ...logout, secretKey, secretKeyEncoding, issuer, audience });
  }),
  provide(LogoutRoute, [Application, Transport], ({ options: { authUrl, applicationName } }, transport) => {
    return new LogoutRoute(transport, backchannelLogoutUrl(authUrl, applicationName));
  }),
  provide(LogoutSender, [Application, LogoutTokenSigner, LogoutRoute], (application, signer, route) => {
    const { options, shutdown, emit } = application;
    return new LogoutSender(signer, route, options.http.timeoutMs, shutdown.signal, emit);
  }),
  provide(LogoutQueue, [Application], ({ options, storage, uids }) => {
    const context = { uids, keepFinishedMs: options.logout.historyRetentionMs };
    return new LogoutQueue(storage, options.storage, context);
  }),
  provide(FallbackQueue, [Application, LogoutQueue], ({ options, emit }, queue) => {
    return new FallbackQueue(queue, options.logout.storageTimeoutMs, emit);
  }),
  provide(
    LogoutDelivery,
    [Application, FallbackQueue, LogoutSender, ServicePause],
    (application, ...parts) => {
      const {
        options: { logout },
        emit,
      } = application;
      const [queue, sender, pause] = parts;
      const breaker = new CircuitBreaker(logout.concurrency, emit);
      return new LogoutDelivery(queue, breaker, sender, logout.giveUpAfterMs, emit, pause);
    },
  ),
];

const erasures = [
  provide(ErasureStorage, [Application], ({ options, storage, uids, emit }) => {
    const erasures = new ErasureStorage(storage, uids, overdueAges(options)[0] ?? 0);
    if (options.storage.durable) return erasures;
    const stop = erasures.onChange(() => {
      stop(); // the first erasure is requested
      emit({ type: 'erasures-in-memory' });
    });
    return erasures;
  }),
  provide(ErasureMaintenance, [Application, ErasureStorage], ({ options, emit }, storage) => {
    return new ErasureMaintenance(storage, overdueAges(options), options.erasure.receiptRetentionMs, emit);
  }),
  construct(ErasureQueue, ErasureStorage, ErasureMaintenance),
  provide(ErasureCalls, [Application, UsersApi], ({ shutdown }, users) => {
    return new ErasureCalls(users, shutdown.signal);
  }),
  provide(ErasureAttempt, [Application, ErasureCalls, LogoutSender], (application, calls, sender) => {
    const {
      options: { logout, erasure },
      shutdown,
      emit,
    } = application;
    const logouts = logout.mode === 'direct' ? sender : undefined;
    return new ErasureAttempt(calls, logouts, erasure.beforeErase, shutdown.signal, emit);
  }),
  provide(
    ErasureExecution,
    [Application, ErasureQueue, ErasureAttempt, ServicePause, FallbackQueue],
    ({ options: { erasure }, emit }, queue, attempt, pause, logouts) => {
      // An attempt logs the user out first: one failure is enough to stop the others.
      const breaker = new CircuitBreaker(erasure.concurrency, asErasureEvents(emit), 1);
      const containment = new Containment(emit);
      const forget = async (uid: string) =>
        containment.run('logouts of an erased user', () => logouts.forget(uid), undefined);
      return new ErasureExecution(queue, breaker, attempt, pause, erasure.giveUpAfterMs, forget, emit);
    },
  ),
];

/** Ages in ms at which an erasure is reported as overdue, ascending. */
function overdueAges({ erasure }: ResolvedOptions): readonly number[] {
  return [...erasure.overdueAfterMs, erasure.giveUpAfterMs].toSorted((one, other) => one - other);
}

function asErasureEvents(emit: Emit): Emit {
  return (event) => {
    if (event.type === 'service-down') emit({ type: 'erasure-service-down', cause: event.cause });
    if (event.type === 'service-up') emit({ type: 'erasure-service-up' });
  };
}

const sessions = [
  provide(SessionRegistry, [Application], ({ storage, storageKeys }) => {
    return new SessionRegistry(storage, storageKeys);
  }),
  provide(EndRecorder, [Application, FallbackQueue], ({ options, hashKey, emit }, logouts) => {
    return new EndRecorder(logouts, hashKey, emit, options.logout);
  }),
  provide(
    SessionEndDetector,
    [Application, EndRecorder, SessionRegistry],
    (application, recorder, registry) => {
      const {
        options: { logout, session },
        emit,
      } = application;
      const { policy, expiry } = session;
      const isIndexed = logout.mode === 'direct' && (policy === 'last' || expiry !== false);
      const sweepMs = expiry === false ? undefined : expiry.sweepMs;
      const indexing = isIndexed ? { registry, lastOnly: policy === 'last', sweepMs } : undefined;
      return new SessionEndDetector(recorder, { ...session, indexing }, emit);
    },
  ),
];

/** What a host injects. */
const api = [
  construct(DebateSpaceService, UsersApi, EndRecorder, LogoutRoute),
  provide(DebateSpaceErasures, [Application, ErasureStorage, ErasureCalls], (application, storage, calls) => {
    return new DebateSpaceErasures(storage, calls, application.shutdown.signal, application.emit);
  }),
  provide(DebateSpaceEvents, [Application], ({ events }) => new DebateSpaceEvents(events)),
  provide(
    DebateSpaceOutbox,
    [Application, LogoutQueue, LogoutDelivery],
    ({ options, storage }, queue, delivery) => {
      const { breaker, queue: logouts } = delivery;
      const { storage: engine } = options;
      return new DebateSpaceOutbox({ queue, logouts, engine, warnings: storage.warnings ?? [], breaker });
    },
  ),
  construct(DebateSpaceHealth, DebateSpaceOutbox, ErasureStorage, ServicePause),
];

/** The providers of one application, beside its `Application`. */
export const providers = [
  ...service,
  ...logouts,
  ...erasures,
  ...sessions,
  ...api,
  provide(JobRunner, [Application, LogoutDelivery, ErasureExecution], ({ emit }, logouts, erasures) => {
    const runner = new JobRunner(emit);
    runner.add(logouts); // first
    runner.add(erasures);
    return runner;
  }),
  construct(
    Shutdown,
    ...([Application, EndRecorder, SessionEndDetector, JobRunner, FallbackQueue] as const),
    ...([DebateSpaceOutbox, ErasureStorage, Transport, SessionRegistry] as const),
  ),
  construct(
    DebateSpaceLifecycle,
    ...([Application, SessionEndDetector, JobRunner, Shutdown, LogoutTokenSigner] as const),
    ...([HttpAdapterHost, ModulesContainer] as const),
  ),
];
