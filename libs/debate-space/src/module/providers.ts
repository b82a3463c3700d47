import { HttpAdapterHost, ModulesContainer } from '@nestjs/core';
import { SessionEndWatcher } from '../session-end/watch-session-ends.js';
import { CircuitBreaker, JobRunner } from 'durable-jobs';
import { DebateSpaceErasures } from '../api/debate-space-erasures.js';
import { DebateSpaceEvents } from '../api/debate-space-events.js';
import { DebateSpaceHealth } from '../api/debate-space-health.js';
import { DebateSpaceOutbox } from '../api/debate-space-outbox.js';
import { DebateSpaceService } from '../api/debate-space.service.js';
import { faultEvents } from '../async/containment.js';
import { ErasureAttempt } from '../erasure/execution/erasure-attempt.js';
import { ErasureExecution } from '../erasure/execution/erasure-execution.js';
import { ErasureCalls } from '../erasure/execution/erasure-calls.js';
import { ErasureMaintenance } from '../erasure/queue/erasure-maintenance.js';
import { ErasureQueue } from '../erasure/queue/erasure-queue.js';
import { ErasureStorage } from '../erasure/queue/erasure-storage.js';
import { SessionRegistry } from '../live-sessions/session-registry.js';
import { LogoutRecorder } from '../logout/queue/logout-recorder.js';
import { FallbackQueue } from '../logout/queue/fallback-queue.js';
import { LogoutDelivery, serviceEvents, LogoutSender } from '../logout/delivery/logout-delivery.js';
import { LogoutQueue } from '../logout/queue/logout-queue.js';
import { LogoutTokenSigner } from '../logout/delivery/logout-token-signer.js';
import { AccessTokens, fetchToken } from '../service/calls/access-tokens.js';
import { backchannelLogoutUrl, LogoutRoute } from '../service/calls/logout-route.js';
import { RateLimiter, slotWaitMs, tryAcquireSlot } from '../service/rate-limiter.js';
import { ServiceClient } from '../service/calls/service-client.js';
import { ServicePause } from '../service/http/service-pause.js';
import { Transport } from '../service/http/transport.js';
import { UsersApi } from '../service/calls/users-api.js';
import { Application } from './application.js';
import { DebateSpaceLifecycle } from './debate-space.lifecycle.js';
import type { ResolvedOptions } from './resolve-options.js';
import { SessionWatch } from './session-watch.js';
import { Shutdown } from './shutdown.js';
import type { Abstract, FactoryProvider } from '@nestjs/common';
import { getDebateSpaceToken } from '../api/debate-space.tokens.js';

const service = [
  provide(ServicePause, [], ({ emit }) => new ServicePause(emit)),
  provide(Transport, [ServicePause], ({ options: { http } }, pause) => {
    return new Transport(http.timeoutMs, http.adapter, pause);
  }),
  provide(AccessTokens, [Transport], ({ options, shutdown: { signal } }, transport) => {
    return new AccessTokens((scope) => fetchToken(transport, options, options.http, scope, signal));
  }),
  provide(RateLimiter, [], ({ options, storage }) => {
    // What outlives a process may be shared by several.
    const { rateLimit } = options.http;
    if (!options.storage.durable) return new RateLimiter(rateLimit);
    return new RateLimiter(
      rateLimit,
      tryAcquireSlot.bind(undefined, storage),
      slotWaitMs.bind(undefined, storage),
    );
  }),
  provide(
    ServiceClient,
    [Transport, AccessTokens, RateLimiter],
    (application, transport, tokens, limiter) => {
      const shutdownSignal = application.shutdown.signal;
      return new ServiceClient({
        transport,
        tokens,
        limiter,
        shutdownSignal,
        policy: application.options.http,
      });
    },
  ),
  provide(UsersApi, [ServiceClient], ({ options: { users, baseUrl, apiKey } }, client) => {
    return new UsersApi(client, baseUrl, users.listAuth === 'apiKey' ? apiKey : undefined);
  }),
];

const logouts = [
  provide(LogoutTokenSigner, [], ({ options }) => {
    const { logout, secretKey, secretKeyEncoding, applicationName, apiKey } = options;
    const { issuer = applicationName, audience = apiKey.reveal() } = logout;
    return new LogoutTokenSigner({ ...logout, secretKey, secretKeyEncoding, issuer, audience });
  }),
  provide(LogoutRoute, [Transport], ({ options: { authUrl, applicationName } }, transport) => {
    return new LogoutRoute(transport, backchannelLogoutUrl(authUrl, applicationName));
  }),
  provide(LogoutSender, [LogoutTokenSigner, LogoutRoute], ({ options, shutdown, emit }, signer, route) => {
    return new LogoutSender(signer, route, options.http.timeoutMs, shutdown.signal, emit);
  }),
  provide(LogoutQueue, [], ({ options, storage, uids, emit }) => {
    const context = { uids, keepFinishedMs: options.logout.historyRetentionMs, emit };
    return new LogoutQueue(storage, options.storage, context);
  }),
  provide(FallbackQueue, [LogoutQueue], ({ options, emit }, queue) => {
    return new FallbackQueue(queue, options.logout.storageTimeoutMs, emit);
  }),
  provide(
    LogoutDelivery,
    [FallbackQueue, LogoutSender, ServicePause],
    (application, queue, sender, pause) => {
      const { emit, options } = application;
      const { concurrency, giveUpAfterMs } = options.logout;
      return new LogoutDelivery(
        queue,
        new CircuitBreaker(concurrency, serviceEvents(emit)),
        sender,
        giveUpAfterMs,
        emit,
        pause,
      );
    },
  ),
];

const erasures = [
  provide(ErasureStorage, [], ({ options, storage, uids, emit }) => {
    const overdueAfterMs = Math.min(...overdueAges(options));
    const erasures = new ErasureStorage(storage, { uids, overdueAfterMs, emit });
    const stop = erasures.onChange(() => {
      stop(); // the first erasure is requested
      if (!options.storage.durable) emit({ type: 'erasures-in-memory' });
    });
    return erasures;
  }),
  provide(ErasureMaintenance, [ErasureStorage], ({ options, emit }, storage) => {
    return new ErasureMaintenance(storage, overdueAges(options), options.erasure.receiptRetentionMs, emit);
  }),
  construct(ErasureQueue, ErasureStorage, ErasureMaintenance),
  provide(ErasureCalls, [UsersApi], ({ shutdown }, users) => new ErasureCalls(users, shutdown.signal)),
  provide(ErasureAttempt, [ErasureCalls, LogoutSender], ({ options, shutdown, emit }, calls, sender) => {
    const logouts = options.logout.mode === 'direct' ? sender : undefined;
    return new ErasureAttempt(calls, logouts, options.erasure.beforeErase, shutdown.signal, emit);
  }),
  provide(
    ErasureExecution,
    [ErasureQueue, ErasureAttempt, ServicePause, FallbackQueue],
    ({ options, emit }, ...parts) => new ErasureExecution(options.erasure, emit, ...parts),
  ),
];

/** Ages in ms at which an erasure is reported as overdue, ascending. */
function overdueAges({ erasure }: ResolvedOptions): readonly number[] {
  return [...erasure.overdueAfterMs, erasure.giveUpAfterMs].toSorted((one, other) => one - other);
}

const sessions = [
  provide(SessionRegistry, [], ({ storage, storageKeys }) => new SessionRegistry(storage, storageKeys)),
  provide(LogoutRecorder, [FallbackQueue], ({ emit }, logouts) => new LogoutRecorder(logouts, emit)),
  provide(
    SessionWatch,
    [LogoutRecorder, SessionRegistry],
    (application, ...parts) => new SessionWatch(application, ...parts),
  ),
  provide(SessionEndWatcher, [SessionWatch], (_, { watcher }) => watcher),
];

/** What a host injects. */
const api = [
  construct(DebateSpaceService, UsersApi, LogoutRecorder, LogoutRoute),
  provide(
    DebateSpaceErasures,
    [ErasureStorage, ErasureCalls, RateLimiter],
    ({ shutdown, emit }, storage, calls, limiter) =>
      new DebateSpaceErasures(storage, calls, limiter, shutdown.signal, emit),
  ),
  provide(DebateSpaceEvents, [], ({ events }) => new DebateSpaceEvents(events)),
  provide(
    DebateSpaceOutbox,
    [LogoutQueue, LogoutDelivery, JobRunner],
    ({ options, storage }, queue, { breaker, queue: logouts }, runner) => {
      const { warnings = [] } = storage;
      return new DebateSpaceOutbox({ queue, logouts, engine: options.storage, warnings, breaker, runner });
    },
  ),
  provide(
    DebateSpaceHealth,
    [DebateSpaceOutbox, ErasureStorage, ServicePause, JobRunner],
    ({ options: { worker }, format }, outbox, storage, pause, runner) =>
      new DebateSpaceHealth(outbox, storage, pause, format, worker ? runner : undefined),
  ),
];

/** The providers of one application, beside its `Application`. */
export const providers = [
  ...service,
  ...logouts,
  ...erasures,
  ...sessions,
  ...api,
  provide(JobRunner, [LogoutDelivery, ErasureExecution], ({ emit }, logouts, erasures) => {
    const runner = new JobRunner(faultEvents(emit));
    runner.add(logouts); // first
    runner.add(erasures);
    return runner;
  }),
  construct(
    Shutdown,
    ...([Application, LogoutRecorder, SessionWatch, JobRunner, FallbackQueue] as const),
    ...([DebateSpaceOutbox, ErasureStorage, Transport] as const),
  ),
  construct(
    DebateSpaceLifecycle,
    ...([Application, SessionWatch, JobRunner, Shutdown, LogoutTokenSigner, Transport] as const),
    ...([HttpAdapterHost, ModulesContainer] as const),
  ),
];

type Classes<Instances extends readonly unknown[]> = {
  readonly [N in keyof Instances]: Abstract<Instances[N]>;
};
/** @param name of the application */
type NamedProvider = (name: string | undefined) => FactoryProvider;

/**
 * A provider that its constructor makes of other providers. Classes are the tokens, except for what a module exports: it
 * has a token of its name, because `app.get(DebateSpaceService)` must not find that of a named application.
 */
function construct<T, Parts extends readonly unknown[]>(
  provided: Abstract<T> & (new (...parts: Parts) => T),
  ...parts: Classes<Parts>
): NamedProvider {
  return (name) => ({
    provide: getDebateSpaceToken(name, provided),
    inject: parts.map((part: Abstract<unknown>) => getDebateSpaceToken(name, part)),
    useFactory: (...made: Parts) => new provided(...made),
  });
}

/** A provider that `make` makes of the application and other providers. */
function provide<T, Parts extends readonly unknown[]>(
  provided: Abstract<T>,
  parts: Classes<Parts>,
  make: (application: Application, ...parts: Parts) => T,
): NamedProvider {
  return (name) => ({
    provide: getDebateSpaceToken(name, provided),
    inject: [Application, ...parts].map((part: Abstract<unknown>) => getDebateSpaceToken(name, part)),
    useFactory: make,
  });
}
