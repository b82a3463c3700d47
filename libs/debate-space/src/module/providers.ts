import type { Abstract, FactoryProvider } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { DebateSpaceErasures } from '../api/debate-space-erasures.js';
import { DebateSpaceEvents } from '../api/debate-space-events.js';
import { DebateSpaceHealth } from '../api/debate-space-health.js';
import { DebateSpaceOutbox } from '../api/debate-space-outbox.js';
import { DebateSpaceService } from '../api/debate-space.service.js';
import { EXPORTED, getDebateSpaceToken } from '../api/debate-space.tokens.js';
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
import { ServiceClient } from '../service/calls/service-client.js';
import { UsersApi } from '../service/calls/users-api.js';
import { ServicePause } from '../service/http/service-pause.js';
import { Transport } from '../service/http/transport.js';
import { RateLimiter } from '../service/rate-limiter.js';
import type { Storage } from '../storage/storage.js';
import { Application } from './application.js';
import { DebateSpaceLifecycle } from './debate-space.lifecycle.js';
import { Runners } from './runners.js';
import { SessionWatch } from './session-watch.js';

const PARTS = 'debate-space:parts';

/**
 * The providers of one application, beside its `Application`: what sends, which a host's test may replace, and what a host
 * injects. Classes are the tokens, except for what a module exports: it has a token of its name, because
 * `app.get(DebateSpaceService)` must not find that of a named application.
 */
export function providersOf(name: string | undefined): FactoryProvider[] {
  return [
    {
      provide: ServicePause,
      inject: [Application],
      useFactory: ({ emit }: Application) => new ServicePause(emit),
    },
    {
      provide: Transport,
      inject: [Application, ServicePause],
      useFactory: ({ options: { http } }: Application, pause: ServicePause) =>
        new Transport(http.timeoutMs, http.adapter, pause),
    },
    {
      provide: AccessTokens,
      inject: [Application, Transport],
      useFactory: ({ options, shutdown: { signal } }: Application, transport: Transport) =>
        new AccessTokens((scope) => fetchToken(transport, options, options.http, scope, signal)),
    },
    {
      provide: LogoutRoute,
      inject: [Application, Transport],
      useFactory: ({ options: { authUrl, applicationName } }: Application, transport: Transport) =>
        new LogoutRoute(transport, backchannelLogoutUrl(authUrl, applicationName)),
    },
    {
      provide: PARTS,
      inject: [Application, ServicePause, Transport, AccessTokens, LogoutRoute, HttpAdapterHost],
      useFactory: assemble,
    },
    { provide: DebateSpaceLifecycle, inject: [PARTS], useFactory: ({ lifecycle }: Parts) => lifecycle },
    ...Object.entries<Abstract<unknown>>(EXPORTED).map(([key, exported]) => ({
      provide: getDebateSpaceToken(name, exported),
      inject: [PARTS],
      useFactory: (parts: Parts) => parts[key as keyof Parts],
    })),
  ];
}

type Parts = ReturnType<typeof assemble>;

/** Builds an application, from the calls to the service up to what a host injects. */
function assemble(
  application: Application,
  pause: ServicePause,
  transport: Transport,
  tokens: AccessTokens,
  route: LogoutRoute,
  adapterHost: HttpAdapterHost,
) {
  const { options, storage, memory, keyring, emit, added, watch } = application;
  const { http, logout, erasure, applicationName, apiKey, baseUrl, secretKey, secretKeyEncoding } = options;
  const shutdownSignal = application.shutdown.signal;

  const limiter = new RateLimiter(http.rateLimit, storage, memory);
  const client = new ServiceClient({ transport, tokens, limiter, policy: http, shutdownSignal });
  const users = new UsersApi(client, baseUrl, options.users.listAuth === 'apiKey' ? apiKey : undefined);

  const { issuer = applicationName, audience = apiKey.reveal(), storageTimeoutMs, giveUpAfterMs } = logout;
  const signer = new LogoutTokenSigner({ ...logout, secretKey, secretKeyEncoding, issuer, audience });
  const sender = new LogoutSender(signer, route, http.timeoutMs, shutdownSignal, emit);
  const logoutsIn = (place: Storage) => new LogoutRepository(place, keyring, logout.historyRetentionMs);
  const queues = new LogoutQueues(logoutsIn(storage), memory && logoutsIn(memory));
  const breaker = new CircuitBreaker(logout.concurrency, serviceEvents(emit));
  const onAdded = added.next.bind(added, 'logout');
  const delivery = new LogoutDelivery({ breaker, sender, giveUpAfterMs, emit, onRetry: onAdded, pause });

  const overdueAgesMs = [...erasure.overdueAfterMs, erasure.giveUpAfterMs].toSorted((a, b) => a - b);
  const repository = new ErasureRepository(storage, keyring, emit, Math.min(...overdueAgesMs));
  repository.onChange(added.next.bind(added, 'erasure'));
  if (!options.storage.durable) {
    const stop = repository.onChange(() => {
      stop(); // the first erasure is requested
      emit({ type: 'erasures-in-memory' });
    });
  }
  const calls = new ErasureCalls(users, shutdownSignal);
  const logoutBefore = logout.mode === 'direct' ? sender : undefined;
  const attempt = new ErasureAttempt(calls, logoutBefore, erasure.beforeErase, shutdownSignal, emit);
  const worker = new ErasureWorker({ ...erasure, overdueAgesMs }, emit, repository, attempt, pause, queues);

  const recorder = new LogoutRecorder({ queues, watch, storageTimeoutMs, emit, onAdded });
  const sessions = new SessionWatch(application, recorder);
  const runners = new Runners(application, queues, delivery, worker);
  const runner = runners.stored;
  const { warnings } = application.opened;
  const outbox = new DebateSpaceOutbox({ queues, watch, engine: options.storage, warnings, breaker, runner });
  return {
    lifecycle: new DebateSpaceLifecycle(
      { application, recorder, sessions, runners, transport },
      signer,
      adapterHost,
    ),
    DebateSpaceService: new DebateSpaceService(users, recorder, route),
    DebateSpaceErasures: new DebateSpaceErasures({ repository, calls, pace: limiter, shutdownSignal, emit }),
    DebateSpaceEvents: new DebateSpaceEvents(application.events),
    DebateSpaceOutbox: outbox,
    DebateSpaceHealth: new DebateSpaceHealth({
      outbox,
      erasures: repository,
      pause,
      watch,
      runner: options.worker ? runner : undefined,
    }),
    SessionEndWatcher: sessions.watcher,
  } satisfies Record<keyof typeof EXPORTED | 'lifecycle', object>;
}
