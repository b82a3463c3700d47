import { HttpAdapterHost } from '@nestjs/core';
import { SessionEndWatcher } from '../session-end/watch-session-ends.js';
import { DebateSpaceErasures } from '../api/debate-space-erasures.js';
import { DebateSpaceEvents } from '../api/debate-space-events.js';
import { DebateSpaceHealth } from '../api/debate-space-health.js';
import { DebateSpaceOutbox } from '../api/debate-space-outbox.js';
import { DebateSpaceService } from '../api/debate-space.service.js';
import { ErasureAttempt } from '../erasure/erasure-attempt.js';
import { ErasureCalls } from '../erasure/erasure-calls.js';
import { ErasureRepository } from '../erasure/erasure-repository.js';
import { ErasureWorker } from '../erasure/erasure-worker.js';
import { CircuitBreaker } from '../jobs/circuit-breaker.js';
import { LogoutDelivery, serviceEvents } from '../logout/logout-delivery.js';
import { LogoutQueues } from '../logout/logout-queues.js';
import { LogoutRecorder } from '../logout/logout-recorder.js';
import { LogoutRepository } from '../logout/logout-repository.js';
import { LogoutSender } from '../logout/logout-sender.js';
import { LogoutTokenSigner } from '../logout/logout-token-signer.js';
import { AccessTokens, fetchToken } from '../service/calls/access-tokens.js';
import { backchannelLogoutUrl, LogoutRoute } from '../service/calls/logout-route.js';
import { RateLimiter } from '../service/rate-limiter.js';
import { ServiceClient } from '../service/calls/service-client.js';
import { ServicePause } from '../service/http/service-pause.js';
import { Transport } from '../service/http/transport.js';
import { UsersApi } from '../service/calls/users-api.js';
import type { Storage } from '../storage/storage.js';
import { Application } from './application.js';
import { DebateSpaceLifecycle } from './debate-space.lifecycle.js';
import type { ResolvedOptions } from './resolve-options.js';
import { Runners } from './runners.js';
import { SessionWatch } from './session-watch.js';
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
  provide(RateLimiter, [], ({ options, storage, memory }) => {
    return new RateLimiter(options.http.rateLimit, storage, memory);
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
  provide(LogoutQueues, [], ({ options, storage, memory, uids }) => {
    const inside = (place: Storage) => new LogoutRepository(place, uids, options.logout.historyRetentionMs);
    return new LogoutQueues(inside(storage), memory && inside(memory));
  }),
  provide(LogoutDelivery, [LogoutSender, ServicePause], ({ emit, options, added }, sender, pause) => {
    const { concurrency, giveUpAfterMs } = options.logout;
    const breaker = new CircuitBreaker(concurrency, serviceEvents(emit));
    const onRetry = (): void => {
      added.next('logout');
    };
    return new LogoutDelivery({ breaker, sender, giveUpAfterMs, emit, onRetry, pause });
  }),
];

const erasures = [
  provide(ErasureRepository, [], ({ options, storage, uids, emit, added }) => {
    const repository = new ErasureRepository(storage, uids, Math.min(...overdueAges(options)));
    repository.onChange(() => {
      added.next('erasure');
    });
    if (options.storage.durable) return repository;
    const stop = repository.onChange(() => {
      stop(); // the first erasure is requested
      emit({ type: 'erasures-in-memory' });
    });
    return repository;
  }),
  provide(ErasureCalls, [UsersApi], ({ shutdown }, users) => new ErasureCalls(users, shutdown.signal)),
  provide(ErasureAttempt, [ErasureCalls, LogoutSender], ({ options, shutdown, emit }, calls, sender) => {
    const logouts = options.logout.mode === 'direct' ? sender : undefined;
    return new ErasureAttempt(calls, logouts, options.erasure.beforeErase, shutdown.signal, emit);
  }),
  provide(
    ErasureWorker,
    [ErasureRepository, ErasureAttempt, ServicePause, LogoutQueues],
    ({ options, emit }, ...parts) =>
      new ErasureWorker({ ...options.erasure, overdueAgesMs: overdueAges(options) }, emit, ...parts),
  ),
];

/** Ages in ms at which an erasure is reported as overdue, ascending. */
function overdueAges({ erasure }: ResolvedOptions): readonly number[] {
  return [...erasure.overdueAfterMs, erasure.giveUpAfterMs].toSorted((one, other) => one - other);
}

const sessions = [
  provide(LogoutRecorder, [LogoutQueues], ({ options, watch, emit, added }, queues) => {
    const { storageTimeoutMs } = options.logout;
    const onAdded = (): void => {
      added.next('logout');
    };
    return new LogoutRecorder({ queues, watch, storageTimeoutMs, emit, onAdded });
  }),
  provide(SessionWatch, [LogoutRecorder], (application, recorder) => new SessionWatch(application, recorder)),
  provide(SessionEndWatcher, [SessionWatch], (_, { watcher }) => watcher),
];

/** What a host injects. */
const api = [
  provide(
    DebateSpaceService,
    [UsersApi, LogoutRecorder, LogoutRoute],
    (_, ...parts) => new DebateSpaceService(...parts),
  ),
  provide(
    DebateSpaceErasures,
    [ErasureRepository, ErasureCalls, RateLimiter],
    ({ shutdown, emit }, repository, calls, pace) =>
      new DebateSpaceErasures({ repository, calls, pace, shutdownSignal: shutdown.signal, emit }),
  ),
  provide(DebateSpaceEvents, [], ({ events }) => new DebateSpaceEvents(events)),
  provide(
    DebateSpaceOutbox,
    [LogoutQueues, LogoutDelivery, Runners],
    ({ options, watch, opened: { warnings } }, queues, { breaker }, { stored: runner }) =>
      new DebateSpaceOutbox({ queues, watch, engine: options.storage, warnings, breaker, runner }),
  ),
  provide(
    DebateSpaceHealth,
    [DebateSpaceOutbox, ErasureRepository, ServicePause, Runners],
    ({ options, watch }, outbox, erasures, pause, { stored }) => {
      const runner = options.worker ? stored : undefined;
      return new DebateSpaceHealth({ outbox, erasures, pause, watch, runner });
    },
  ),
];

/** With the adapter's default type, where Nest has `any`. */
const ADAPTER_HOST: Abstract<HttpAdapterHost> = HttpAdapterHost;

/** The providers of one application, beside its `Application`. */
export const providers = [
  ...service,
  ...logouts,
  ...erasures,
  ...sessions,
  ...api,
  provide(
    Runners,
    [LogoutQueues, LogoutDelivery, ErasureWorker],
    (application, ...parts) => new Runners(application, ...parts),
  ),
  provide(
    DebateSpaceLifecycle,
    [LogoutRecorder, SessionWatch, Runners, LogoutTokenSigner, Transport, ADAPTER_HOST],
    (application, ...parts) => new DebateSpaceLifecycle(application, ...parts),
  ),
];

type Classes<Instances extends readonly unknown[]> = {
  readonly [N in keyof Instances]: Abstract<Instances[N]>;
};
/** @param name of the application */
type NamedProvider = (name: string | undefined) => FactoryProvider;

/**
 * A provider that `make` makes of the application and other providers. Classes are the tokens, except for what a module
 * exports: it has a token of its name, because `app.get(DebateSpaceService)` must not find that of a named application.
 */
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
