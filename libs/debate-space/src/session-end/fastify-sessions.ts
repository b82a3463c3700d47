import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { SessionRequest } from './session-request.js';

const LISTENERS = Symbol('listeners for sessions');
const WATCHED = Symbol('whether the sessions of such requests are told of');
const WATCH = Symbol('who is told of the session of this request');

/** As much of Fastify as is needed here; it is an optional peer. */
export interface FastifyLike {
  [LISTENERS]?: Set<FastifySessionListener>;
  addHook(name: 'onRequest', hook: (request: FastifyRequest, reply: FastifyReply, done: () => void) => void): unknown; // prettier-ignore
}

interface FastifyRequest {
  readonly [WATCHED]?: true;
  [WATCH]?: FastifySessionRequest;
  readonly headers: IncomingHttpHeaders;
  /** Both from @fastify/session. */
  readonly sessionStore?: object | undefined;
  session?: { readonly sessionId?: string } | null | undefined;
}

interface FastifyReply {
  readonly raw: ServerResponse;
  getHeader(name: string): unknown;
}

export interface FastifySessionListener {
  /** A request has brought this store along. */
  found(store: object): void;
  /** A request has got a session, out of this store. */
  loaded(store: object, request: SessionRequest): void;
}

/**
 * Tells of the sessions of a Fastify app: of the store before anything else of the host runs, and of each session as
 * soon as its request has it – hooks of the host may end or renew it before any handler runs. The hook reaches every
 * route that is registered later: of Nest, of plugins, and the one for 404. It stays for an app's life.
 * @returns how to stop
 */
export function onFastifySession(fastify: FastifyLike, listener: FastifySessionListener): () => void {
  const listeners = (fastify[LISTENERS] ??= addListeners(fastify));
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
  };
}

function addListeners(fastify: FastifyLike): Set<FastifySessionListener> {
  const listeners = new Set<FastifySessionListener>();
  fastify.addHook('onRequest', (request, reply, done) => {
    const { sessionStore } = request;
    if (sessionStore) {
      for (const listener of listeners) listener.found(sessionStore);
      request[WATCH] = new FastifySessionRequest(request, reply, listeners);
      watchSession(request);
    }
    done();
  });
  return listeners;
}

function watchSession(request: FastifyRequest): void {
  const { session } = request;
  if (!request[WATCHED]) {
    if (!Object.hasOwn(request, 'session')) return; // the host's own accessor
    defineSession(Object.getPrototypeOf(request) as object);
    Reflect.deleteProperty(request, 'session');
    request.session = session;
  } else if (session) tell(request); // the host's hooks are older than ours
}

/**
 * Hears of a session when it is assigned. On the prototype of one app's requests, not on each request: that made all of
 * its properties slow, and a trivial request half as expensive again (measured).
 */
function defineSession(prototype: object): void {
  const SESSION: unique symbol = Symbol('session');
  Object.defineProperty(prototype, WATCHED, { value: true });
  Object.defineProperty(prototype, 'session', {
    configurable: true,
    enumerable: true,
    get(this: { [SESSION]?: unknown }) {
      return this[SESSION];
    },
    set(this: FastifyRequest & { [SESSION]?: unknown }, value: unknown) {
      this[SESSION] = value;
      tell(this);
    },
  });
}

function tell(request: FastifyRequest): void {
  const { [WATCH]: watch, sessionStore } = request;
  if (!watch || !sessionStore) return;
  for (const listener of watch.listeners) listener.loaded(sessionStore, watch);
}

class FastifySessionRequest implements SessionRequest {
  readonly native: FastifyRequest;
  readonly reply: FastifyReply;
  readonly listeners: ReadonlySet<FastifySessionListener>;

  constructor(request: FastifyRequest, reply: FastifyReply, listeners: ReadonlySet<FastifySessionListener>) {
    this.native = request;
    this.reply = reply;
    this.listeners = listeners;
  }

  get res(): ServerResponse {
    return this.reply.raw;
  }

  get headers(): IncomingHttpHeaders {
    return this.native.headers;
  }

  get session(): unknown {
    return this.native.session;
  }

  get sessionID(): string | undefined {
    return this.native.session?.sessionId;
  }
}
