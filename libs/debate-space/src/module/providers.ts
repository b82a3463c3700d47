import type { Abstract, FactoryProvider } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { DebateSpaceErasures } from '../api/debate-space-erasures.js';
import { DebateSpaceEvents } from '../api/debate-space-events.js';
import { DebateSpaceHealth } from '../api/debate-space-health.js';
import { DebateSpaceOutbox } from '../api/debate-space-outbox.js';
import { DebateSpaceService } from '../api/debate-space.service.js';
import { EXPORTED, getDebateSpaceToken } from '../api/debate-space.tokens.js';
import { ErasureAttempt } from '../erasure/erasure-attempt.js';
import { ErasureRepository } from '../erasure/erasure-repository.js';
import { ErasureWorker } from '../erasure/erasure-worker.js';
import { CircuitBreaker } from '../jobs/circuit-breaker.js';
import { LogoutDelivery, serviceEvents } from '../logout/logout-delivery.js';
import { Logouts } from '../logout/logouts.js';
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
import { DebateSpaceLifecycle, Workers } from './debate-space.lifecycle.js';
import { SessionWatch } from './session-watch.js';

const PARTS = 'debate-space:parts';

/**
 * The providers of one application except its `Application`: the classes that send, which a test of the host may replace, and
 * the classes that a host injects. Exported classes have tokens with the name of the application, because
 * `app.get(DebateSpaceService)` must not find the service of a named application.
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

/** Builds an application, from the calls to the service up to the classes that a host injects. */
function assemble(
  application: Application,
  pause: ServicePause,
  transport: Transport,
  tokens: AccessTokens,
  route: LogoutRoute,
  adapterHost: HttpAdapterHost,
) {
  const { options, storage, memory, keyring, emit, watch } = application;
  const { http, logout, erasure, applicationName, apiKey, baseUrl, secretKey, secretKeyEncoding } = options;
  const shutdownSignal = application.shutdown.signal;
  const isGuest = options.storage.guest !== undefined;

  const limiter = new RateLimiter(http.rateLimit, storage, memory);
  const client = new ServiceClient({ transport, tokens, limiter, policy: http, shutdownSignal });
  const users = new UsersApi(client, baseUrl, options.users.listAuth === 'apiKey' ? apiKey : undefined);

  const { issuer = applicationName, audience = apiKey.reveal(), giveUpAfterMs } = logout;
  const signer = new LogoutTokenSigner({ ...logout, secretKey, secretKeyEncoding, issuer, audience });
  const sender = new LogoutSender(signer, route, http.timeoutMs, shutdownSignal, emit);
  const breaker = new CircuitBreaker(logout.concurrency, serviceEvents(emit));
  const parts = { breaker, sender, giveUpAfterMs, isGuest, emit, pause };
  const logoutsIn = (place: Storage) => {
    const repository = new LogoutRepository(place, keyring, logout.historyRetentionMs);
    return { repository, delivery: new LogoutDelivery(place, repository, parts) };
  };
  const [stored, inMemory] = [logoutsIn(storage), memory && logoutsIn(memory)];
  const logouts = new Logouts(stored.repository, inMemory?.repository);

  const overdueAgesMs = [...erasure.overdueAfterMs, erasure.giveUpAfterMs].toSorted((a, b) => a - b);
  const repository = new ErasureRepository(storage, keyring, emit, Math.min(...overdueAgesMs));
  if (!options.storage.durable) {
    const stop = repository.onChange(() => {
      stop(); // the first erasure is requested
      emit({ type: 'erasures-in-memory' });
    });
  }
  const logoutBefore = logout.mode === 'direct' ? sender : undefined;
  const { beforeErase } = erasure;
  const attempt = new ErasureAttempt(repository, users, logoutBefore, beforeErase, shutdownSignal, emit);
  const erasureOptions = { ...erasure, overdueAgesMs, isGuest, only: options.storage.guest?.reference };
  const worker = new ErasureWorker(storage, erasureOptions, emit, repository, attempt, pause, logouts);

  const delivery = { stored: stored.delivery, memory: inMemory?.delivery };
  const workers = new Workers(application, delivery, worker);
  repository.onChange(workers.erasures.wake.bind(workers.erasures));
  const sessions = new SessionWatch(application, { logouts, lanes: workers });
  const { opened } = application;
  const engine = options.storage;
  const outbox = new DebateSpaceOutbox({ engine, opened, watch, logouts, breaker, workers });
  return {
    lifecycle: new DebateSpaceLifecycle(
      { application, sessions, logouts, workers, transport },
      signer,
      adapterHost,
    ),
    DebateSpaceService: new DebateSpaceService(users, sessions.recorder, route),
    DebateSpaceErasures: new DebateSpaceErasures({ repository, users, pace: limiter, shutdownSignal, emit }),
    DebateSpaceEvents: new DebateSpaceEvents(application.events),
    DebateSpaceOutbox: outbox,
    DebateSpaceHealth: new DebateSpaceHealth({ outbox, erasures: repository, pause, watch, workers }),
    SessionEndWatcher: sessions.watcher,
  } satisfies Record<keyof typeof EXPORTED | 'lifecycle', object>;
}
