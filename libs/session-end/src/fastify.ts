import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { cookieChangesOfReply, type CookieChanges, type Header } from './cookie-changes.js';
import { SessionRequest } from './session-request.js';
import type { WatchedApp } from './watched-app.js';

const LISTENERS = Symbol('listeners for sessions');
const HAS_SETTER = Symbol('whether assignments of the session are heard on such requests');
const SESSION = Symbol('session');
const IS_HIJACKED = Symbol('whether a handler has taken the reply over');
const WATCHED = Symbol('the request, for those who hear of its session');

/** As much of Fastify as is needed here; it is an optional peer. */
export interface FastifyLike {
  [LISTENERS]?: Set<WatchedApp>;
  addHook(
    name: 'onRequest',
    hook: (request: FastifyRequest, reply: FastifyReply, done: () => void) => void,
  ): unknown;
}

interface FastifyRequest {
  readonly [HAS_SETTER]?: true;
  [SESSION]?: unknown;
  [WATCHED]?: FastifySessionRequest;
  readonly raw: IncomingMessage;
  readonly headers: IncomingHttpHeaders;
  /** Both from @fastify/session. */
  readonly sessionStore?: object | undefined;
  session?: { readonly sessionId?: string } | null | undefined;
}

interface FastifyReply {
  [IS_HIJACKED]?: boolean;
  readonly raw: ServerResponse;
  getHeader(name: string): Header;
}

/**
 * Reports the sessions of a Fastify app: the store before anything else of the host runs, and each session as soon as
 * its request has it – hooks of the host may end or renew it before any handler runs. The hook reaches every route that
 * is registered later: of Nest, of plugins, and the one for 404. It stays for an app's life.
 * @returns how to stop
 */
export function watchFastify(fastify: FastifyLike, listener: WatchedApp): () => void {
  const listeners = (fastify[LISTENERS] ??= addListeners(fastify));
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
  };
}

function addListeners(fastify: FastifyLike): Set<WatchedApp> {
  const listeners = new Set<WatchedApp>();
  fastify.addHook('onRequest', (request, reply, done) => {
    for (const listener of listeners)
      try {
        arrived(request, reply, listener, listeners);
      } catch (error) {
        listener.containment.report('fastify onRequest', error);
      }
    request[WATCHED]?.watchSession();
    done();
  });
  return listeners;
}

function arrived(
  request: FastifyRequest,
  reply: FastifyReply,
  listener: WatchedApp,
  listeners: ReadonlySet<WatchedApp>,
): void {
  const { raw, sessionStore } = request; // may be an accessor of the host
  listener.arrived(raw, reply.raw, request);
  if (sessionStore && !listener.stores.has(sessionStore)) listener.found(sessionStore);
  // Also where there are no sessions: any route may clear the cookie.
  const mayLeave = listener.stores.size > 0 && listener.mayKnow(raw.headers.cookie ?? '');
  if (!sessionStore && !mayLeave) return;
  if (reply[IS_HIJACKED] === undefined) watchHijack(Object.getPrototypeOf(reply) as FastifyReply);
  const watched = (request[WATCHED] ??= new FastifySessionRequest(request, reply, listeners));
  if (mayLeave) watched.onClose(listener);
  if (sessionStore && listener.openRequests.counts(raw.method)) listener.openRequests.add(watched);
}

/** Fastify does not send the headers of a reply that a handler takes over. On the prototype, as {@link defineSetter}. */
function watchHijack(prototype: FastifyReply): void {
  const original = Reflect.get(prototype, 'hijack') as (this: FastifyReply) => unknown;
  const hijack = function hijack(this: FastifyReply): unknown {
    this[IS_HIJACKED] = true;
    return original.call(this);
  };
  Object.defineProperty(prototype, IS_HIJACKED, { value: false, writable: true, configurable: true });
  Object.defineProperty(prototype, 'hijack', { value: hijack, writable: true, configurable: true });
}

/**
 * Hears of a session when it is assigned. On the prototype of one app's requests, not on each request: that made all of
 * its properties slow, and a trivial request half as expensive again (measured).
 */
function defineSetter(prototype: object): void {
  Object.defineProperty(prototype, HAS_SETTER, { value: true });
  Object.defineProperty(prototype, 'session', {
    configurable: true,
    enumerable: true,
    get(this: FastifyRequest) {
      return this[SESSION];
    },
    set(this: FastifyRequest, value: unknown) {
      this[SESSION] = value;
      this[WATCHED]?.reportSession();
    },
  });
}

class FastifySessionRequest extends SessionRequest {
  declare readonly native: FastifyRequest;
  readonly #reply: FastifyReply;

  constructor(
    request: FastifyRequest,
    reply: FastifyReply,
    readonly listeners: ReadonlySet<WatchedApp>,
  ) {
    super(request, reply.raw);
    this.#reply = reply;
  }

  override get sessionID(): string | undefined {
    return this.native.session?.sessionId;
  }

  /** Never throws. */
  watchSession(): void {
    const { native } = this;
    try {
      if (native[HAS_SETTER]) {
        if (native.session) this.reportSession(); // the host's hooks are older than ours
        return;
      }
      if (!Object.hasOwn(native, 'session')) return; // the host's own accessor
      const { session } = native;
      defineSetter(Object.getPrototypeOf(native) as object);
      Reflect.deleteProperty(native, 'session');
      native.session = session;
    } catch (error) {
      for (const listener of this.listeners) listener.containment.report('fastify request.session', error);
    }
  }

  /** Never throws. */
  reportSession(): void {
    for (const listener of this.listeners)
      try {
        const { sessionStore } = this.native;
        if (sessionStore) listener.loaded(sessionStore, this);
      } catch (error) {
        listener.containment.report('fastify request.session', error);
      }
  }

  protected override readCookieChanges(): CookieChanges {
    return this.#reply[IS_HIJACKED] ? super.readCookieChanges() : cookieChangesOfReply(this.#reply);
  }
}
