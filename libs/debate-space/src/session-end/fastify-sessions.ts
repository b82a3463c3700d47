import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { SessionRequest } from './session-request.js';

/** As much of Fastify as is needed here; it is an optional peer. */
export interface FastifyLike {
  addHook(name: 'onRequest', hook: (request: FastifyRequest, reply: FastifyReply, done: () => void) => void): unknown; // prettier-ignore
  addHook(name: 'preParsing', hook: (request: FastifyRequest, reply: FastifyReply, payload: unknown, done: () => void) => void): unknown; // prettier-ignore
}

interface FastifyRequest {
  readonly headers: IncomingHttpHeaders;
  /** Both from @fastify/session. */
  readonly sessionStore?: object | undefined;
  readonly session?: { readonly sessionId?: string } | null | undefined;
}

interface FastifyReply {
  readonly raw: ServerResponse;
  getHeader(name: string): unknown;
}

export interface FastifySessionListener {
  /** A request has brought this store along. */
  found(store: object): void;
  /** A request has its session, out of this store. */
  loaded(store: object, request: SessionRequest): void;
}

/**
 * Tells of the sessions of a Fastify app: of the store before anything else of the host runs, and of each session when
 * the host's `onRequest` hooks are over, @fastify/session's among them. The hooks reach every route that is registered
 * later – of Nest, of other plugins, and the one for 404. Hooks stay for an app's life.
 * @returns how to stop
 */
export function onFastifySession(fastify: FastifyLike, listener: FastifySessionListener): () => void {
  let listening = true;
  fastify.addHook('onRequest', (request, _reply, done) => {
    if (listening && request.sessionStore) listener.found(request.sessionStore);
    done();
  });
  fastify.addHook('preParsing', (request, reply, _payload, done) => {
    const { sessionStore } = request;
    if (listening && sessionStore) listener.loaded(sessionStore, new FastifySessionRequest(request, reply));
    done();
  });
  return () => {
    listening = false;
  };
}

class FastifySessionRequest implements SessionRequest {
  readonly native: FastifyRequest;
  readonly reply: FastifyReply;

  constructor(request: FastifyRequest, reply: FastifyReply) {
    this.native = request;
    this.reply = reply;
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
