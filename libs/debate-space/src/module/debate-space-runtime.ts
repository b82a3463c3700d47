import { setMaxListeners } from 'node:events';
import { Subject } from 'rxjs';
import { KeyProblem } from '../secrets/asked-key.js';
import { Containment } from '../async/containment.js';
import type { DebateSpaceEvent } from '../events.js';
import type { DebateSpaceErasures } from '../api/debate-space-erasures.js';
import { DebateSpaceEvents } from '../api/debate-space-events.js';
import { DebateSpaceHealth } from '../api/debate-space-health.js';
import { DebateSpaceOutbox } from '../api/debate-space-outbox.js';
import { DebateSpaceService } from '../api/debate-space.service.js';
import type { ErasureStorage } from '../erasure/erasure-storage.js';
import { openErasures } from './open-erasures.js';
import { withTimeout } from '../async/with-timeout.js';
import { LogoutTokenSigner } from '../logout/logout-token-signer.js';
import { CircuitBreaker } from '../jobs/circuit-breaker.js';
import { JobRunner } from '../jobs/job-runner.js';
import { FallbackQueue } from '../logout/fallback-queue.js';
import { LogoutDelivery } from '../logout/logout-delivery.js';
import { LogoutQueue } from '../logout/logout-queue.js';
import { LogoutSender } from '../logout/logout-sender.js';
import { slotWaitMs, tryAcquireSlot } from '../service/shared-slots.js';
import { namespaceOf, openStorage } from './open-storage.js';
import { AccessTokens, fetchToken } from '../service/access-tokens.js';
import { backchannelLogoutUrl, LogoutRoute } from '../service/logout-route.js';
import { RateLimiter } from '../service/rate-limiter.js';
import { ServiceClient } from '../service/service-client.js';
import { ServicePause } from '../service/service-pause.js';
import { Transport } from '../service/transport.js';
import { UsersApi } from '../service/users-api.js';
import type { ResolvedOptions } from './resolve-options.js';
import type { KeySource, Secret } from '../secrets/secret.js';
import { DebateSpaceOptionsError } from '../errors.js';
import { EndRecorder } from '../session-end/verdict/end-recorder.js';
import type { SessionIndexing } from '../session-end/expiry/registry-writer.js';
import { SessionEndDetector } from '../session-end/session-end-detector.js';
import { SessionRegistry } from '../session-end/expiry/session-registry.js';
import { uidCipher, type UidCipher } from '../secrets/uid-cipher.js';
import type { DebateSpaceStorage } from '../storage/storage.js';
import { IS_SECRET_KEY, isStorageKey } from '../options/storage-key-problems.js';

const FORGETFUL =
  'session.expiry with a storage in memory: after a restart, sessions that are not used again expire unreported; ' +
  'hint: a durable storage, such as lmdbStorage(), keeps them';
const UNENDING =
  "session.policy 'last' without session.expiry: a user whose last session runs out is never logged out of the debate space";
const DRAIN_MS = 5_000;
/** So much is left for it when the verdicts have taken the rest. */
const MIN_DRAIN_MS = 1_000;

/** One debate-space application, put together: the parts of design and the one place that knows them all. */
export class DebateSpaceRuntime {
  readonly service: DebateSpaceService;
  readonly events: DebateSpaceEvents;
  readonly erasures: DebateSpaceErasures;
  readonly operators: DebateSpaceOutbox;
  readonly health: DebateSpaceHealth;
  readonly recorder: EndRecorder;
  readonly detector: SessionEndDetector;
  readonly warnings: readonly string[];
  readonly #subject: Subject<DebateSpaceEvent>;
  readonly #closing = new AbortController();
  readonly #transport: Transport;
  readonly #isWorker: boolean;
  readonly #isDurable: boolean;
  readonly #logouts: FallbackQueue;
  readonly #runner: JobRunner;
  readonly #erasureStorage: ErasureStorage;
  readonly #registry: SessionRegistry | undefined;
  #closed: Promise<void> | undefined;

  static async open(options: ResolvedOptions): Promise<DebateSpaceRuntime> {
    const hashKey = await firstKey(options.secretKey);
    if (isStorageKey(options.storageKey, hashKey)) throw new DebateSpaceOptionsError([IS_SECRET_KEY]);
    const subject = new Subject<DebateSpaceEvent>();
    const containment = new Containment(subject.next.bind(subject));
    const contained = (work: () => void): void => {
      containment.run('storage', work);
    };
    const { storage, keys } = await openStorage(options, contained);
    const { policy, expiry } = options.session;
    const isIndexed = options.logout.mode === 'direct' && (policy === 'last' || expiry !== false);
    const indexing = isIndexed
      ? {
          registry: new SessionRegistry(storage, keys),
          lastOnly: policy === 'last',
          sweepMs: expiry === false ? undefined : expiry.sweepMs,
        }
      : undefined;
    const uids = uidCipher(keys, namespaceOf(options.applicationName));
    return new DebateSpaceRuntime(options, hashKey, storage, uids, subject, indexing);
  }

  private constructor(
    options: ResolvedOptions,
    hashKey: Secret,
    storage: DebateSpaceStorage,
    uids: UidCipher,
    subject: Subject<DebateSpaceEvent>,
    indexing?: SessionIndexing,
  ) {
    this.#subject = subject;
    const { apiKey, secretKey, authUrl, baseUrl, http, logout, session, users, storage: engine } = options;
    const emit = (event: DebateSpaceEvent): void => {
      this.#subject.next(event);
    };
    const closing = this.#closing.signal;
    setMaxListeners(0, closing); // every call that is under way listens
    const { timeoutMs } = http;
    const pause = new ServicePause(emit);
    const transport = new Transport(timeoutMs, http.adapter, pause);
    const tokens = new AccessTokens((scope) => fetchToken(transport, options, http, scope, closing));
    // What outlives a process may be shared by several.
    const limiter = engine.durable
      ? new RateLimiter(
          http.rateLimit,
          tryAcquireSlot.bind(undefined, storage),
          slotWaitMs.bind(undefined, storage),
        )
      : new RateLimiter(http.rateLimit);
    const client = new ServiceClient({ transport, tokens, closing, limiter, policy: http });
    const api = new UsersApi(client, baseUrl, users.listAuth === 'apiKey' ? apiKey : undefined);

    const logoutUrl = backchannelLogoutUrl(authUrl, options.applicationName);
    const signer = new LogoutTokenSigner({
      ...logout,
      secretKey,
      secretKeyEncoding: options.secretKeyEncoding,
      issuer: logout.issuer ?? options.applicationName,
      audience: logout.audience ?? apiKey.reveal(),
    });
    const route = new LogoutRoute(transport, logoutUrl);
    const sender = new LogoutSender(signer, route, timeoutMs, closing, emit);
    const queue = new LogoutQueue(storage, engine, { uids, keepFinishedMs: logout.historyRetentionMs });
    const logouts = new FallbackQueue(queue, logout.storageTimeoutMs, emit);
    const breaker = new CircuitBreaker(logout.concurrency, emit);
    const { giveUpAfterMs } = logout;
    this.#runner = new JobRunner(emit);
    this.#runner.add(new LogoutDelivery(logouts, breaker, sender, giveUpAfterMs, emit, pause));
    const { erasures, storage: erasureStorage } = openErasures({
      storage,
      durable: engine.durable,
      uids,
      options,
      users: api,
      limiter,
      closing,
      logouts,
      sender,
      runner: this.#runner,
      pause,
      emit,
    });

    const forgetful = indexing && session.expiry !== false && !engine.durable ? FORGETFUL : undefined;
    const unending = indexing && session.expiry === false ? UNENDING : undefined;
    const warnings = storage.warnings ?? [];
    this.warnings = [signer.weakness(hashKey), forgetful, unending, ...warnings].filter(
      (warning) => warning !== undefined,
    );
    this.events = new DebateSpaceEvents(this.#subject);
    this.recorder = new EndRecorder(logouts, hashKey, emit, logout);
    this.service = new DebateSpaceService(api, this.recorder, logoutUrl);
    this.#registry = indexing?.registry;
    this.detector = new SessionEndDetector(this.recorder, { ...session, indexing }, emit);
    this.#transport = transport;
    this.#isWorker = options.worker;
    this.#isDurable = engine.durable;
    this.#logouts = logouts;
    this.erasures = erasures;
    this.#erasureStorage = erasureStorage;
    this.operators = new DebateSpaceOutbox({ queue, logouts, engine, warnings, breaker });
    this.health = new DebateSpaceHealth(this.operators, erasureStorage, pause);
  }

  start(): void {
    if (this.#isWorker) this.#runner.start();
    this.detector.start();
  }

  /** Decides what is open, delivers what is pending – for five seconds at most –, and closes everything. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** A part that does not answer must not keep the host from closing. */
  async #close(): Promise<void> {
    const deadline = performance.now() + DRAIN_MS;
    this.recorder.close();
    await withTimeout(this.detector.close(), DRAIN_MS, undefined);
    if (this.#isWorker) await this.#runner.drain(Math.max(MIN_DRAIN_MS, deadline - performance.now()));
    this.#closing.abort();
    await this.#runner.idle(DRAIN_MS);
    await withTimeout(this.#logouts.flush(), DRAIN_MS, undefined);
    await this.#reportUnfinished();
    this.#transport.close();
    await withTimeout(this.#registry?.idle() ?? Promise.resolve(), MIN_DRAIN_MS, undefined);
    await withTimeout(this.#logouts.close(), DRAIN_MS, undefined);
    this.#subject.complete();
  }

  async #reportUnfinished(): Promise<void> {
    const { unpersistedCount } = this.#logouts;
    const counts = this.#isWorker ? await this.#ask(() => this.operators.stats()) : undefined;
    const pending = Math.max(counts?.pending ?? 0, unpersistedCount);
    const lost = !this.#isDurable || unpersistedCount > 0;
    if (pending > 0) this.#subject.next({ type: 'shutdown-incomplete', pending, lost });
    const count = this.#isDurable ? 0 : ((await this.#ask(async () => this.#erasureStorage.count())) ?? 0);
    if (count > 0) this.#subject.next({ type: 'erasures-dropped', count });
  }

  /** As far as the storage can say. */
  async #ask<T>(question: () => Promise<T>): Promise<T | undefined> {
    return withTimeout(
      question().catch(() => undefined),
      MIN_DRAIN_MS,
      undefined,
    );
  }
}

/** What hashes and seals stays the same for as long as the app runs, even if the key is rotated meanwhile. */
async function firstKey(source: KeySource): Promise<Secret> {
  try {
    return await source.current();
  } catch (error) {
    throw new DebateSpaceOptionsError([
      error instanceof KeyProblem ? error.message : 'secretKey cannot be had',
    ]);
  }
}
