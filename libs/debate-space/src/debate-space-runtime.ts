import { setMaxListeners } from 'node:events';
import { Subject } from 'rxjs';
import { KeyProblem } from './asked-key.js';
import { Containment } from './containment.js';
import type { DebateSpaceEvent } from './debate-space-event.js';
import type { DebateSpaceErasures } from './debate-space-erasures.js';
import { DebateSpaceEvents } from './debate-space-events.js';
import { DebateSpaceHealth } from './debate-space-health.js';
import { DebateSpaceOutbox } from './debate-space-outbox.js';
import { DebateSpaceService } from './debate-space.service.js';
import type { ErasureDispatcher } from './erasure/erasure-dispatcher.js';
import type { ErasureHealth } from './erasure/erasure-health.js';
import { openErasures } from './erasure/open-erasures.js';
import { inTime } from './in-time.js';
import { LogoutTokenSigner } from './logout-token/logout-token-signer.js';
import type { DeliveryAnswer } from './outbox/delivery-policy.js';
import { Dispatcher } from './outbox/dispatcher.js';
import { MemoryOutbox } from './outbox/memory-outbox.js';
import { namespaceOf, openStorage } from './open-storage.js';
import { outboxOn } from './logout/storage-outbox.js';
import type { Outbox, OutboxContext, OutboxEntry } from './outbox/outbox.js';
import { OutboxWithSpare } from './outbox/outbox-with-spare.js';
import { AccessTokens } from './remote/access-tokens.js';
import { backchannelLogoutUrl, LogoutRoute } from './remote/logout-route.js';
import { rateLimiters } from './remote/rate-limiters.js';
import { ServiceClient } from './remote/service-client.js';
import { ServicePause } from './remote/service-pause.js';
import { TokenRoute } from './remote/token-route.js';
import { Transport } from './remote/transport.js';
import { UsersApi } from './remote/users-api.js';
import type { ResolvedOptions } from './resolve-options.js';
import type { KeySource, Secret } from './secret.js';
import { DebateSpaceOptionsError } from './errors.js';
import { EndRecorder } from './session-end/end-recorder.js';
import type { SessionIndexing } from './session-end/indexed-sessions.js';
import { SessionEndDetector } from './session-end/session-end-detector.js';
import { SessionRegistry } from './session-end/session-registry.js';
import { SessionSeal } from './session-end/session-seal.js';
import type { DebateSpaceStorage } from './storage/storage.js';
import { uidCipher } from './uid-cipher.js';

const FORGETFUL =
  'session.expiry with a storage in memory: after a restart, sessions that are not used again expire unreported; ' +
  'hint: a durable storage, such as lmdbStorage(), keeps them';
const UNENDING =
  "session.policy 'last' without session.expiry: a user whose last session runs out is never logged out over there";
const DRAIN_MS = 5_000;
/** So much is left for it when the verdicts have taken the rest. */
const LEAST_DRAIN_MS = 1_000;

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
  readonly outbox: OutboxWithSpare;
  readonly #subject: Subject<DebateSpaceEvent>;
  readonly #closing = new AbortController();
  readonly #transport: Transport;
  readonly #dispatches: boolean;
  readonly #dispatcher: Dispatcher;
  readonly #erasureDispatcher: ErasureDispatcher;
  readonly #erasureHealth: ErasureHealth;
  readonly #registry: SessionRegistry | undefined;
  #closed: Promise<void> | undefined;

  static async open(options: ResolvedOptions): Promise<DebateSpaceRuntime> {
    const hashKey = await firstKey(options.secretKey);
    const subject = new Subject<DebateSpaceEvent>();
    const containment = new Containment(subject.next.bind(subject));
    const contained = (work: () => void): void => {
      containment.run('storage', work);
    };
    const { storage, key } = await openStorage(options, contained);
    const context: OutboxContext = {
      uids: uidCipher([key], namespaceOf(options.applicationName)),
      contained,
      keepFinishedMs: options.logout.historyRetentionMs,
    };
    const engine = outboxOn(storage, options.storage, context);
    const { policy, expiry } = options.session;
    const isIndexed = options.logout.mode === 'direct' && (policy === 'last' || expiry !== false);
    const indexing = isIndexed
      ? {
          registry: new SessionRegistry(storage),
          seal: new SessionSeal(key),
          lastOnly: policy === 'last',
          sweepMs: expiry === false ? undefined : expiry.sweepMs,
        }
      : undefined;
    return new DebateSpaceRuntime(options, hashKey, storage, engine, context, subject, indexing);
  }

  private constructor(
    options: ResolvedOptions,
    hashKey: Secret,
    storage: DebateSpaceStorage,
    engine: Outbox,
    context: OutboxContext,
    subject: Subject<DebateSpaceEvent>,
    indexing?: SessionIndexing,
  ) {
    this.#subject = subject;
    const { apiKey, secretKey, authUrl, baseUrl, http, logout, session, users } = options;
    const emit = (event: DebateSpaceEvent): void => {
      this.#subject.next(event);
    };
    const closing = this.#closing.signal;
    setMaxListeners(0, closing); // every call that is under way listens
    const { maxAttempts, totalTimeoutMs, timeoutMs } = http;
    const policy = { maxAttempts, totalTimeoutMs, timeoutMs };
    const pause = new ServicePause(emit);
    const transport = new Transport(http.timeoutMs, http.adapter, pause);
    const tokenRoute = new TokenRoute(transport, { authUrl, apiKey, secretKey, policy });
    const tokens = new AccessTokens((scope) => tokenRoute.fetch(scope, closing));
    const limiters = rateLimiters(http.rateLimit, engine.admit?.bind(engine));
    const parts = { transport, tokens, closing };
    const client = new ServiceClient({ ...parts, limiter: limiters.calls, policy });
    const listApiKey = users.listAuth === 'apiKey' ? apiKey : undefined;
    const apiOptions = { baseUrl, listApiKey };
    const api = new UsersApi(client, apiOptions);

    const logoutUrl = backchannelLogoutUrl(authUrl, options.applicationName);
    const route = new LogoutRoute(transport, logoutUrl);
    const signer = new LogoutTokenSigner({
      ...logout,
      secretKey,
      secretKeyEncoding: options.secretKeyEncoding,
      issuer: logout.issuer ?? options.applicationName,
      audience: logout.audience ?? apiKey.reveal(),
    });
    const deliver = async (entry: OutboxEntry): Promise<DeliveryAnswer> => {
      let token: string | undefined;
      try {
        token = await inTime(signer.sign(entry), http.timeoutMs, undefined);
      } catch (error) {
        // A function of the host's; it may do better next time.
        const reason = error instanceof KeyProblem ? 'secretKey failed' : 'logout.claims failed';
        return { reason, local: true };
      }
      if (token === undefined) return { reason: 'logout.claims did not answer', local: true };
      try {
        return await route.send(token, closing);
      } catch (error) {
        // A mistake in http.adapter, or in our code: the service has no part in it.
        const name = error instanceof Error ? error.name : typeof error;
        emit({ type: 'fault', where: 'http', error: name });
        return { reason: name, local: true };
      }
    };
    const { concurrency, giveUpAfterMs } = logout;
    const outbox = new OutboxWithSpare(engine, new MemoryOutbox(context), logout.storageTimeoutMs, emit);

    this.outbox = outbox;
    const forgetful = indexing && session.expiry !== false && !outbox.durable ? FORGETFUL : undefined;
    const unending = indexing && session.expiry === false ? UNENDING : undefined;
    this.warnings = [signer.weakness(hashKey), forgetful, unending, ...outbox.warnings].filter(
      (warning) => warning !== undefined,
    );
    this.events = new DebateSpaceEvents(this.#subject);
    this.recorder = new EndRecorder(outbox, hashKey, emit, logout);
    this.service = new DebateSpaceService(api, this.recorder, logoutUrl);
    this.#registry = indexing?.registry;
    this.detector = new SessionEndDetector(this.recorder, { ...session, indexing }, emit);
    this.#transport = transport;
    this.#dispatches = options.worker;
    this.#dispatcher = new Dispatcher(
      outbox,
      deliver,
      { concurrency, giveUpAfterMs, leaseMs: 3 * http.timeoutMs },
      emit,
      pause,
    );
    // A job has a schedule of its own; a token that was refused is no reason to wait for it.
    const jobPolicy = { totalTimeoutMs, maxAttempts: Math.min(2, maxAttempts), onlyRefusedTokens: true };
    const once = { ...parts, limiter: limiters.work, policy: jobPolicy };
    const { erasures, dispatcher, health } = openErasures({
      storage,
      outbox,
      context,
      options,
      users: api,
      once: new UsersApi(new ServiceClient(once), apiOptions),
      closing,
      logOut: deliver,
      logouts: this.#dispatcher,
      pause,
      emit,
    });
    this.erasures = erasures;
    this.#erasureDispatcher = dispatcher;
    this.#erasureHealth = health;
    this.operators = new DebateSpaceOutbox(outbox, this.#dispatcher);
    this.health = new DebateSpaceHealth(this.operators, health, pause);
  }

  start(): void {
    if (this.#dispatches) {
      this.#dispatcher.start();
      this.#erasureDispatcher.start();
    }
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
    await inTime(this.detector.close(), DRAIN_MS, undefined);
    this.#erasureDispatcher.stop();
    const left = this.#dispatches
      ? await this.#dispatcher.drain(Math.max(LEAST_DRAIN_MS, deadline - performance.now()))
      : 0;
    this.#closing.abort();
    await inTime(this.#dispatcher.idle(), DRAIN_MS, undefined);
    await this.#erasureDispatcher.idle(DRAIN_MS);
    await inTime(this.outbox.handOver(), DRAIN_MS, undefined);
    const pending = Math.max(left, this.outbox.forgettable);
    if (pending > 0) {
      const lost = !this.outbox.durable || this.outbox.forgettable > 0;
      this.#subject.next({ type: 'shutdown-incomplete', pending, lost });
    }
    const erasures = this.outbox.durable ? 0 : await inTime(this.#unfinishedErasures(), DRAIN_MS, 0);
    if (erasures > 0) this.#subject.next({ type: 'erasures-dropped', count: erasures });
    this.#transport.close();
    await inTime(this.#registry?.idle() ?? Promise.resolve(), LEAST_DRAIN_MS, undefined);
    await inTime(Promise.resolve(this.outbox.close()), DRAIN_MS, undefined);
    this.#subject.complete();
  }

  /** As far as the storage can say. */
  async #unfinishedErasures(): Promise<number> {
    try {
      return await this.#erasureHealth.count();
    } catch {
      return 0;
    }
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
