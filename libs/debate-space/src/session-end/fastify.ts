import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { cookieChangesOfReply, type CookieChanges, type Header } from './cookie-changes.js';
import { OBSERVE, seenRequest, SessionRequest } from './session-request.js';
import type { WatchedApp } from './watched-app.js';

const LISTENERS = Symbol('listeners for sessions');
const HAS_SETTER = Symbol('whether assignments of the session are heard on such requests');
const SESSION = Symbol('session');
const REPLY = Symbol('the reply of a request that may have a session');
const IS_HIJACKED = Symbol('whether a handler has taken the reply over');

/** As much of Fastify as is needed here; it is an optional peer. */
export interface FastifyLike {
  [LISTENERS]?: WatchedApp[];
  addHook(
    name: 'onRequest',
    hook: (request: FastifyRequest, reply: FastifyReply, done: () => void) => void,
  ): unknown;
}

interface FastifyRequest {
  readonly [HAS_SETTER]?: true;
  [SESSION]?: unknown;
  [REPLY]?: FastifyReply;
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
  listeners.push(listener);
  return () => {
    const at = listeners.indexOf(listener);
    if (at >= 0) listeners.splice(at, 1);
  };
}

function addListeners(fastify: FastifyLike): WatchedApp[] {
  const listeners: WatchedApp[] = [];
  fastify.addHook('onRequest', (request, reply, done) => {
    for (const listener of listeners)
      try {
        arrived(request, reply, listener);
      } catch (error) {
        listener.containment.report('fastify onRequest', error);
      }
    if (request[REPLY]) watchSession(request, listeners);
    done();
  });
  return listeners;
}

function arrived(request: FastifyRequest, reply: FastifyReply, listener: WatchedApp): void {
  const { raw, sessionStore } = request; // may be an accessor of the host
  listener.arrived(raw, reply.raw, request);
  if (sessionStore && !listener.stores.has(sessionStore)) listener.found(sessionStore);
  // Also where there are no sessions: any route may clear the cookie.
  const { cookie } = raw.headers;
  const mayLeave = cookie !== undefined && listener.mayKnow(cookie);
  if (!sessionStore && !mayLeave) return;
  if (reply[IS_HIJACKED] === undefined) watchHijack(Object.getPrototypeOf(reply) as FastifyReply);
  request[REPLY] = reply;
  const mayLogIn = !!sessionStore && listener.openRequests.counts(raw.method);
  // A browser that is logged in has a cookie: when its request came counts, not when its session is read.
  if (cookie === undefined && !mayLogIn) return;
  const seen = observeFastify(request, reply);
  if (mayLeave) seen.onClose(listener);
  if (mayLogIn) listener.openRequests.add(seen);
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

/** Never throws. */
function watchSession(request: FastifyRequest, listeners: readonly WatchedApp[]): void {
  try {
    if (request[HAS_SETTER]) {
      if (request.session) reportSession(request, listeners); // the host's hooks are older than ours
      return;
    }
    if (!Object.hasOwn(request, 'session')) return; // the host's own accessor
    const { session } = request;
    defineSetter(Object.getPrototypeOf(request) as object, listeners);
    Reflect.deleteProperty(request, 'session');
    request.session = session;
  } catch (error) {
    for (const { containment } of listeners) containment.report('fastify request.session', error);
  }
}

/**
 * Hears of a session when it is assigned. On the prototype of one app's requests, not on each request: that made all of
 * its properties slow, and a trivial request half as expensive again (measured).
 */
function defineSetter(prototype: object, listeners: readonly WatchedApp[]): void {
  Object.defineProperty(prototype, HAS_SETTER, { value: true });
  Object.defineProperty(prototype, OBSERVE, {
    value(this: FastifyRequest) {
      return this[REPLY] && observeFastify(this, this[REPLY]);
    },
  });
  Object.defineProperty(prototype, 'session', {
    configurable: true,
    enumerable: true,
    get(this: FastifyRequest) {
      return this[SESSION];
    },
    set(this: FastifyRequest, value: unknown) {
      this[SESSION] = value;
      if (this[REPLY]) reportSession(this, listeners);
    },
  });
}

/** Never throws. */
function reportSession(request: FastifyRequest, listeners: readonly WatchedApp[]): void {
  for (const listener of listeners)
    try {
      const { sessionStore, session } = request;
      if (sessionStore) listener.loaded(sessionStore, request, session, session?.sessionId);
    } catch (error) {
      listener.containment.report('fastify request.session', error);
    }
}

function observeFastify(request: FastifyRequest, reply: FastifyReply): SessionRequest {
  return seenRequest(request) ?? new FastifySessionRequest(request, reply);
}

class FastifySessionRequest extends SessionRequest {
  declare readonly native: FastifyRequest;
  readonly #reply: FastifyReply;

  constructor(request: FastifyRequest, reply: FastifyReply) {
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
