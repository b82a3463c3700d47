import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { cookieChangesOfReply, type CookieChanges, type Header } from '../verdict/cookie-changes.js';
import { SessionRequest } from '../verdict/session-request.js';
import type { PlatformListener } from './platform-listener.js';

const LISTENERS = Symbol('listeners for sessions');
const HAS_SETTER = Symbol('whether assignments of the session are heard on such requests');
const SESSION = Symbol('session');
const IS_HIJACKED = Symbol('whether a handler has taken the reply over');
const WATCHED = Symbol('the request, for those who hear of its session');

/** As much of Fastify as is needed here; it is an optional peer. */
export interface FastifyLike {
  [LISTENERS]?: Set<PlatformListener>;
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
export function onFastifySession(fastify: FastifyLike, listener: PlatformListener): () => void {
  const listeners = (fastify[LISTENERS] ??= addListeners(fastify));
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
  };
}

function addListeners(fastify: FastifyLike): Set<PlatformListener> {
  const listeners = new Set<PlatformListener>();
  fastify.addHook('onRequest', (request, reply, done) => {
    let watched: FastifySessionRequest | undefined;
    for (const listener of listeners)
      listener.containment.run('fastify onRequest', () => {
        listener.requested(request.raw, reply.raw, request);
        const { sessionStore } = request; // may be an accessor of the host
        if (sessionStore) listener.found(sessionStore);
        // Also where there are no sessions: any route may clear the cookie.
        const mayLeave = listener.hasStores && listener.mayKnow(request.raw.headers.cookie ?? '');
        if (!sessionStore && !mayLeave) return;
        if (reply[IS_HIJACKED] === undefined) watchHijack(Object.getPrototypeOf(reply) as FastifyReply);
        watched ??= new FastifySessionRequest(request, reply, listeners);
        if (mayLeave) watched.listen(listener.onClosed);
        if (!sessionStore) return;
        request[WATCHED] = watched;
        if (listener.mayLogIn(request.raw.method)) listener.opened(watched);
      });
    const [first] = listeners;
    if (request[WATCHED] && first)
      first.containment.run('fastify request.session', () => {
        watchSession(request);
      });
    done();
  });
  return listeners;
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

function watchSession(request: FastifyRequest): void {
  const { session } = request;
  if (!request[HAS_SETTER]) {
    if (!Object.hasOwn(request, 'session')) return; // the host's own accessor
    defineSetter(Object.getPrototypeOf(request) as object);
    Reflect.deleteProperty(request, 'session');
    request.session = session;
  } else if (session) reportSession(request); // the host's hooks are older than ours
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
      reportSession(this);
    },
  });
}

function reportSession(request: FastifyRequest): void {
  const watched = request[WATCHED];
  if (!watched) return;
  for (const listener of watched.listeners)
    listener.containment.run('fastify request.session', () => {
      const { sessionStore } = request;
      if (sessionStore) listener.loaded(sessionStore, watched);
    });
}

class FastifySessionRequest extends SessionRequest {
  declare readonly native: FastifyRequest;
  readonly #reply: FastifyReply;

  constructor(
    request: FastifyRequest,
    reply: FastifyReply,
    readonly listeners: ReadonlySet<PlatformListener>,
  ) {
    super(request, reply.raw);
    this.#reply = reply;
  }

  override get sessionID(): string | undefined {
    return this.native.session?.sessionId;
  }

  protected override readCookieChanges(): CookieChanges {
    return this.#reply[IS_HIJACKED] ? super.readCookieChanges() : cookieChangesOfReply(this.#reply);
  }
}
