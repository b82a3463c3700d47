import type { Abstract, FactoryProvider } from '@nestjs/common';
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
import type { SessionIndexing } from '../session-end/expiry/registry-writer.js';
import { SessionRegistry } from '../session-end/expiry/session-registry.js';
import { SessionEndDetector } from '../session-end/session-end-detector.js';
import { EndRecorder } from '../session-end/verdict/end-recorder.js';
import { Application } from './application.js';
import type { ResolvedOptions } from './resolve-options.js';

/** A provider that is made of others: their classes are the tokens, in the order of the parameters of `make`. */
function provide<T, Dependencies extends readonly unknown[]>(
  provided: Abstract<T>,
  inject: { readonly [N in keyof Dependencies]: Abstract<Dependencies[N]> },
  make: (...dependencies: Dependencies) => T,
): FactoryProvider<T> {
  return { provide: provided, inject: [...inject], useFactory: make };
}

const ofService = [
  provide(ServicePause, [Application], ({ emit }) => new ServicePause(emit)),
  provide(
    Transport,
    [Application, ServicePause],
    ({ options: { http } }, pause) => new Transport(http.timeoutMs, http.adapter, pause),
  ),
  provide(
    AccessTokens,
    [Application, Transport],
    ({ options, shutdownSignal }, transport) =>
      new AccessTokens((scope) => fetchToken(transport, options, options.http, scope, shutdownSignal)),
  ),
  // What outlives a process may be shared by several.
  provide(RateLimiter, [Application], ({ options, storage }) => {
    const shared = options.storage.durable ? tryAcquireSlot.bind(undefined, storage) : undefined;
    return new RateLimiter(options.http.rateLimit, shared);
  }),
  provide(
    ServiceClient,
    [Application, Transport, AccessTokens, RateLimiter],
    ({ options, shutdownSignal }, transport, tokens, limiter) =>
      new ServiceClient({ transport, tokens, closing: shutdownSignal, limiter, policy: options.http }),
  ),
  provide(UsersApi, [Application, ServiceClient], ({ options: { users, baseUrl, apiKey } }, client) => {
    return new UsersApi(client, baseUrl, users.listAuth === 'apiKey' ? apiKey : undefined);
  }),
];

const ofLogouts = [
  provide(LogoutTokenSigner, [Application], ({ options }) => {
    const { logout, secretKey, secretKeyEncoding, applicationName, apiKey } = options;
    const { issuer = applicationName, audience = apiKey.reveal() } = logout;
    return new LogoutTokenSigner({ ...logout, secretKey, secretKeyEncoding, issuer, audience });
  }),
  provide(
    LogoutRoute,
    [Application, Transport],
    ({ options: { authUrl, applicationName } }, transport) =>
      new LogoutRoute(transport, backchannelLogoutUrl(authUrl, applicationName)),
  ),
  provide(
    LogoutSender,
    [Application, LogoutTokenSigner, LogoutRoute],
    ({ options, shutdownSignal, emit }, signer, route) =>
      new LogoutSender(signer, route, options.http.timeoutMs, shutdownSignal, emit),
  ),
  provide(LogoutQueue, [Application], ({ options, storage, uids }) => {
    const context = { uids, keepFinishedMs: options.logout.historyRetentionMs };
    return new LogoutQueue(storage, options.storage, context);
  }),
  provide(
    FallbackQueue,
    [Application, LogoutQueue],
    ({ options, emit }, queue) => new FallbackQueue(queue, options.logout.storageTimeoutMs, emit),
  ),
  provide(
    LogoutDelivery,
    [Application, FallbackQueue, LogoutSender, ServicePause],
    ({ options: { logout }, emit }, queue, sender, pause) => {
      const breaker = new CircuitBreaker(logout.concurrency, emit);
      return new LogoutDelivery(queue, breaker, sender, logout.giveUpAfterMs, emit, pause);
    },
  ),
];

const ofErasures = [
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
    const { receiptRetentionMs } = options.erasure;
    return new ErasureMaintenance(storage, overdueAges(options), receiptRetentionMs, emit);
  }),
  provide(
    ErasureQueue,
    [ErasureStorage, ErasureMaintenance],
    (storage, maintenance) => new ErasureQueue(storage, maintenance),
  ),
  provide(
    ErasureCalls,
    [Application, UsersApi],
    ({ shutdownSignal }, users) => new ErasureCalls(users, shutdownSignal),
  ),
  provide(
    ErasureAttempt,
    [Application, ErasureCalls, LogoutSender],
    ({ options, shutdownSignal, emit }, calls, sender) => {
      const logouts = options.logout.mode === 'direct' ? sender : undefined;
      return new ErasureAttempt(calls, logouts, options.erasure.beforeErase, shutdownSignal, emit);
    },
  ),
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

const ofSessions = [
  provide(
    SessionRegistry,
    [Application],
    ({ storage, storageKeys }) => new SessionRegistry(storage, storageKeys),
  ),
  provide(
    EndRecorder,
    [Application, FallbackQueue],
    ({ options, hashKey, emit }, logouts) => new EndRecorder(logouts, hashKey, emit, options.logout),
  ),
  provide(
    SessionEndDetector,
    [Application, EndRecorder, SessionRegistry],
    ({ options, emit }, recorder, registry) => {
      const indexing = sessionIndexing(options, registry);
      return new SessionEndDetector(recorder, { ...options.session, indexing }, emit);
    },
  ),
];

function sessionIndexing(
  { logout, session: { policy, expiry } }: ResolvedOptions,
  registry: SessionRegistry,
): SessionIndexing | undefined {
  const isNeeded = logout.mode === 'direct' && (policy === 'last' || expiry !== false);
  const sweepMs = expiry === false ? undefined : expiry.sweepMs;
  return isNeeded ? { registry, lastOnly: policy === 'last', sweepMs } : undefined;
}

/** What a host injects. */
const api = [
  provide(
    DebateSpaceService,
    [UsersApi, EndRecorder, LogoutRoute],
    (users, recorder, route) => new DebateSpaceService(users, recorder, route.url),
  ),
  provide(
    DebateSpaceErasures,
    [Application, ErasureStorage, ErasureCalls],
    ({ shutdownSignal, emit }, storage, calls) =>
      new DebateSpaceErasures(storage, calls, shutdownSignal, emit),
  ),
  provide(DebateSpaceEvents, [Application], ({ events }) => new DebateSpaceEvents(events)),
  provide(
    DebateSpaceOutbox,
    [Application, LogoutQueue, FallbackQueue, LogoutDelivery],
    ({ options, storage: { warnings = [] } }, queue, logouts, { breaker }) =>
      new DebateSpaceOutbox({ queue, logouts, engine: options.storage, warnings, breaker }),
  ),
  provide(
    DebateSpaceHealth,
    [DebateSpaceOutbox, ErasureStorage, ServicePause],
    (outbox, erasures, pause) => new DebateSpaceHealth(outbox, erasures, pause),
  ),
];

/** All classes of one application, each under itself. `Application` and the lifecycle come with the module. */
export const providers: readonly FactoryProvider[] = [
  ...ofService,
  ...ofLogouts,
  ...ofErasures,
  ...ofSessions,
  ...api,
  // Logouts go first.
  provide(JobRunner, [Application, LogoutDelivery, ErasureExecution], ({ emit }, logouts, erasures) => {
    const runner = new JobRunner(emit);
    runner.add(logouts);
    runner.add(erasures);
    return runner;
  }),
];
