import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Containment } from '../containment.js';
import { SessionRequest } from './session-request.js';

const LISTENERS = Symbol('listeners for sessions');
const WATCHED = Symbol('whether assignments of the session are heard on such requests');
const WATCH = Symbol('who hears of the session of this request');

/** As much of Fastify as is needed here; it is an optional peer. */
export interface FastifyLike {
  [LISTENERS]?: Set<FastifySessionListener>;
  addHook(name: 'onRequest', hook: (request: FastifyRequest, reply: FastifyReply, done: () => void) => void): unknown; // prettier-ignore
}

interface FastifyRequest {
  readonly [WATCHED]?: true;
  [WATCH]?: FastifySessionRequest;
  readonly raw: IncomingMessage;
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
  readonly containment: Containment;
  /** Each request, before hooks and plugins that are registered later. */
  requested(raw: IncomingMessage, response: ServerResponse, native: object): void;
  /** A request has brought this store along. */
  found(store: object): void;
  /** A request has got a session, out of this store. */
  loaded(store: object, request: SessionRequest): void;
}

/**
 * Reports the sessions of a Fastify app: the store before anything else of the host runs, and each session as soon as
 * its request has it – hooks of the host may end or renew it before any handler runs. The hook reaches every route that
 * is registered later: of Nest, of plugins, and the one for 404. It stays for an app's life.
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
    let watch: FastifySessionRequest | undefined;
    for (const listener of listeners)
      listener.containment.run('fastify onRequest', () => {
        listener.requested(request.raw, reply.raw, request);
        const { sessionStore } = request; // may be an accessor of the host
        if (!sessionStore) return;
        listener.found(sessionStore);
        watch ??= new FastifySessionRequest(request, reply, listeners);
      });
    const [first] = listeners;
    if (watch && first)
      first.containment.run('fastify request.session', () => {
        request[WATCH] = watch;
        watchSession(request);
      });
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
  } else if (session) announce(request); // the host's hooks are older than ours
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
      announce(this);
    },
  });
}

function announce(request: FastifyRequest): void {
  const watch = request[WATCH];
  if (!watch) return;
  for (const listener of watch.listeners)
    listener.containment.run('fastify request.session', () => {
      const { sessionStore } = request;
      if (sessionStore) listener.loaded(sessionStore, watch);
    });
}

class FastifySessionRequest extends SessionRequest {
  readonly native: FastifyRequest;
  readonly reply: FastifyReply;
  readonly listeners: ReadonlySet<FastifySessionListener>;

  constructor(request: FastifyRequest, reply: FastifyReply, listeners: ReadonlySet<FastifySessionListener>) {
    super(request.raw, reply.raw);
    this.native = request;
    this.reply = reply;
    this.listeners = listeners;
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

  /** Until they leave, Fastify keeps them itself. */
  override get setCookies(): readonly string[] {
    return [...super.setCookies, ...[this.reply.getHeader('set-cookie') ?? []].flat().map(String)];
  }
}
